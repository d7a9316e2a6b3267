"""Errors for bad input, and text that is fit to be shown."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from reprlib import Repr

FEW = 40  # names that a sentence lists; of more it has the first ones


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
    hint = f"did you mean {close[0]!r}?" if close else f"there are {few_of(names)}"
    return InputError(f"there is no {what} {shortened(name)}; {hint}")


def few_of(names: Sequence[str]) -> str:
    """Names in a sentence: all of a few, the first ones of many."""
    return some(names, FEW - 1 if len(names) < FEW else 5)


def some(names: Iterable[str], most: int = 3) -> str:
    """The first few names as text."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most:,} more" if len(listed) > most else "")


def counted(count: int, plural: str) -> str:
    """A count of what is named in the plural: ``1 query``, ``2 queries``, ``1 image of each split``."""
    ending = r"(ies|(?<=ch)es|(?<=ss)es|(?<!s)s)\b"
    singular = re.sub(ending, lambda match: "y" if match[0] == "ies" else "", plural, count=1)
    return f"{count:,} {singular if count == 1 else plural}"


def require_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise the error for the first of some names that does not exist."""
    for name in names:
        if name not in known:
            raise unknown(what, name, known)


def first_line(error: BaseException) -> str:
    """The first line of what a library says, without numbers of errors; their kind where it says nothing."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    said = re.sub(r"^(\w+ ?[Ee]rror[:,] +)+", "", str(error).strip().partition("\n")[0])
    return said or kind_of(error)


def kind_of(error: BaseException) -> str:
    """What kind of error it is, in words: ``key error``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()


def printable(text: str) -> str:
    """Text whose characters steer no terminal and no order of reading, and which any XML may hold."""
    return text.translate(_UNPRINTABLE)


def shortened(value: object) -> str:
    """What was found, as code, short enough for a sentence: the middle of a long one is left out."""
    return _SHORT.repr(value)


# all control characters but line breaks and tabs, marks that turn text round, and what is no character
_UNPRINTABLE = dict.fromkeys(
    (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
) | dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "\ufffd")
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100
