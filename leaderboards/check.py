"""Committed pages and the records of today compared: what differs, in sentences."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import inside_name, page_name
from leaderboards.pages.csv import file_digest, read_numbers
from leaderboards.pages.figures import figure_differences
from leaderboards.pages.inside.tables import INSIDE, inside_frame
from leaderboards.pages.tidy import TIDY, tidy_frame
from leaderboards.records.key import TOLERANCE, Limit, RecordKey, Tolerance, keys_of
from leaderboards.records.record import suites_of
from zoo.errors import InputError

Row = dict[str, str]
Group = tuple[str, str, str, str]  # backbone, task, dataset and protocol
Rows = dict[RecordKey, Row]
"""Rows of one group and set of data; the key tells them apart by anything but the data."""


def check_pages(records: pd.DataFrame, folder: Path, tolerance: Tolerance = TOLERANCE) -> list[str]:
    """What differs between the committed files of the records' suites and the records.

    Rows that are missing or new, values beyond the tolerance, counts and partial data; not dates, versions,
    devices or which layer is best. Of intervals, only whether they are there; they move with the scores, and
    how often a layer is chosen and what is tied move more than the scores do. Analyses are compared where
    the records have any: they are not run where no task is named. Costs are not: every machine has its own.
    Where either has several sets of data by one name, each is compared with the one of its digest.

    Returns:
        One sentence a difference; none where the committed files are current.
    """
    sentences: list[str] = []
    for suite in suites_of(records):
        board = Board.of(records, suite)
        inside, ranked = inside_name(suite), page_name(suite)
        if len(board.measured) or (len(board.analysed) and (folder / f"{ranked}.csv").is_file()):
            sentences += _check_page(folder, ranked, TIDY, tidy_frame(board), tolerance)
        if len(board.analysed):
            sentences += _check_page(folder, inside, INSIDE, inside_frame(board.analysed), tolerance)
    return sentences


def _check_page(
    folder: Path, name: str, columns: Sequence[str], fresh: pd.DataFrame, tolerance: Tolerance
) -> list[str]:
    """What differs between one page with its numbers and the numbers of today."""
    page, numbers = (folder / f"{name}.{ending}" for ending in ("md", "csv"))
    absent = [path for path in (page, numbers) if not path.is_file()]
    sentences = [f"{path.name} is not in {folder}; write the leaderboard again" for path in absent]
    if numbers in absent:
        return sentences
    try:
        committed = read_numbers(numbers, columns)
    except InputError as error:
        return [*sentences, str(error)]
    if page not in absent:
        digest = file_digest(numbers.read_text(encoding="utf-8"))
        text = page.read_text(encoding="utf-8")
        if digest not in text:
            sentences.append(f"{page.name} was not written with {numbers.name}; write the leaderboard again")
        sentences += figure_differences(text, folder, name)
    return sentences + [
        f"{numbers.name}: {sentence}" for sentence in differences(committed, fresh, tolerance)
    ]


def differences(committed: pd.DataFrame, fresh: pd.DataFrame, tolerance: Tolerance) -> list[str]:
    """One sentence for each backbone and task, and kind of difference, in sorted order.

    Args:
        committed: Columns `leaderboards.pages.tidy.TIDY`, or `leaderboards.pages.inside.tables.INSIDE` of
            analyses, as text.
        fresh: The same from the records of today.
        tolerance: How far values may differ.
    """
    old, new = _by_group(committed), _by_group(fresh)
    sentences = []
    for group in sorted({*old, *new}):
        backbone, task, dataset, protocol = group
        name = f"{backbone}, {task} on {dataset} ({protocol})"
        limit = tolerance.limit(task, analysis="head" in committed)
        for data, before, now in _of_one_data(old.get(group, {}), new.get(group, {})):
            sentences += [f"{name}{data}: {sentence}" for sentence in _differences(before, now, limit)]
    return sentences


def _by_group(table: pd.DataFrame) -> dict[Group, dict[str, Rows]]:
    """The rows of a table by backbone and task, then by digest of the data."""
    groups: dict[Group, dict[str, Rows]] = {}
    for key, row in zip(keys_of(table), table.astype(str).to_dict("records"), strict=True):
        group = groups.setdefault((key.backbone, key.task, key.dataset, key.protocol), {})
        group.setdefault(key.data, {})[key._replace(data="")] = {
            str(name): text for name, text in row.items()
        }
    return groups


def _of_one_data(old: Mapping[str, Rows], new: Mapping[str, Rows]) -> list[tuple[str, Rows, Rows]]:
    """Rows of the same data, and words for it where there are several by the name.

    One set is compared with one set whatever the digests say: they are of sizes of files, and images that
    are rendered on two machines may differ in theirs.
    """
    if len(old) < 2 and len(new) < 2:
        return [("", next(iter(old.values()), {}), next(iter(new.values()), {}))]
    return [(f", data {data}", old.get(data, {}), new.get(data, {})) for data in sorted({*old, *new})]


def _differences(before: Rows, now: Rows, limit: Limit) -> list[str]:
    """What differs between the rows of a backbone and task on the same data."""
    lost, came = len(before.keys() - now.keys()), len(now.keys() - before.keys())
    sentences = []
    if lost:
        sentences.append(f"{_rows(lost)} that the records lack; run the suite in full")
    if came:
        sentences.append(f"lacks {_rows(came)} of the records; write the leaderboard again")
    return sentences + _changes([(before[key], now[key]) for key in before if key in now], limit)


def _rows(count: int) -> str:
    """A count of rows."""
    return "1 row" if count == 1 else f"{count} rows"


def _changes(both: Sequence[tuple[Row, Row]], limit: Limit) -> list[str]:
    """What differs between rows that both tables have, the committed one first."""
    changes = []
    scored = [(old, new) for old, new in both if old["value"] and new["value"]]
    distances = [limit.distance(float(old["value"]), float(new["value"])) for old, new in scored]
    moved = sum(distance > limit.amount for distance in distances)
    if moved:
        old, new = scored[distances.index(max(distances))]
        changes.append(
            f"{_rows(moved)} moved by more than {limit}, most {_layer_text(old)}: "
            f"committed {float(old['value']):g}, now {float(new['value']):g}"
        )
    changes += _turned(both, "value", "empty", "scored")
    changes += _turned(scored, "ci_low", "without an interval", "with an interval")
    for column in ("n", "partial"):
        other = [(old[column], new[column]) for old, new in both if old[column] != new[column]]
        changes += [f"{column} was {other[0][0]}, is {other[0][1]}"] if other else []
    return changes


def _turned(both: Sequence[tuple[Row, Row]], column: str, empty: str, filled: str) -> list[str]:
    """Rows in which a column was filled or emptied; words for both states."""
    back = [old for old, new in both if new[column] and not old[column]]
    gone = [old for old, new in both if old[column] and not new[column]]
    turns = ((back, f"{empty}, now {filled}"), (gone, f"{filled}, now {empty}"))
    return [f"{_rows(len(rows))} {words}, first {_layer_text(rows[0])}" for rows, words in turns if rows]


def _layer_text(row: Row) -> str:
    """Where in a backbone a row belongs."""
    layer = "final" if row["tap"] == "final" else f"layer {row['layer']}"
    layer += f" {row['tap']}" if row["tap"] not in ("block", "final") else ""
    if row.get("head", "-1") != "-1":
        layer += f" head {row['head']}"
    other = f" with {row['other']} layer {row['other_layer']}" if row.get("other") else ""
    return f"{layer}, {row['pooling']}{other}"
