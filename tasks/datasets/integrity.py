"""Integrity of data that others wrote: what is expected and found, in one form of sentence, and coverage."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from typing import Self

from layerboard.zoo.errors import InputError, counted, first_line, shortened, some
from layerboard.zoo.online import without_secrets


def mismatch(expected: str, found: object = "none", remedy: str = "") -> InputError:
    """The error that data are not what was expected; ``remedy`` is what to do, "" if that is clear.

    ``found`` is text, or a value that is shown as code and shortened.
    """
    return InputError(f"expected {expected}, found {_shown(found)}{remedy and f'; {remedy}'}")


def _shown(value: object) -> str:
    return value if isinstance(value, str) else shortened(value)


def require(holds: object, expected: str, found: object = "none", remedy: str = "") -> None:
    """Raise the error of `mismatch` unless something holds, such as that a list is not empty.

    The sentence is made in any case: for each of very many rows, ``if`` and `mismatch` are faster.
    """
    if not holds:
        raise mismatch(expected, found, remedy)


def require_no(wrong: Collection[object], expected: str, remedy: str = "", most: int = 3) -> None:
    """Raise the error of `mismatch` for items that are wrong, with the first ``most`` of them."""
    if wrong:
        raise mismatch(expected, some(map(_shown, wrong), most), remedy)


def require_distinct(items: Iterable[Hashable], expected: str, remedy: str = "") -> None:
    """Raise the error of `mismatch` for items that come more than once, with the first few of them."""
    twice = [item for item, count in Counter(items).items() if count > 1]
    require(not twice, expected, f"several of {some(map(shortened, twice))}", remedy)


@contextmanager
def explaining(
    what: str, *errors: type[Exception], remedy: str = "", kind: type[InputError] = InputError
) -> Iterator[None]:
    """Raise errors of libraries as an error of input: what was expected or cannot be done, why, and a remedy.

    The reason is the library's message, in one line and without secrets. An error of input stays as it is.
    """
    try:
        yield
    except InputError:
        raise
    except errors as error:
        message = str(error).strip()
        reason = without_secrets(message if "\n" in message else first_line(error))
        raise kind(f"{what}: {reason}{remedy and f'; {remedy}'}") from error


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number that fits into a float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # JSON's integers are unlimited
        return False


def numbers(value: object) -> list[float] | None:
    """A JSON list of finite numbers, or None for anything else."""
    return value if isinstance(value, list) and all(map(is_number, value)) else None


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
