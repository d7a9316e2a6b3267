"""Results of a scorer: JSON for machines, a table for people. Imports no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from layerboard.zoo.errors import InputError

Json = str | float | None | Sequence["Json"] | Mapping[str, "Json"]  # a value of a JSON file; never NaN
JsonMap = Mapping[str, Json]  # members of the JSON of a report
Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table for people with named rows and columns; None is an empty cell."""

    corner: str
    columns: tuple[str, ...]
    rows: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreReport:
    """Scores of the given files, and the parameters that produced them."""

    protocol: str = "standard"  # whose rules apply
    parameters: JsonMap  # files, and every number that decides the scores
    n: int  # number of units behind the scores
    unit: str  # name of the units
    scale: Literal["percent", "fraction"] = "percent"  # the scale of the scores: percent or fraction
    scores: JsonMap  # numbers by metric, in the scale; None if undefined
    details: JsonMap = field(default_factory=dict)  # scores of parts, and counts
    notes: tuple[str, ...] = ()  # notes that a reader of the numbers must know
    reason: str = ""  # why a score or a detail is None; "" if none is
    grid: Grid  # the table for people

    def as_json(self) -> dict[str, Json]:
        """The report as one JSON object; ``reason`` is present only if a number is null."""
        names = [each.name for each in fields(self) if each.name != "grid"]
        return {name: getattr(self, name) for name in names if name != "reason" or self.reason}


def one_of(**options: Path | None) -> tuple[str, Path]:
    """Name and path of the one option that was given; raises InputError for none or several."""
    given = [(name, path) for name, path in options.items() if path is not None]
    if len(given) != 1:
        flags = " or ".join(f"--{name}" for name in options)
        raise InputError(f"expected either {flags}, found {'both' if given else 'neither'}")
    return given[0]
