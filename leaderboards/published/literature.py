"""Published numbers to compare a run with: the tables in ``published/``, one file per source."""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, Literal, get_args

from layerboard.leaderboards.blocks.display import POOLINGS, task_display
from layerboard.tasks.datasets.integrity import explaining
from layerboard.tasks.framework.protocols import PROTOCOLS
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.errors import InputError
from layerboard.zoo.reading import read_regular
from layerboard.zoo.spec import Tap

LARGEST = 2**26  # bytes of a file of published numbers
FOLDER = Path(__file__).parents[1] / "published"

with (FOLDER / "sources.csv").open(encoding="utf-8", newline="") as file:
    # the publication of each file of numbers, in the order in which they are read
    SOURCES: dict[str, str] = {row["source"]: row["publication"] for row in csv.DictReader(file)}

Rule = Literal["best", "layer", "last", "final", "either", "draws"]

CHOICES: dict[str, tuple[str, ...]] = {  # allowed values of cells in these columns
    "protocol": (*(protocol.name for protocol in PROTOCOLS), "none"),
    "pooling": tuple(POOLINGS),
    "tap": get_args(Tap),
    "rule": get_args(Rule),
    "printed": ("percent", "fraction", "error"),
    "second_hand": ("yes", "no"),
    "frozen": ("yes", "no"),
}

INPUT_SIZE = 224  # input size in pixels of the backbones in every source; views scale with it


