"""Numbers of today against a baseline that somebody keeps: what moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import fixed
from leaderboards.pages.tidy import TIDY, read_tidy, tidy_frame
from leaderboards.records.key import Limit, Row, Tolerance, keys_of, layer_text, text_rows
from leaderboards.records.record import read_records, suites_of
from zoo.errors import InputError, unknown

SHOWN = 20  # rows of a table of what moved; the others are counted
_DESCRIBING = (".inside.csv", ".cost.csv")  # ends of the names of files whose numbers do not rank


@dataclass(frozen=True, slots=True)
class Moved:
    """A number of the baseline that is another one now, or is not there."""

    row: Row  # of the baseline, columns `TIDY`
    now: str  # the number of today; "" where there is none
    reason: str  # why it counts as moved

    @property
    def distance(self) -> float:
        """How much the number moved; infinite where nothing can be compared."""
        if not (self.now and self.row["value"]):
            return float("inf")
        return abs(float(self.now) - float(self.row["value"]))


def regression_check(
    baseline: pd.DataFrame, now: pd.DataFrame, backbones: Sequence[str], tolerance: Tolerance
) -> tuple[int, tuple[Moved, ...]]:
    """How many numbers of some backbones a baseline has, and those that moved, the furthest first.

    A number moved where it differs by more than the tolerance, is gone, or is of another number of items;
    only numbers of the same images and ground truth are compared. Numbers that the baseline lacks are none
    of its business.

    Args:
        baseline: Columns `TIDY`, as text.
        now: The same of today.
        backbones: Names and patterns; all if empty. Of comparisons, either side counts.
        tolerance: How far numbers may move.

    Raises:
        InputError: A name or pattern fits no backbone of the baseline.
    """
    names = sorted({*baseline["backbone"]})
    for pattern in backbones:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise unknown("backbone", pattern, names)
    today = text_rows(now)
    rows = {
        key: row
        for key, row in text_rows(baseline).items()
        if not backbones
        or any(fnmatchcase(name, pattern) for name in (key.backbone, key.other) for pattern in backbones)
    }
    moved = {
        key: change
        for key, row in rows.items()
        if (change := _moved(row, today.get(key), tolerance.limit(key.task)))
    }
    order = sorted(moved, key=lambda key: (-moved[key].distance, key))
    return len(rows), tuple(moved[key] for key in order)


def read_baseline(folder: Path) -> pd.DataFrame:
    """The numbers of an output folder, or of a folder of the leaderboard's CSV files, columns `TIDY` as text.

    Raises InputError where there are none, or a file is something else.
    """
    if (folder / "records").is_dir():
        return tidy_records(read_records([folder / "records"]))
    tables = folder if any(folder.glob("*.csv")) else folder / "tables"
    paths = sorted(path for path in tables.glob("*.csv") if not path.name.endswith(_DESCRIBING))
    if not paths:
        raise InputError(
            f"expected a baseline (an output folder, or CSV files of `leaderboard`) in {folder}, found none; "
            "`python -m benchmark export csv --to DIR` writes one"
        )
    return _together([read_tidy(path) for path in paths])


def tidy_records(records: pd.DataFrame) -> pd.DataFrame:
    """The numbers of the records' suites, columns `TIDY` as text, each once."""
    return _together([tidy_frame(Board.of(records, suite)).astype(str) for suite in suites_of(records)])


def _together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of several tables, each number once: suites share results."""
    rows = pd.concat(list(frames), ignore_index=True)[TIDY]
    return rows[~pd.Series(keys_of(rows), dtype=object).duplicated().to_numpy()].reset_index(drop=True)


def moved_table(moved: Sequence[Moved]) -> pd.DataFrame:
    """What moved, the furthest first, at most `SHOWN` rows of text."""
    return pd.DataFrame([_cells(number) for number in moved[:SHOWN]])


def _cells(moved: Moved) -> dict[str, str]:
    row = moved.row
    other = f" with {row['other']}" if row["other"] else ""
    both = bool(moved.now and row["value"])
    return {
        "backbone": f"{row['backbone']}{other}",
        "score": f"{row['task']} {row['metric']}, {row['dataset']} ({row['protocol']})",
        "layer": f"{layer_text(row)} {row['pooling']}",
        "baseline": row["value"],
        "now": moved.now,
        "moved": f"{float(moved.now) - float(row['value']):+.4g}" if both else "",
        "why": moved.reason,
    }


def _moved(row: Row, today: Row | None, limit: Limit) -> Moved | None:
    if today is None:
        return Moved(row, "", "not measured on these images")
    now = today["value"]
    if row["n"] != today["n"]:
        return Moved(row, now, f"of {today['n']} items, before of {row['n']}")
    if bool(row["value"]) != bool(now):
        return Moved(row, now, "has a score now" if now else "has no score now")
    if now and limit.is_moved(float(row["value"]), float(now)):
        return Moved(row, now, f"by more than {fixed(limit.amount, 4).rstrip('0').rstrip('.')}")
    return None
