"""Parsers of options: what a user gives becomes what a run keeps, or one sentence says what is expected.

A parser is told the option that it works for. It accepts what it returns, too, so a form can be made again
from its own values.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from benchmark.request.option import Option
from tasks.sets import parse_sets
from tasks.transforms import parse_transform
from zoo.errors import InputError
from zoo.spec import SUBLAYER_TAPS, Tap

TAPS: tuple[Tap, ...] = ("block", *SUBLAYER_TAPS)
"""Taps that can be asked for; ``final`` is asked for as a layer."""

_LARGEST_RATE = 1000
"""Learning rate beyond which every training diverges at once."""

LONGEST_NAME = 255
"""Bytes of a file's or folder's name, by most file systems."""

LONGEST_TEXT = 1000
"""Characters of a word that anything could be called by."""

LARGEST = 2**32
"""The largest whole number that an option could mean."""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}

_PIXELS = "whole numbers from 1 to 99999, such as 448 or 224,448"

POOLINGS = ("cls", "mean", "patchwise")
"""Vectors that can be kept of a layer."""

USUAL_POOLINGS = ("cls", "mean")
"""Vectors that every backbone has one or both of."""

Of = Option[Any, Any]
Chosen = TypeVar("Chosen")
Text = TypeVar("Text", str, str | None)
Whole = TypeVar("Whole", int, int | None)
Real = TypeVar("Real", float, float | None)


def choice(value: Chosen, option: Of) -> Chosen:
    """One of the choices of the option, or None where that is the default."""
    if value not in option.choices and not option.is_default(value):
        raise option.takes(f"{', '.join(option.choices[:-1])} or {option.choices[-1]}", value)
    return value


def text(value: Text, option: Of) -> Text:
    """A word, or None where that is the default."""
    if not (isinstance(value, str) and value) and not option.is_default(value):
        raise option.takes("a word", value)
    if isinstance(value, str) and (len(value) > LONGEST_TEXT or "\0" in value):
        raise option.takes(f"at most {LONGEST_TEXT} characters", value)
    return value


def require_working_folder() -> None:
    """Raise InputError where the folder that relative paths start from was removed: libraries die of it."""
    try:
        Path.cwd()
    except OSError as error:
        raise InputError("the working folder does not exist any more; change to another folder") from error


def path(value: str | Path, option: Of) -> Path:
    """A path."""
    require_working_folder()
    if not isinstance(value, str | Path) or not str(value):
        raise option.takes("a path", value)
    parts = Path(value).parts
    if "\0" in str(value) or any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise option.takes(f"a path whose names have at most {LONGEST_NAME} bytes", value)
    return Path(value)


def optional_path(value: str | Path | None, option: Of) -> Path | None:
    """A path, or None."""
    return None if value is None else path(value, option)


def paths(value: str | Path | Sequence[str | Path], option: Of) -> tuple[Path, ...]:
    """Paths; one alone is a list of one."""
    return tuple(path(one, option) for one in names(value, option))


def whole(value: Whole, option: Of) -> Whole:
    """A whole number that is not below the least of the option, or None where that is the default."""
    if isinstance(value, int) and abs(value) > LARGEST:
        raise option.takes(f"a whole number of at most {LARGEST}", value)
    enough = isinstance(value, int) and (option.least is None or value >= option.least)
    if isinstance(value, bool) or not (enough or option.is_default(value)):
        least = "" if option.least is None else f" of at least {option.least}"
        raise option.takes(f"a whole number{least}", value)
    return value


def real(value: Real, option: Of) -> Real:
    """A finite number, or None where that is the default."""
    if isinstance(value, bool) or not (isinstance(value, int | float) or option.is_default(value)):
        raise option.takes("a number", value)
    if value is not None and not math.isfinite(value):
        raise option.takes("a finite number", value)
    return value


def rate(value: float | None, option: Of) -> float | None:
    """A number above 0 and at most 1000, or None where that is the default."""
    if real(value, option) is not None and not 0 < cast("float", value) <= _LARGEST_RATE:
        raise option.takes(f"a number above 0 and at most {_LARGEST_RATE}", value)
    return value


def positive(value: float | None, option: Of) -> float | None:
    """A number above 0, or None where that is the default."""
    if real(value, option) is not None and not cast("float", value) > 0:
        raise option.takes("a number above 0", value)
    return value


def count(value: int | str | None, option: Of) -> int | None:
    """A whole number above 0, in full or as 100M or 1.2G, or None where that is the default."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGB]?)", str(value).strip(), re.IGNORECASE)
    if option.is_default(value):
        return None
    number = 0 if found is None else round(float(found[1]) * _UNITS[found[2].upper()])
    if isinstance(value, bool) or number < 1:
        raise option.takes("a number such as 100M or 1.2G", value)
    return number


def switch(value: bool, option: Of) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise option.takes("True or False", value)
    return value


def optional_switch(value: bool | None, option: Of) -> bool | None:
    """True, False or None."""
    return None if value is None else switch(value, option)


def anything(value: Any, option: Of) -> Any:  # noqa: ANN401  # objects that their user checks
    """Whatever is given; who uses it says what is wrong with it."""
    del option
    return value


