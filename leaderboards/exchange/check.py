"""Comparison of current records with committed pages, and with a baseline."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Numbers
from layerboard.leaderboards.blocks.csv import SUMS, read_numbers, sums_text, text_digest
from layerboard.leaderboards.blocks.display import fixed
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.tidy import MEASURED, numbers_of, tidy_frame
from layerboard.leaderboards.records.key import (
    COMPARISON_TASK,
    ROUNDING,
    TOLERANCE,
    Limit,
    RecordKey,
    Row,
    Tolerance,
    keys_of,
    layer_text,
    text_rows,
)
from layerboard.leaderboards.records.record import read_records, suites_of
from layerboard.leaderboards.writers.figures import figure_differences
from layerboard.tasks.datasets.integrity import require
from layerboard.zoo.errors import InputError, counted, fitting, some

_DESCRIBING = (".inside.csv", ".cka.csv", ".cost.csv")  # suffixes of files whose numbers do not rank

Group = tuple[str, ...]  # backbone, task, dataset and protocol
Rows = dict[RecordKey, Row]
"""Rows of one group and set of data; the key tells them apart by anything but the data."""


def check_pages(records: pd.DataFrame, folder: Path, tolerance: Tolerance = TOLERANCE) -> list[str]:
    """Differences between the records and the committed files of their suites.

    Reported are missing and new rows, values beyond the tolerance, counts and partial data; not dates,
    versions, devices or which layer is best. Intervals are only checked for presence; they move with the
    scores, and how often a layer is chosen and how far it may be below the best move more than the scores do.
    Metrics other than the primary one may also move by one of their units, such as one query.
    Analyses are compared if the records have any, since they are run only if named. Costs are not compared:
    every machine has its own. If either side has several sets of data under one name, each is compared with
    that of the same digest.
    """
    sentences: list[str] = []
    for suite in suites_of(records):
        board = Board.of(records, suite)
        if len(board.measured) or (len(board.analyses) and (folder / f"{board.page}.csv").is_file()):
            sentences += _check_page(folder, numbers_of(board), tolerance)
        if board.analyses:
            sentences += _check_page(folder, numbers_of(board.analyses), tolerance)
    return sentences


def _check_page(folder: Path, today: Numbers, tolerance: Tolerance) -> list[str]:
    """Differences between one page with its numbers and the current numbers."""
    page, numbers = (folder / f"{today.name}.{ending}" for ending in ("md", "csv"))
    absent = [path for path in (page, numbers) if not path.is_file()]
    sentences = [f"{path.name} is not in {folder}; write the leaderboard again" for path in absent]
    if numbers in absent:
        return sentences
    try:
        committed = read_numbers(numbers, [*today.frame.columns])
    except InputError as error:
        return [*sentences, str(error)]
    if page not in absent:
        text = page.read_text(encoding="utf-8")
        if text_digest(numbers.read_text(encoding="utf-8")) not in text:
            sentences.append(f"{page.name} was not written with {numbers.name}; write the leaderboard again")
        sentences += figure_differences(text, folder, today.name)
    changes = table_differences(committed, today.frame, tolerance)
    return sentences + [f"{numbers.name}: {each}" for each in changes]


def table_differences(committed: pd.DataFrame, fresh: pd.DataFrame, tolerance: Tolerance) -> list[str]:
    """One sentence for each backbone and task, and kind of difference, in sorted order."""
    old, new = dict[Group, dict[str, Rows]](), dict[Group, dict[str, Rows]]()
    for groups, table in ((old, committed), (new, fresh)):
        for key, row in text_rows(table).items():
            groups.setdefault(key[:4], {}).setdefault(key.data, {})[key._replace(data="")] = row
    sentences = []
    for group in sorted({*old, *new}):
        backbone, task, dataset, protocol = group
        name = f"{backbone}, {task} on {dataset} ({protocol})"
        limit = tolerance.limit(task, analysis="head" in committed)
        before, now = old.get(group, {}), new.get(group, {})
        if not (several := len(before) > 1 or len(now) > 1):
            # a single set is compared with a single set whatever the digests: they depend on file sizes, and
            # images that are rendered on two machines may differ in size
            before, now = ({"": next(iter(sets.values()), {})} for sets in (before, now))
        for data in sorted({*before, *now}):
            changes = _differences(before.get(data, {}), now.get(data, {}), limit)
            where = f"{name}, data {data}" if several else name
            sentences += [f"{where}: {sentence}" for sentence in changes]
    return sentences


def _differences(before: Rows, now: Rows, limit: Limit) -> list[str]:
    lost, came = len(before.keys() - now.keys()), len(now.keys() - before.keys())
    both = [(before[key], now[key]) for key in before if key in now]
    scored = [(old, new) for old, new in both if old["value"] and new["value"]]
    distances = [_distance(old, new, limit) for old, new in scored]
    sentences = [f"{counted(lost, 'rows')} that the records lack; run the suite in full"] if lost else []
    if came:
        sentences.append(f"lacks {counted(came, 'rows')} of the records; write the leaderboard again")
    if moved := sum(distance > limit.amount for distance in distances):
        old, new = scored[distances.index(max(distances))]
        most = f"{_layer_text(old)}: committed {float(old['value']):g}, now {float(new['value']):g}"
        sentences.append(f"{counted(moved, 'rows')} moved by more than {limit}, most {most}")
    sentences += _turned(both, "value", "empty", "scored")
    sentences += _turned(scored, "ci_low", "without an interval", "with an interval")
    for column in ("n", "partial"):
        other = [(old[column], new[column]) for old, new in both if old[column] != new[column]]
        sentences += [f"{column} was {other[0][0]}, is {other[0][1]}"] if other else []
    return sentences


def _distance(old: Row, new: Row, limit: Limit) -> float:
    """How far a value moved; by a metric other than the primary one, how far beyond the share of one unit."""
    units = int(old["n"]) if old.get("best") == "" and old["task"] != COMPARISON_TASK else 0
    distance = limit.distance(float(old["value"]), float(new["value"]))
    return max(0.0, round(distance - 100 / units, ROUNDING)) if units else distance


def _turned(both: Sequence[tuple[Row, Row]], column: str, empty: str, filled: str) -> list[str]:
    """Rows in which a column was filled or emptied, with words for both cases."""
    back = [old for old, new in both if new[column] and not old[column]]
    gone = [old for old, new in both if old[column] and not new[column]]
    turns = ((back, f"{empty}, now {filled}"), (gone, f"{filled}, now {empty}"))
    return [
        f"{counted(len(rows), 'rows')} {words}, first {_layer_text(rows[0])}" for rows, words in turns if rows
    ]


def _layer_text(row: Row) -> str:
    layer = layer_text(row)
    layer = layer if layer == "final" else f"layer {layer}"
    if row.get("head", "-1") != "-1":
        layer += f" head {row['head']}"
    other = f" with {row['other']} layer {row['other_layer']}" if row.get("other") else ""
    return f"{layer}, {row['pooling']}{other}"


def moved_numbers(
    baseline: pd.DataFrame, now: pd.DataFrame, backbones: Sequence[str], tolerance: Tolerance
) -> tuple[int, pd.DataFrame]:
    """The number of baseline numbers of some backbones, and a text table of those that moved.

    The furthest are first. Both tables have the columns `MEASURED`, as text. A number moved if it differs by
    more than the tolerance, is missing, or is over another number of items. Only numbers of the same images
    and ground truth are compared, and numbers that the baseline lacks are ignored. ``backbones`` are names
    and patterns, all if empty; for comparisons either side counts. Raises InputError for one that matches
    nothing in the baseline.
    """
    wanted = fitting({*baseline["backbone"], *baseline["other"]} - {""}, backbones)
    rows, today = text_rows(baseline), text_rows(now)
    keys = [key for key in rows if not backbones or {key.backbone, key.other} & wanted]
    moved = []
    for key in keys:
        row, other = rows[key], today.get(key)
        if reason := _reason(row, other, tolerance.limit(key.task)):
            value = other["value"] if other else ""
            change = float(value) - float(row["value"]) if value and row["value"] else math.inf
            moved.append((-abs(change), key, _cells(row, value, change, reason)))
    return len(keys), pd.DataFrame([cells for *_, cells in sorted(moved, key=lambda each: each[:2])])


def _reason(row: Row, today: Row | None, limit: Limit) -> str:
    """Why a number of the baseline counts as moved; "" if it does not."""
    if today is None:
        return "not measured on these images"
    if row["n"] != today["n"]:
        return f"of {today['n']} items, before of {row['n']}"
    if bool(row["value"]) != bool(today["value"]):
        return "has a score now" if today["value"] else "has no score now"
    if row["value"] and _distance(row, today, limit) > limit.amount:
        return f"by more than {fixed(limit.amount, 4).rstrip('0').rstrip('.')}"
    return ""


def _cells(row: Row, now: str, change: float, reason: str) -> Row:
    return {
        "backbone": f"{row['backbone']} with {row['other']}" if row["other"] else row["backbone"],
        "score": f"{row['task']} {row['metric']}, {row['dataset']} ({row['protocol']})",
        "layer": f"{layer_text(row)} {row['pooling']}",
        "baseline": row["value"],
        "now": now,
        "moved": "" if math.isinf(change) else f"{change:+.4g}",
        "why": reason,
    }


def read_baseline(folder: Path) -> pd.DataFrame:
    """The numbers of an output folder or of a folder of CSV files, `MEASURED` as text.

    Raises InputError if there is none. What earlier versions said of the numbers, in other columns, is left.
    """
    if (folder / "records").is_dir():
        return tidy_records(read_records([folder / "records"]))
    tables = folder if any(folder.glob("*.csv")) else folder / "tables"
    paths = sorted(path for path in tables.glob("*.csv") if not path.name.endswith(_DESCRIBING))
    expected = f"a baseline (an output folder, or CSV files of `leaderboard`) in {folder}"
    require(paths, expected, remedy="`layerboard export csv --to DIR` writes one")
    return _together([read_numbers(path, MEASURED) for path in paths])


def cut_files(folder: Path) -> tuple[list[str], str]:
    """A sentence for each file of a baseline that was changed after writing, by digests or its page.

    Then a sentence on files of which neither says whether they are whole; "" if there are none.
    """
    if (folder / "records").is_dir():
        return [], ""  # which carry checksums
    folder = folder if any(folder.glob("*.csv")) else folder / "tables"
    path = folder / SUMS
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    named = {line.partition("  ")[2]: f"{line}\n" for line in lines}
    sentences, unsealed = [], []
    for name in sorted({path.name for path in folder.glob("*.csv")} | {*named}):
        path, page = folder / name, folder / f"{name.removesuffix('.csv')}.md"
        text = path.read_bytes().decode(errors="replace") if path.is_file() else ""
        said = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else text_digest(text)
        same = sums_text({name: text})
        if not text.endswith("\n") or named.get(name, same) != same or text_digest(text) not in said:
            sentences.append(f"{path} has fewer numbers than expected, or others than were written")
        elif named and name not in named and not page.is_file():
            unlisted = f"is not listed in {folder / SUMS}, so nobody can tell whether it was changed"
            sentences.append(f"{path} {unlisted}")
        if name not in named and not page.is_file() and not name.endswith(_DESCRIBING):
            unsealed.append(name)
    if not unsealed:
        return sentences, ""
    return sentences, (
        f"Nothing says whether numbers were cut from {some(unsealed)}: {folder / SUMS} does not name them, "
        "and there is no page beside them; `layerboard export csv --to DIR` writes numbers with digests."
    )


def tidy_records(records: pd.DataFrame) -> pd.DataFrame:
    """The numbers of the suites of the records, columns `MEASURED` as text, each once."""
    return _together([tidy_frame(Board.of(records, suite)).astype(str) for suite in suites_of(records)])


def _together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of several tables, each number once, since suites share results."""
    rows = pd.concat(list(frames), ignore_index=True)[MEASURED]
    return rows[~pd.Series(keys_of(rows), dtype=object).duplicated().to_numpy()].reset_index(drop=True)
