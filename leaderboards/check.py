"""Two tidy tables of one suite compared: what differs, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from leaderboards.display import COMPARISON_TASK
from leaderboards.pages.csv import DECIMALS, KEY

Row = dict[str, str]
Key = tuple[str, ...]

GROUP = ["backbone", "task", "dataset", "protocol"]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may move and still count as the same.

    Attributes:
        score: Points of a score.
        cka: Difference of a CKA.
    """

    score: float = 0.5
    cka: float = 0.02

    def of(self, task: str) -> float:
        """The tolerance for a task's numbers."""
        return self.cka if task == COMPARISON_TASK else self.score


TOLERANCE = Tolerance()


def differences(committed: pd.DataFrame, fresh: pd.DataFrame, tolerance: Tolerance) -> list[str]:
    """One sentence for each backbone and task, and kind of difference, in sorted order.

    Args:
        committed: Columns `leaderboards.pages.csv.TIDY`, as text.
        fresh: The same from the records of today.
        tolerance: How far values may differ.
    """
    old, new = _by_group(committed), _by_group(fresh)
    sentences = []
    for group in sorted({*old, *new}):
        backbone, task, dataset, protocol = group
        name = f"{backbone}, {task} on {dataset} ({protocol})"
        before, now = old.get(group, {}), new.get(group, {})
        lost, came = len(before.keys() - now.keys()), len(now.keys() - before.keys())
        if lost:
            sentences.append(f"{name}: {_rows(lost)} that the records lack; run the suite in full")
        if came:
            sentences.append(f"{name}: lacks {_rows(came)} of the records; write the leaderboard again")
        both = [(before[key], now[key]) for key in before if key in now]
        sentences += [f"{name}: {change}" for change in _changes(both, tolerance.of(task))]
    return sentences


def _by_group(table: pd.DataFrame) -> dict[Key, dict[Key, Row]]:
    """The rows of a tidy table by backbone and task, then by what they are of."""
    groups: dict[Key, dict[Key, Row]] = {}
    for values in table.itertuples(index=False, name=None):
        row: Row = dict(zip(table.columns, map(str, values), strict=True))
        group = groups.setdefault(tuple(row[column] for column in GROUP), {})
        group[tuple(row[column] for column in KEY)] = row
    return groups


def _rows(count: int) -> str:
    """A count of rows."""
    return "1 row" if count == 1 else f"{count} rows"


def _changes(both: Sequence[tuple[Row, Row]], limit: float) -> list[str]:
    """What differs between rows that both tables have, the committed one first."""
    changes = []
    scored = [(old, new) for old, new in both if old["value"] and new["value"]]
    moved = [pair for pair in scored if _distance(pair) > limit]
    if moved:
        old, new = max(moved, key=_distance)
        changes.append(
            f"{_rows(len(moved))} moved by more than {limit:g}, most {_place(old)}: "
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
    return [f"{_rows(len(rows))} {words}, first {_place(rows[0])}" for rows, words in turns if rows]


def _distance(pair: tuple[Row, Row]) -> float:
    """How far a value moved, to the decimals of the table."""
    return round(abs(float(pair[0]["value"]) - float(pair[1]["value"])), DECIMALS)


def _place(row: Row) -> str:
    """Where in a backbone a row belongs."""
    layer = "final" if row["tap"] == "final" else f"layer {row['layer']}"
    layer += f" {row['tap']}" if row["tap"] not in ("block", "final") else ""
    other = f" with {row['other']} layer {row['other_layer']}" if row["other"] else ""
    return f"{layer}, {row['pooling']}{other}"
