"""What a scorer found: for machines as JSON, for people as a table. Imports no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Json = str | float | None | Sequence["Json"] | Mapping[str, "Json"]
"""A value of a JSON file; never NaN."""

Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table for people: names down the left, columns across; None is an empty cell."""

    corner: str
    columns: tuple[str, ...]
    rows: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class ScoreReport:
    """Scores of the files that were given, and what they were computed with.

    Attributes:
        command: Which scorer, such as ``knn``.
        protocol: Whose rules: ``standard``, ``paper`` or ``official``.
        parameters: Files, and every number that decides the scores.
        n: Number of units behind the scores.
        unit: What they are.
        scores: Numbers by metric, in the scale; None where one is not defined.
        grid: The table for people.
        details: Scores of parts, and counts.
        scale: What 1 stands for: a percent, or the whole.
        reason: Why a score or a detail is None; "" where none is.
        notes: Sentences that a reader of the numbers must know.
    """

    command: str
    protocol: str
    parameters: Mapping[str, Json]
    n: int
    unit: str
    scores: Mapping[str, Json]
    grid: Grid
    details: Mapping[str, Json] = field(default_factory=dict)
    scale: Literal["percent", "fraction"] = "percent"
    reason: str = ""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Json]:
        """The report as one JSON object; ``reason`` is there only where a number is null."""
        content: dict[str, Json] = {
            "command": f"score {self.command}",
            "protocol": self.protocol,
            "parameters": self.parameters,
            "n": self.n,
            "unit": self.unit,
            "scale": self.scale,
            "scores": self.scores,
            "details": self.details,
            "notes": self.notes,
        }
        return content | ({"reason": self.reason} if self.reason else {})
