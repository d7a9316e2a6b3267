"""Coverage: what was read of a dataset, compared with what it should contain, and how it was understood."""

from dataclasses import dataclass, replace
from typing import Self

from layerboard.zoo.errors import counted


@dataclass(frozen=True, slots=True)
class Count:
    """Number of items in a dataset on disk, and in the official dataset (None: any number).

    Both are tuples if items are counted by level.
    """

    what: str
    present: int | tuple[int, ...]
    expected: int | tuple[int, ...] | None = None

    def __str__(self) -> str:
        if isinstance(self.present, int) and self.expected is None:
            return counted(self.present, self.what)
        sides = (each if isinstance(each, tuple) else (each,) for each in (self.present, self.expected))
        both = " of ".join("/".join(f"{number:,}" for number in side) for side in sides)
        return f"{both} {self.what}" if isinstance(self.present, int) else f"{self.what} {both}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage: what was found of a dataset, compared with what it should contain."""

    counts: tuple[Count, ...] = ()
    notes: tuple[str, ...] = ()  # deviations that readers of the numbers must know; any makes it partial
    remarks: tuple[str, ...] = ()  # how the data were interpreted, such as a generated split

    @property
    def partial(self) -> bool:
        """Whether anything differs from the official dataset."""
        return bool(self.notes) or any(each.expected not in (None, each.present) for each in self.counts)

    def noted(self, *notes: str) -> Self:
        return replace(self, notes=(*self.notes, *notes))

    def remarked(self, *remarks: str) -> Self:
        return replace(self, remarks=(*self.remarks, *remarks))

    def joined(self, other: "Coverage") -> Self:
        """The counts, notes and remarks of both coverages, its own first."""
        joined = replace(self, counts=(*self.counts, *other.counts))
        return joined.noted(*other.notes).remarked(*other.remarks)

    def __str__(self) -> str:
        return "; ".join([", ".join(str(count) for count in self.counts), *self.remarks, *self.notes])
