"""Errors for bad input, and text that is safe to show."""

import errno
import fnmatch
import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from reprlib import Repr

from layerboard.zoo.words import WORDS

LISTED = ("backbone", "task", "dataset", "suite", "protocol")  # what `layerboard list` lists
FEW = 40  # names that a sentence lists; of more, only the first ones
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_ALIKE = {"option": 0.7}  # least similarity of a name with a slip, more where words mean other things
SHORT = 3  # letters of a word that is too short to be recognised inside of another


class InputError(ValueError):
    """Wrong input of the user: a path, a name, a file, an option.

    Its message is one sentence: what was expected, what was found, what to do. The command line prints it
    without a traceback and exits with 2.
    """


class DamagedError(InputError):
    """A file of results that is not what was written: what was found, and what to do if it is one's own."""

    def __init__(self, found: str, remedy: str = "delete the file and run again") -> None:
        super().__init__(found, remedy)

    def __str__(self) -> str:
        return "; ".join(self.args)


class MissingDataError(InputError):
    """Data that are missing, as opposed to data that are wrong."""


class UnreadableImageError(InputError):
    """An image file that is missing, truncated or no image."""


def ensure(holds: object, sentence: str) -> None:
    """Raise InputError with a sentence unless something holds, such as that a list has members."""
    if not holds:
        raise InputError(sentence)


def unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for an unknown name, with the likely known ones, or all of them."""
    names = list(known)
    close = likely(what, name, names)
    hint = f"did you mean {either(map(repr, close))}?" if close else f"there are {few_of(names)}"
    if len(close) > 1 and what in LISTED:
        hint += f" `layerboard list {what}s` tells what each is"
    return InputError(f"there is no {what} {shortened(name)}; {hint}")


def likely(what: str, name: str, known: Collection[str]) -> list[str]:
    """The known names that a wrong one may mean, the likeliest first, at most three; none if all are unlike.

    It may be written otherwise (case, blanks, singular, American spelling), begin a known name, be another
    word for it (`zoo.words`, by what it names), or have a slip of the keyboard.
    """
    bare = _bare(name)
    if same := [each for each in known if _bare(each) == bare]:
        return same[:1]
    words = WORDS.get(what, {})
    for word in sorted((word for word in words if _bare(word) in bare), key=len, reverse=True):
        # a short word is one only as a whole: ``age`` is not in ``manage``
        if (len(word) > SHORT or _bare(word) == bare) and (meant := [n for n in words[word] if n in known]):
            return meant
    if len(begun := [each for each in known if len(bare) >= SHORT and _bare(each).startswith(bare)]) == 1:
        return begun
    return get_close_matches(name, known, n=1, cutoff=_ALIKE.get(what, 0.6))


def _bare(name: str) -> str:
    """A name without what people write in different ways."""
    letters = re.sub(r"[\W_]", "", name.casefold())
    for american, british in (("license", "licence"), ("color", "colour"), ("ize", "ise"), ("yze", "yse")):
        letters = letters.replace(american, british)
    return letters[:-1] if len(letters) > SHORT and letters.endswith("s") else letters


def either(names: Iterable[str]) -> str:
    """Names as a choice: ``a``, ``a or b``, ``a, b or c``."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def few_of(names: Sequence[str]) -> str:
    """Names in a sentence: all of a few, the first ones of many."""
    return some(names, FEW - 1 if len(names) < FEW else 5)


def some(names: Iterable[str], most: int = 3) -> str:
    """The first few names as text."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most:,} more" if len(listed) > most else "")


def in_brackets(shape: Iterable[int]) -> str:
    """The shape of an array or a tensor in a sentence: ``[3 64 64]``."""
    return f"[{' '.join(map(str, shape))}]"


def counted(count: int, plural: str) -> str:
    """A count with its noun, given in the plural: ``1 query``, ``2 queries``, ``1 image of each split``."""
    ending = r"(ies|(?<=ch)es|(?<=ss)es|(?<!s)s)\b"
    singular = re.sub(ending, lambda match: "y" if match[0] == "ies" else "", plural, count=1)
    return f"{count:,} {singular if count == 1 else plural}"


def require_known(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise the error for the first unknown name."""
    for name in names:
        if name not in known:
            raise unknown(what, name, known)


def fitting(names: Collection[str], patterns: Iterable[str]) -> set[str]:
    """The names of backbones that fit a pattern; raises InputError for a pattern without one."""
    wanted: set[str] = set()
    for pattern in patterns:
        if not (matches := fnmatch.filter(names, pattern)):
            raise unknown("backbone", pattern, sorted(names))
        wanted |= {*matches}
    return wanted


def about_file(error: OSError) -> str | None:
    """The sentence for an error with a file that a user, missing rights or limits cause; None for others."""
    if error.errno in DISK_FULL:
        return "no space is left on the disk; free some and run again: finished work is kept"
    if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
        there, wanted = ("folder", "file") if error.errno == errno.EISDIR else ("file", "folder")
        name = shortened(str(error.filename2 or error.filename))
        return f"expected a {wanted} at {name}, where there is a {there}; remove it, or choose another name"
    if error.errno not in _OF_USERS:
        return None
    which = f"{shortened(error.filename)} cannot be used: " if error.filename else ""
    return f"{which}{error.strerror}"


def first_line(error: BaseException) -> str:
    """The first line of a library's message, without error numbers; the kind of the error if it is empty."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    said = re.sub(r"^(\w+ ?[Ee]rror[:,] +)+", "", str(error).strip().partition("\n")[0])
    return said or error_kind(error)


def error_kind(error: BaseException) -> str:
    """The kind of an error in words: ``key error``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()


def printable(text: str) -> str:
    """Text without characters that control a terminal or the text direction, or that XML forbids."""
    return text.translate(_UNPRINTABLE)


def inert(cell: str) -> str:
    """A cell of a table that no spreadsheet takes for a formula: such a text gets an apostrophe before it."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def restored(cell: str) -> str:
    """A cell as it was before `inert`."""
    return cell[1:] if _INERT.match(cell) else cell


def shortened(value: object) -> str:
    """A found value as code, short enough for a sentence: the middle of a long one is left out."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # a number with more digits than Python prints
        return f"a value of type {type(value).__name__}"


# errors of the operating system that a user's input, missing rights or limits of the machine cause
_OF_USERS = (
    *(errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP, errno.EROFS, errno.EPERM, errno.EIO, errno.EFBIG),
    *(errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ENOENT, errno.ENOMEM, errno.EAGAIN),
)
# all control characters but line breaks and tabs, marks of text direction, and non-characters
_UNPRINTABLE = dict.fromkeys(
    (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"
) | dict.fromkeys((*range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "\ufffd")
# texts that start like a formula, also after literal apostrophes; not plain numbers
_FORMULA = re.compile(r"(?!-?\d+(\.\d+)?(e[+-]?\d+)?\Z)'*[=+\-@\t\r\n]", re.IGNORECASE | re.ASCII)
_INERT = re.compile(r"''*[=+\-@\t\r\n]")
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100
_SHORT.maxlevel = 2
