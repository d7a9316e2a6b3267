"""Numbers of today against a baseline that somebody keeps: what moved."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from leaderboards.check import Tolerance
from leaderboards.display import fixed
from leaderboards.pages.tidy import KEY, TIDY, read_tidy, tidy_frame
from leaderboards.records.record import read_records, suites_of
from zoo.errors import InputError, unknown

SHOWN = 20
"""Rows of a table of what moved; the others are counted."""

_DESCRIBING = (".inside.csv", ".cost.csv")
"""Ends of the names of files whose numbers do not rank."""

_NUMBER = [*KEY, "data"]
"""What tells a number from all others: only numbers of the same images and ground truth are compared."""

_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moved:
    """A number of the baseline that is another one now, or is not there.

    Attributes:
        row: The row of the baseline, columns `TIDY`.
        now: The number of today as text; "" where there is none.
        reason: Why it counts as moved.
    """

    row: dict[str, str]
    now: str
    reason: str

    @property
    def distance(self) -> float:
        """By how much it moved; infinite where nothing can be compared."""
        if not (self.now and self.row["value"]):
            return float("inf")
        return abs(float(self.now) - float(self.row["value"]))


@dataclass(frozen=True, slots=True)
class Guarded:
    """What became of a baseline.

    Attributes:
        count: Its numbers that were looked at.
        moved: Those that moved, the furthest first.
    """

    count: int
    moved: tuple[Moved, ...]


def guard(
    baseline: pd.DataFrame, now: pd.DataFrame, backbones: Sequence[str], tolerance: Tolerance
) -> Guarded:
    """Compare the numbers of some backbones with a baseline.

    A number moved where it differs by more than the tolerance, is gone, or is of another number of items.
    Numbers that the baseline lacks are none of its business.

    Args:
        baseline: Columns `TIDY`, as text.
        now: The same of today.
        backbones: Names and patterns; all if empty. Of comparisons, either side counts.
        tolerance: How far numbers may move.

    Raises:
        InputError: A name or pattern fits no backbone of the baseline.
    """
    _require_known(baseline, backbones)
    today = {_key(row): row for row in _rows(now)}
    rows = [row for row in _rows(baseline) if _meant(row, backbones)]
    found = [_moved(row, today.get(_key(row)), tolerance.of(row["task"])) for row in rows]
    moved = [one for one in found if one is not None]
    return Guarded(len(rows), tuple(sorted(moved, key=lambda one: (-one.distance, _key(one.row)))))


def read_baseline(folder: Path) -> pd.DataFrame:
    """The numbers of an output folder, or of a folder of the leaderboard's CSV files, columns `TIDY` as text.

    Raises:
        InputError: There are none, or a file is something else.
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
    text = [tidy_frame(records, suite).to_csv(index=False) for suite in suites_of(records)]
    return _together([pd.read_csv(io.StringIO(one), dtype=str, keep_default_na=False) for one in text])


def moved_table(found: Guarded) -> pd.DataFrame:
    """What moved, the furthest first, at most `SHOWN` rows of text."""
    return pd.DataFrame([_cells(one) for one in found.moved[:SHOWN]])


def _cells(one: Moved) -> dict[str, str]:
    row = one.row
    layer = "final" if row["tap"] == "final" else row["layer"]
    layer += "" if row["tap"] in ("block", "final") else f" {row['tap']}"
    other = f" with {row['other']}" if row["other"] else ""
    both = bool(one.now and row["value"])
    return {
        "backbone": f"{row['backbone']}{other}",
        "score": f"{row['task']} {row['metric']}, {row['dataset']} ({row['protocol']})",
        "layer": f"{layer} {row['pooling']}",
        "baseline": row["value"],
        "now": one.now,
        "moved": f"{float(one.now) - float(row['value']):+.4g}" if both else "",
        "why": one.reason,
    }


def _moved(row: dict[str, str], today: dict[str, str] | None, limit: float) -> Moved | None:
    """What happened to a number of the baseline; None where nothing did."""
    if today is None:
        return Moved(row, "", "not measured on these images")
    now = today["value"]
    if row["n"] != today["n"]:
        return Moved(row, now, f"of {today['n']} items, before of {row['n']}")
    if bool(row["value"]) != bool(now):
        return Moved(row, now, "has a score now" if now else "has no score now")
    if now and round(abs(float(now) - float(row["value"])), 6) > limit:
        return Moved(row, now, f"by more than {fixed(limit, 4).rstrip('0').rstrip('.')}")
    return None


def _together(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of several tables, each number once: suites share results."""
    joined = pd.concat(list(frames), ignore_index=True)[TIDY]
    return joined.drop_duplicates(_NUMBER).reset_index(drop=True)


def _rows(frame: pd.DataFrame) -> list[dict[str, str]]:
    return [{str(name): str(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _key(row: dict[str, str]) -> _Key:
    return tuple(row[column] for column in _NUMBER)


def _meant(row: dict[str, str], backbones: Sequence[str]) -> bool:
    names = [name for name in (row["backbone"], row["other"]) if name]
    return not backbones or any(fnmatchcase(name, one) for name in names for one in backbones)


def _require_known(baseline: pd.DataFrame, backbones: Sequence[str]) -> None:
    names = sorted({*baseline["backbone"]})
    for one in backbones:
        if not any(fnmatchcase(name, one) for name in names):
            raise unknown("backbone", one, names)
