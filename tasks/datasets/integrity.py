"""Integrity of data that others wrote: one form of sentence on what is expected and found, and numbers."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from math import isfinite

from layerboard.zoo.errors import InputError, first_line, shortened, some
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
