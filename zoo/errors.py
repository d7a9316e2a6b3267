"""Errors for bad input."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Something that the user gave is wrong: a path, a name, a file, an option.

    Its message is one sentence: what was expected, what was found, what to do. The command line prints it
    without a traceback and exits with 2.
    """


class MissingDataError(InputError):
    """Data that is not there at all, as opposed to data that is wrong."""


def unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that does not exist, with the nearest one that does, or all of them."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known {what}s: {', '.join(names)}"
    return InputError(f"there is no {what} {name!r}; {hint}")
