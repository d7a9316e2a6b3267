"""Committed pages and the records of today compared: what differs, in sentences."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import page_name
from leaderboards.pages.csv import file_digest, read_numbers
from leaderboards.pages.figures import figure_differences
from leaderboards.pages.inside.tables import INSIDE, inside_frame
from leaderboards.pages.tidy import TIDY, tidy_frame
from leaderboards.records.key import TOLERANCE, Limit, RecordKey, Row, Tolerance, layer_text, text_rows
from leaderboards.records.record import suites_of
from zoo.errors import InputError

Group = tuple[str, ...]  # backbone, task, dataset and protocol
Rows = dict[RecordKey, Row]
"""Rows of one group and set of data; the key tells them apart by anything but the data."""


def check_pages(records: pd.DataFrame, folder: Path, tolerance: Tolerance = TOLERANCE) -> list[str]:
    """What differs between the committed files of the records' suites and the records.

    Rows that are missing or new, values beyond the tolerance, counts and partial data; not dates, versions,
    devices or which layer is best. Of intervals, only whether they are there; they move with the scores, and
    how often a layer is chosen and what is tied move more than the scores do. Analyses are compared where
    the records have any: they are not run where no task is named. Costs are not: every machine has its own.
    Where either has several sets of data by one name, each is compared with the one of its digest.
    """
    sentences: list[str] = []
    for suite in suites_of(records):
        board = Board.of(records, suite)
        inside, ranked = page_name(suite, "inside"), page_name(suite)
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
        text = page.read_text(encoding="utf-8")
        if file_digest(numbers.read_text(encoding="utf-8")) not in text:
            sentences.append(f"{page.name} was not written with {numbers.name}; write the leaderboard again")
        sentences += figure_differences(text, folder, name)
    changes = differences(committed, fresh, tolerance)
    return sentences + [f"{numbers.name}: {sentence}" for sentence in changes]


def differences(committed: pd.DataFrame, fresh: pd.DataFrame, tolerance: Tolerance) -> list[str]:
    """One sentence for each backbone and task, and kind of difference, in sorted order.

    Both tables have the columns `leaderboards.pages.tidy.TIDY`, or `leaderboards.pages.inside.tables.INSIDE`
    of analyses, the committed one as text.
    """
    old, new = _by_group(committed), _by_group(fresh)
    sentences = []
    for group in sorted({*old, *new}):
        backbone, task, dataset, protocol = group
        name = f"{backbone}, {task} on {dataset} ({protocol})"
        limit = tolerance.limit(task, analysis="head" in committed)
        before, now = old.get(group, {}), new.get(group, {})
        several = len(before) > 1 or len(now) > 1
        if not several:
            # one set is compared with one set whatever the digests say: they are of sizes of files, and
            # images that are rendered on two machines may differ in theirs
            before, now = ({"": next(iter(sets.values()), {})} for sets in (before, now))
        for data in sorted({*before, *now}):
            changes = _differences(before.get(data, {}), now.get(data, {}), limit)
            where = f"{name}, data {data}" if several else name
            sentences += [f"{where}: {sentence}" for sentence in changes]
    return sentences


def _by_group(table: pd.DataFrame) -> dict[Group, dict[str, Rows]]:
    groups: dict[Group, dict[str, Rows]] = {}
    for key, row in text_rows(table).items():
        rows = groups.setdefault(key[:4], {}).setdefault(key.data, {})
        rows[key._replace(data="")] = row
    return groups


def _differences(before: Rows, now: Rows, limit: Limit) -> list[str]:
    lost, came = len(before.keys() - now.keys()), len(now.keys() - before.keys())
    both = [(before[key], now[key]) for key in before if key in now]
    scored = [(old, new) for old, new in both if old["value"] and new["value"]]
    distances = [limit.distance(float(old["value"]), float(new["value"])) for old, new in scored]
    sentences = [f"{_rows(lost)} that the records lack; run the suite in full"] if lost else []
    if came:
        sentences.append(f"lacks {_rows(came)} of the records; write the leaderboard again")
    if moved := sum(distance > limit.amount for distance in distances):
        old, new = scored[distances.index(max(distances))]
        sentences.append(
            f"{_rows(moved)} moved by more than {limit}, most {_layer_text(old)}: "
            f"committed {float(old['value']):g}, now {float(new['value']):g}"
        )
    sentences += _turned(both, "value", "empty", "scored")
    sentences += _turned(scored, "ci_low", "without an interval", "with an interval")
    for column in ("n", "partial"):
        other = [(old[column], new[column]) for old, new in both if old[column] != new[column]]
        sentences += [f"{column} was {other[0][0]}, is {other[0][1]}"] if other else []
    return sentences


def _turned(both: Sequence[tuple[Row, Row]], column: str, empty: str, filled: str) -> list[str]:
    """Rows in which a column was filled or emptied; words for both states."""
    back = [old for old, new in both if new[column] and not old[column]]
    gone = [old for old, new in both if old[column] and not new[column]]
    turns = ((back, f"{empty}, now {filled}"), (gone, f"{filled}, now {empty}"))
    return [f"{_rows(len(rows))} {words}, first {_layer_text(rows[0])}" for rows, words in turns if rows]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _layer_text(row: Row) -> str:
    layer = layer_text(row)
    layer = layer if layer == "final" else f"layer {layer}"
    if row.get("head", "-1") != "-1":
        layer += f" head {row['head']}"
    other = f" with {row['other']} layer {row['other_layer']}" if row.get("other") else ""
    return f"{layer}, {row['pooling']}{other}"
