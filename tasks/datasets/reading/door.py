"""What a label is, whichever way it comes in: the name of a class, a number as text, or nothing."""

from collections.abc import Sequence
from decimal import Decimal
from enum import Enum
from math import isfinite

from layerboard.tasks.datasets.integrity import mismatch
from layerboard.tasks.datasets.reading.files import require_text
from layerboard.tasks.datasets.reading.names import normal
from layerboard.zoo.errors import InputError, shortened

PARTED = "|"  # separates the labels of an image
# What says in files of nothing but text that a cell is missing: the words of `pandas.read_csv`
NOTHING = frozenset(
    {
        *("#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "n/a", "NA", "NULL", "null", "None"),
        *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    }
)
MOST_EXACT = 2**53  # up to it floats are exact whole numbers
UNKNOWN = -1  # number of a missing class, where numbers stand for names


def cell(text: str) -> str:
    """The text of a cell in a file of nothing but text; "" for a missing one."""
    text = normal(text.strip())
    return "" if text in NOTHING else text


def label_text(value: object, where: str, names: Sequence[str] = ()) -> str:
    """The class or the number that a value is, as text; "" for a missing one.

    Missing are None, NaN, NaT and NA of any library, masked values and blank text. Text loses blanks at its
    ends; bytes are text in UTF-8, a member of an Enum is its value, and a whole number has one name, 1 for 1,
    1.0 and tensors and scalars of them. Where numbers stand for ``names``, -1 is missing. Raises InputError,
    which says ``where``, for a number without a name and for anything else.
    """
    value = _plain(value)
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError as error:
            raise _refused(value, where) from error
    if isinstance(value, str):
        return normal(require_text(value.strip(), where))
    value = float(value) if isinstance(value, Decimal) else value
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, bool) and not names:
        return str(value)
    if not isinstance(value, int) and not (isinstance(value, float) and isfinite(value)):
        raise _refused(value, where)
    whole = int(value)
    if names:
        if whole != value or not UNKNOWN <= whole < len(names):
            known = f"a number from 0 to {len(names) - 1} (or {UNKNOWN} for none) as {where}"
            named = f"{known}, since {len(names)} classes have names"
            raise mismatch(named, value, "correct it or the names")
        return "" if whole == UNKNOWN else names[whole]
    return str(whole) if whole == value and abs(whole) < MOST_EXACT else str(value)


def labels_text(value: object, where: str, names: Sequence[str] = ()) -> str:
    """A label as text, or several that are given as a list, parted by `PARTED`; raises InputError."""
    several = _plain(value)
    if not isinstance(several, list | tuple | set | frozenset):
        return label_text(several, where, names)
    texts = [label_text(each, where, names) for each in several]
    if len({*texts}) < len(texts) or (len(texts) > 1 and any(isinstance(each, float) for each in several)):
        remedy = "give their names, not a 0, 1 or share for each"
        raise mismatch(f"the labels of an image, each once, as {where}", shortened(several), remedy)
    return PARTED.join(filter(None, sorted(texts) if isinstance(several, set | frozenset) else texts))


def class_names(names: object) -> tuple[str, ...]:
    """The names of classes that the numbers 0, 1, ... stand for; none if they are not as many different ones.

    Several names of one class (as of ImageNet in torchvision) are one, parted by commas.
    """
    names = _plain(names)
    every = names if isinstance(names, list | tuple) else ()
    texts = [", ".join(map(str, name)) if isinstance(name, list | tuple) else name for name in every]
    texts = [label_text(name, "the name of a class") for name in texts]
    return tuple(texts) if len({*texts} - {""}) == len(texts) else ()


def _plain(value: object) -> object:
    """A value of Python for a scalar, an array or a tensor of any library, and for a member of an Enum."""
    if type(value) in (str, int, float):  # most labels
        return value
    if isinstance(value, Enum):
        return _plain(value.value)
    for name in ("as_py", "tolist", "numpy"):  # of pyarrow, of arrays and tensors, of those of TensorFlow
        if callable(convert := getattr(value, name, None)):
            return _plain(convert())
    return None if type(value).__name__ in ("NAType", "NaTType") else value  # of pandas


def _refused(value: object, where: str) -> InputError:
    text = f"{shortened(value)} of type {type(value).__name__}"
    return mismatch(f"text or a number as {where}", text, "give the name of its class")
