"""Errors for bad input."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from reprlib import Repr


class InputError(ValueError):
    """Something that the user gave is wrong: a path, a name, a file, an option.

    Its message is one sentence: what was expected, what was found, what to do. The command line prints it
    without a traceback and exits with 2.
    """


class MissingDataError(InputError):
    """Data that is not there at all, as opposed to data that is wrong."""


class UnreadableImageError(InputError):
    """An image file that is missing, truncated or no image."""


def unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does, or all of them."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known {what}s: {', '.join(names)}"
    return InputError(f"there is no {what} {shortened(name)}; {hint}")


def require_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise the error for the first of some names that does not exist."""
    for name in names:
        if name not in known:
            raise unknown(what, name, known)


def first_line(error: BaseException) -> str:
    """The first line of what a library says, or the kind of the error where it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def shortened(value: object) -> str:
    """What was found, as code, short enough for a sentence: the middle of a long one is left out."""
    return _SHORT.repr(value)


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100