def number_text(value: str | int | None, option: Of) -> str | None:
    """A number in words, such as 100M, or None where that is the default."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return text(str(value) if is_number else cast("str | None", value), option)


def backbones(value: Any, option: Of) -> tuple[str, ...]:  # noqa: ANN401  # networks among names
    """Names of backbones, and networks of this process; one alone is a list of one."""
    several = (value,) if isinstance(value, str | Path) or hasattr(value, "reference") else value
    if not isinstance(several, Iterable):
        raise option.takes("words", value)
    found: list[Any] = [getattr(one, "reference", one) for one in several]
    return names(found, option)


def run_name(value: Any, option: Of) -> str:  # noqa: ANN401  # a network or a name
    """The name under which a backbone was run: a word, or that of a network of this process."""
    spec = getattr(value, "spec", None)
    name: str = value if spec is None else spec.name
    return text(name, option)


def word(value: str | Path, option: Of) -> str:
    """A word, or a path as one."""
    return text(str(value) if isinstance(value, Path) else value, option)


def names(value: str | Path | Sequence[str | Path], option: Of) -> tuple[str, ...]:
    """Words or paths; one alone is a list of one."""
    if isinstance(value, str | Path):
        value = (value,)
    if not isinstance(value, Iterable):
        raise option.takes("words", value)
    return tuple(text(str(one) if isinstance(one, Path) else one, option) for one in value)


def listed(value: str | Sequence[str], option: Of) -> tuple[str, ...]:
    """Words; text may have commas between them."""
    found = tuple(part.strip() for one in names(value, option) for part in one.split(","))
    return tuple(text(part, option) for part in found)


def sides(value: int | str | Sequence[int | str] | None, option: Of) -> tuple[int, ...]:
    """Numbers of pixels, each once from the smallest on; text may have commas between them."""
    given = () if value is None else (value,) if isinstance(value, int | str) else value
    if not isinstance(given, Iterable):
        raise option.takes(_PIXELS, value)
    parts = [part for one in given for part in (one.split(",") if isinstance(one, str) else (one,))]
    return tuple(sorted({_pixels(part, option) for part in parts}))


def _pixels(part: object, option: Of) -> int:
    """A whole number from 1 on that has at most five digits."""
    word = part.strip() if isinstance(part, str) else str(part)
    if isinstance(part, bool) or not re.fullmatch(r"[0-9]{1,5}", word) or int(word) < 1:
        raise option.takes(_PIXELS, part)
    return int(word)


def taps(value: str | Sequence[str], option: Of) -> tuple[Tap, ...]:
    """Taps, each once in the order of `TAPS`; text has commas between them."""
    chosen = _parts(value, option)
    if not chosen or not chosen <= set(TAPS):
        raise InputError(
            f"taps are {', '.join(TAPS)}; found {', '.join(sorted(chosen))[:LONGEST_NAME] or 'none'}"
        )
    return tuple(tap for tap in TAPS if tap in chosen)


def transforms(value: str | Sequence[str], option: Of) -> tuple[str, ...]:
    """Transforms, each once in the order given; text may have commas between them."""
    return tuple(dict.fromkeys(str(parse_transform(one)) for one in listed(value, option)))


def transform(value: str, option: Of) -> str:
    """One transform, or "" for none."""
    return str(parse_transform(value)) if value else ""


def sets(value: str | Sequence[str], option: Of) -> tuple[str, ...]:
    """Names of sets of layers, each once in the order of `tasks.sets.SETS`; text may have commas."""
    return parse_sets(listed(value, option))


def poolings(value: str | Sequence[str], option: Of) -> tuple[str, ...]:
    """Poolings, each once in the order of `POOLINGS`; text has commas between them."""
    chosen = _parts(value, option)
    if not chosen & {*USUAL_POOLINGS} or not chosen <= {*POOLINGS}:
        raise option.takes("cls, mean or cls,mean, each with or without patchwise", value)
    return tuple(pooling for pooling in POOLINGS if pooling in chosen)


def _parts(value: str | Sequence[str], option: Of) -> set[str]:
    return {part.strip() for one in names(value, option) for part in one.split(",")}


def weights(value: str | Sequence[str] | Mapping[str, str | Path], option: Of) -> Mapping[str, Path]:
    """Paths by backbone, from a mapping or from NAME=PATH."""
    if isinstance(value, Mapping):
        return {text(name, option): path(one, option) for name, one in value.items()}
    found = {}
    for one in names(value, option):
        name, sign, where = one.partition("=")
        if not (name and sign and where):
            raise option.takes("NAME=PATH, such as moco-s16=vit-s-300ep.pth.tar", one)
        found[name] = Path(where)
    return found


def assignments(value: str | Sequence[str] | Mapping[str, str], option: Of) -> Mapping[str, str]:
    """Words by name, from a mapping or from NAME=WORD."""
    if isinstance(value, Mapping):
        return {text(name, option): text(word, option) for name, word in value.items()}
    found = {}
    for one in names(value, option):
        name, sign, word = one.partition("=")
        if not (name and sign and word):
            raise option.takes("NAME=WORD", one)
        found[name] = word
    return found


def default_cache() -> Path:
    """Folder for vectors, measurements and the mini suite's data, below the user's cache folder.

    Raises:
        InputError: Nobody says where the user's folders are.
    """
    if own := os.environ.get("LAYERBOARD_CACHE"):
        return Path(own)
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise InputError("this user has no home folder for the cache; give --cache DIR") from error
    return base / "layerboard"


def cache(value: str | Path | None, option: Of) -> Path:
    """A path; the default of this machine for None."""
    return default_cache() if value is None else path(value, option)


def default_workers() -> int:
    """Threads for decoding and scoring: the processors that this process may use, at most 16."""
    return min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def workers(value: int | None, option: Of) -> int:
    """A whole number; the default of this machine for None."""
    return default_workers() if value is None else whole(value, option)