@dataclass(frozen=True, kw_only=True)
class Published:
    """One published number, in the terms of this package, and the run that it can be compared with."""

    source: str  # key of its source in `SOURCES`
    table: str  # location in the source
    backbone: str
    task: str
    dataset: str
    protocol: str  # of a comparable run; ``none`` if there is none
    metric: str
    pooling: str  # "": that of the leaderboard
    tap: Tap
    # of the best block, a block, the last, the final norm, the better of these two, or the mean of the floor
    rule: Rule
    layer: int | None  # block of the rule ``layer``, or the best one, from 1; None if not published
    chosen_decimals: int | None  # of the percentages among which the best block was chosen; None if exact
    value: float  # in percent
    decimals: int  # number of printed decimals
    printed: str  # as percent or fraction; an error is in its own unit, and a lower one is better
    second_hand: bool  # whether it was read from a third party's transcription
    not_comparable: str  # why no run can be compared with it; "" if one can
    conditions: str  # how it was measured, if the protocol does not say so, or differs
    frozen: bool = True  # whether the backbone itself was not trained on the task
    input_size: int = INPUT_SIZE  # as in records: 224 if the protocol determines the size of images

    @property
    def comparable(self) -> bool:
        """Whether a run can be compared with it."""
        return not self.not_comparable

    @property
    def origin(self) -> str:
        """Where it was published."""
        return ", ".join(filter(None, (self.source, self.table)))

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit, in percent: the bound of its rounding error."""
        return 0.5 * 10.0**-self.decimals


COLUMNS = tuple(field.name for field in fields(Published))
NEEDED = ("source", "backbone", "task", "dataset", "metric", "value")  # columns; others may be missing
USUAL = {"protocol": "standard", "rule": "best", "printed": "percent", "second_hand": "no", "frozen": "yes"}
"""Values of empty cells."""

WHOLE = ("decimals", "layer", "chosen_decimals", "input_size")  # columns of whole numbers

UNIQUE = ("table", "backbone", "task", "dataset", "protocol", "metric", "pooling", "rule", "conditions")
"""What no two numbers of a source have in common."""


@cache
def all_published() -> tuple[Published, ...]:
    """Every published number, in the order of `SOURCES` and of the files."""
    return tuple(number for source in SOURCES for number in read_published(FOLDER / f"{source}.csv"))


def read_published(path: Path) -> tuple[Published, ...]:
    """The numbers of a CSV file of the source with its name.

    Raises InputError if it cannot be read, or if a row is inconsistent.
    """
    with explaining(f"cannot read the published numbers in {path}", OSError, ValueError, csv.Error):
        text = read_regular(path, LARGEST).decode("utf-8-sig")
        reader = csv.DictReader(StringIO(text, newline=""), strict=True)
        names = tuple(reader.fieldnames or ())
        rows = [(reader.line_num, row) for row in reader]
    missing = sorted({*NEEDED} - {*names})
    if wrong := missing or sorted({name for name in names if name not in COLUMNS or names.count(name) > 1}):
        raise InputError(
            f"{path}, line 1: expected the columns {', '.join(NEEDED)}, further ones once each "
            f"(docs/reference/columns.md); found {'without' if missing else 'with'} {', '.join(wrong)}"
        )
    numbers: list[Published] = []
    lines: dict[tuple[object, ...], int] = {}
    for line, row in rows:
        with explaining(f"{path}, line {line}", ValueError):
            number = _parse(row)
            if number.source != path.stem:
                raise ValueError(f"expected the source {path.stem} of the file's name, not {number.source}")
            first = lines.setdefault(tuple(getattr(number, column) for column in UNIQUE), line)
            if first != line:
                raise ValueError(f"says the same as line {first}; keep one of them")
            numbers.append(number)
    return tuple(numbers)


def _parse(row: Mapping[str, str]) -> Published:
    """One checked row; raises ValueError if it is inconsistent."""
    if any(not isinstance(text, str) for text in row.values()):
        raise ValueError("expected as many cells as columns")
    if empty := [name for name in NEEDED if not row[name].strip()]:
        raise ValueError(f"{', '.join(empty)} may not be empty")
    row = {name: row.get(name, "").strip() or USUAL.get(name, "") for name in COLUMNS}
    row["tap"] = row["tap"] or ("final" if row["rule"] == "final" else "block")
    row["decimals"] = row["decimals"] or str(len(row["value"].partition(".")[2]))
    for column, words in {"source": tuple(SOURCES), **CHOICES}.items():
        if row[column] not in words and (row[column] or column != "pooling"):
            raise ValueError(f"{column} must be one of {', '.join(words)}, not {row[column]!r}")
    numbers = {name: _whole(row[name], name) for name in WHOLE}
    answers = {name: row[name] == "yes" for name in ("second_hand", "frozen")}
    changed: dict[str, Any] = {**row, **numbers, **answers}
    changed["value"] = _percent(row["value"], numbers["decimals"])
    number = Published(**changed | {"input_size": numbers["input_size"] or INPUT_SIZE})
    _require_consistent(number)
    return number


def _require_consistent(number: Published) -> None:
    """Raise ValueError for an unknown protocol, task or metric, or a layer that does not fit the rule."""
    known, metrics = [task.name for task in TASKS], task_display(number.task).metrics
    if (number.protocol == "none") == number.comparable:
        expected = "expected a protocol, or the protocol none and the reason in not_comparable"
        stated = f"the protocol {number.protocol} and the reason {number.not_comparable!r}"
        raise ValueError(f"{expected}; found {stated}")
    if number.comparable and number.task not in known:
        raise ValueError(f"there is no task {number.task!r}; known tasks: {', '.join(known)}")
    if number.comparable and number.metric not in metrics:
        raise ValueError(f"{number.task} has no metric {number.metric!r}; it has {', '.join(metrics)}")
    if (number.tap == "final") != (number.rule == "final"):
        raise ValueError(f"tap and rule are both final or neither is; found {number.tap}, {number.rule}")
    if number.rule == "layer" and number.layer is None:
        raise ValueError("the rule layer needs the number of the block in the column layer")
    if number.rule not in ("best", "layer") and number.layer is not None:
        raise ValueError(f"the rule {number.rule} takes no layer; found {number.layer}")


def _whole(text: str, column: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise ValueError(f"{column} must be a whole number or empty, not {text!r}")
    return int(text)


def _percent(text: str, decimals: int | None) -> float:
    digits = re.fullmatch(r"[0-9]+(?:\.([0-9]+))?", text)
    if digits is None or not 0 <= float(text) <= 100:
        raise ValueError(f"the value must be a percentage from 0 to 100, not {text!r}")
    if len(digits[1] or "") != decimals:
        raise ValueError(f"the value {text} has not the decimals that are given: {decimals}")
    return float(text)
