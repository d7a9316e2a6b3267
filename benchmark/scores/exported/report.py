"""What a scorer found: for machines as JSON, for people as a table. Imports no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from layerboard.zoo.errors import InputError

Json = str | float | None | Sequence["Json"] | Mapping[str, "Json"]  # a value of a JSON file; never NaN
Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table for people: names down the left, columns across; None is an empty cell."""

    corner: str
    columns: tuple[str, ...]
    rows: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReport:
    """Scores of the files that were given, and what they were computed with."""

    protocol: str = "standard"  # whose rules
    parameters: Mapping[str, Json]  # files, and every number that decides the scores
    n: int  # number of units behind the scores
    unit: str  # what they are
    scale: Literal["percent", "fraction"] = "percent"  # what 1 stands for: a percent, or the whole
    scores: Mapping[str, Json]  # numbers by metric, in the scale; None where one is not defined
    details: Mapping[str, Json] = field(default_factory=dict)  # scores of parts, and counts
    notes: tuple[str, ...] = ()  # sentences that a reader of the numbers must know
    reason: str = ""  # why a score or a detail is None; "" where none is
    grid: Grid  # the table for people

    def as_json(self) -> dict[str, Json]:
        """The report as one JSON object; ``reason`` is there only where a number is null."""
        names = [each.name for each in fields(self) if each.name != "grid"]
        return {name: getattr(self, name) for name in names if name != "reason" or self.reason}


def one_of(**options: Path | None) -> tuple[str, Path]:
    """Name and path of the one option that was given; raises InputError for none or several."""
    given = [(name, path) for name, path in options.items() if path is not None]
    if len(given) != 1:
        flags = " or ".join(f"--{name}" for name in options)
        raise InputError(f"expected either {flags}, found {'both' if given else 'neither'}")
    return given[0]
