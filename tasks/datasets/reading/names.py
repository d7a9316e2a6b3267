"""Names of classes, groups and files as people read them: one Unicode form, and names that look alike."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable

from layerboard.zoo.errors import some

# Characters without a picture of their own, beside those of the Unicode categories of controls and formats:
# joiners, fillers, variation selectors and the blank Braille pattern
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
_ORDINARY = re.compile(r"[!-~]+( [!-~]+)*")  # names without anything that cannot be seen
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)")


def normal(name: str) -> str:
    """A name in the Unicode form NFC: file systems and programs also write accents as marks of their own."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def visible(name: str) -> str:
    """A name in quotation marks, with the codes of characters that cannot be seen."""
    marks = (mark if mark == " " or _seen(mark) == mark else ascii(mark)[1:-1] for mark in name)
    return f"'{''.join(marks)}'"


def unseen_twins(names: Iterable[str], what: str) -> list[str]:
    """Sentences on different names (``what``, in the plural) that look the same."""
    return _twins(names, what, lambda name: name if _ORDINARY.fullmatch(name) else _seen(name), "read alike")


def number_twins(names: Iterable[str], what: str) -> list[str]:
    """Sentences on different names (``what``, in the plural) that are one number, such as 1, 01 and 1.0."""
    return _twins(names, what, _number, "are one number")


def _seen(name: str) -> str:
    """What can be seen of a name: no controls, formats and fillers, and single blanks inside."""
    marks = (mark for mark in name if unicodedata.category(mark) not in ("Cf", "Cn"))
    seen = "".join(" " if mark.isspace() else mark for mark in marks)
    return " ".join(_UNSEEN.sub("", seen).split())


def _number(name: str) -> str:
    return str(float(name.replace(",", "."))) if _NUMBER.fullmatch(name) and name.isascii() else name


def _twins(names: Iterable[str], what: str, read: Callable[[str], str], why: str) -> list[str]:
    alike = defaultdict[str, list[str]](list)
    for name in sorted({*names} - {""}):
        alike[read(name)].append(name)
    pairs = [" and ".join(map(visible, each)) for each in alike.values() if len(each) > 1]
    said = f"{what} that {why} but are told apart: {some(pairs)}; rename them if they are one"
    return [said] if pairs else []
