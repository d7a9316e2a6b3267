"""Parsers of options: what a user gives becomes what is kept, or one sentence says what is expected.

A parser is told the option that it works for. It accepts what it returns, too, so a form can be made again
from its own values. There is one for each kind of value; None, where it is a default, is never parsed.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmark.option import Option
from tasks.sets import parse_sets
from tasks.transforms import parse_transform
from zoo.errors import InputError
from zoo.spec import SUBLAYER_TAPS, Tap

TAPS: tuple[Tap, ...] = ("block", *SUBLAYER_TAPS)
"""Taps that can be asked for; ``final`` is asked for as a layer."""

LONGEST_NAME = 255
"""Bytes of a file's or folder's name, by most file systems."""

LONGEST_TEXT = 1000
"""Characters of a word that anything could be called by."""

LARGEST = 2**32
"""The largest whole number that an option could mean."""

LARGEST_RATE = 1000
"""Learning rate beyond which every training diverges at once."""

POOLINGS = ("cls", "mean", "patchwise")
"""Vectors that can be kept of a layer."""

USUAL_POOLINGS = ("cls", "mean")
"""Vectors that every backbone has one or both of."""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}

_PIXELS = "whole numbers from 1 to 99999, such as 448 or 224,448"

AnyOption = Option[Any, Any]


def anything(value: Any, option: AnyOption) -> Any:  # noqa: ANN401  # objects that their user checks
    """Whatever is given; who uses it says what is wrong with it."""
    del option
    return value


def choice(value: Any, option: AnyOption) -> Any:  # noqa: ANN401  # a literal of the option's own
    """One of the choices of the option."""
    if value not in option.choices:
        *others, last = option.choices
        raise option.takes(f"{', '.join(others)} or {last}", value)
    return value


def switch(value: object, option: AnyOption) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise option.takes("True or False", value)
    return value


def whole(value: object, option: AnyOption) -> int:
    """A whole number that is not below the least of the option."""
    if isinstance(value, int) and abs(value) > LARGEST:
        raise option.takes(f"a whole number of at most {LARGEST}", value)
    least = option.least
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        raise option.takes(f"a whole number{'' if least is None else f' of at least {least}'}", value)
    return value


def wholes(value: object, option: AnyOption) -> tuple[int, ...]:
    """Whole numbers; one alone is a list of one."""
    return tuple(whole(each, option) for each in (value if isinstance(value, Iterable) else (value,)))


def real(value: object, option: AnyOption) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise option.takes("a number", value)
    if not math.isfinite(value):
        raise option.takes("a finite number", value)
    return value


def positive(value: object, option: AnyOption) -> float:
    """A number above 0."""
    if (number := real(value, option)) <= 0:
        raise option.takes("a number above 0", value)
    return number


def rate(value: object, option: AnyOption) -> float:
    """A number above 0 and at most 1000."""
    if not 0 < (number := real(value, option)) <= LARGEST_RATE:
        raise option.takes(f"a number above 0 and at most {LARGEST_RATE}", value)
    return number


def count(value: object, option: AnyOption) -> int:
    """A whole number above 0, in full or as 100M or 1.2G."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGB]?)", str(value).strip(), re.IGNORECASE)
    number = 0 if match is None else round(float(match[1]) * _UNITS[match[2].upper()])
    if isinstance(value, bool) or number < 1:
        raise option.takes("a number such as 100M or 1.2G", value)
    return number


def text(value: object, option: AnyOption) -> str:
    """A word."""
    if not (isinstance(value, str) and value):
        raise option.takes("a word", value)
    if len(value) > LONGEST_TEXT or "\0" in value:
        raise option.takes(f"at most {LONGEST_TEXT} characters", value)
    return value


def word(value: object, option: AnyOption) -> str:
    """A word, or a path as one."""
    return text(str(value) if isinstance(value, Path) else value, option)


def names(value: object, option: AnyOption) -> tuple[str, ...]:
    """Words or paths; one alone is a list of one."""
    if isinstance(value, str | Path):
        value = (value,)
    if not isinstance(value, Iterable):
        raise option.takes("words", value)
    return tuple(word(each, option) for each in value)


def listed(value: object, option: AnyOption) -> tuple[str, ...]:
    """Words; text may have commas between them."""
    parts = [part.strip() for each in names(value, option) for part in each.split(",")]
    return tuple(text(part, option) for part in parts)


def path(value: object, option: AnyOption) -> Path:
    """A path."""
    require_working_folder()
    if not isinstance(value, str | Path) or not str(value):
        raise option.takes("a path", value)
    parts = Path(value).parts
    if "\0" in str(value) or any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise option.takes(f"a path whose names have at most {LONGEST_NAME} bytes", value)
    return Path(value)


def paths(value: object, option: AnyOption) -> tuple[Path, ...]:
    """Paths; one alone is a list of one."""
    return tuple(path(each, option) for each in names(value, option))


def require_working_folder() -> None:
    """Raise InputError where the folder that relative paths start from was removed: libraries die of it."""
    try:
        Path.cwd()
    except OSError as error:
        raise InputError("the working folder does not exist any more; change to another folder") from error


def run_name(value: Any, option: AnyOption) -> str:  # noqa: ANN401  # a network or a name
    """The name under which a backbone was run: a word, or that of a network of this process."""
    spec = getattr(value, "spec", None)
    return text(value if spec is None else spec.name, option)


def backbones(value: Any, option: AnyOption) -> tuple[str, ...]:  # noqa: ANN401  # networks among names
    """Names of backbones, and networks of this process; one alone is a list of one."""
    several = (value,) if isinstance(value, str | Path) or hasattr(value, "reference") else value
    if not isinstance(several, Iterable):
        raise option.takes("words", value)
    return names([getattr(each, "reference", each) for each in several], option)


def sides(value: object, option: AnyOption) -> tuple[int, ...]:
    """Numbers of pixels, each once from the smallest on; text may have commas between them."""
    given = () if value is None else (value,) if isinstance(value, int | str) else value
    if not isinstance(given, Iterable):
        raise option.takes(_PIXELS, value)
    parts = [part for each in given for part in (each.split(",") if isinstance(each, str) else (each,))]
    return tuple(sorted({_pixels(part, option) for part in parts}))


def _pixels(part: object, option: AnyOption) -> int:
    """A whole number from 1 on that has at most five digits."""
    digits = str(part).strip()
    if isinstance(part, bool) or not re.fullmatch(r"[0-9]{1,5}", digits) or int(digits) < 1:
        raise option.takes(_PIXELS, part)
    return int(digits)


def taps(value: object, option: AnyOption) -> tuple[Tap, ...]:
    """Taps, each once in the order of `TAPS`; text has commas between them."""
    chosen = {*listed(value, option)}
    if not chosen or not chosen <= set(TAPS):
        raise InputError(
            f"taps are {', '.join(TAPS)}; found {', '.join(sorted(chosen))[:LONGEST_NAME] or 'none'}"
        )
    return tuple(tap for tap in TAPS if tap in chosen)


def transforms(value: object, option: AnyOption) -> tuple[str, ...]:
    """Transforms, each once in the order given; text may have commas between them."""
    return tuple(dict.fromkeys(str(parse_transform(each)) for each in listed(value, option)))


def sets(value: object, option: AnyOption) -> tuple[str, ...]:
    """Names of sets of layers, each once in the order of `tasks.sets.SETS`; text may have commas."""
    return parse_sets(listed(value, option))


def poolings(value: object, option: AnyOption) -> tuple[str, ...]:
    """Poolings, each once in the order of `POOLINGS`; text has commas between them."""
    chosen = {*listed(value, option)}
    if not chosen & {*USUAL_POOLINGS} or not chosen <= {*POOLINGS}:
        raise option.takes("cls, mean or cls,mean, each with or without patchwise", value)
    return tuple(pooling for pooling in POOLINGS if pooling in chosen)


def weights(value: object, option: AnyOption) -> Mapping[str, Path]:
    """Paths by backbone, from a mapping or from NAME=PATH."""
    given = _by_name(value, option, "NAME=PATH, such as moco-s16=vit-s-300ep.pth.tar")
    return {text(name, option): path(file, option) for name, file in given.items()}


def assignments(value: object, option: AnyOption) -> Mapping[str, str]:
    """Words by name, from a mapping or from NAME=WORD."""
    given = _by_name(value, option, "NAME=WORD")
    return {text(name, option): text(word, option) for name, word in given.items()}


def _by_name(value: object, option: AnyOption, expected: str) -> Mapping[Any, Any]:
    """A mapping as it is, or what stands behind the ``=`` of each word, by what stands before it."""
    if isinstance(value, Mapping):
        return value
    parts = [(each, each.partition("=")) for each in names(value, option)]
    for each, (name, sign, rest) in parts:
        if not (name and sign and rest):
            raise option.takes(expected, each)
    return {name: rest for _, (name, _, rest) in parts}


def default_cache() -> Path:
    """Folder for vectors, measurements and the mini suite's data, below the user's cache folder.

    Raises:
        InputError: Nobody says where the user's folders are.
    """
    if folder := os.environ.get("LAYERBOARD_CACHE"):
        return Path(folder)
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise InputError("this user has no home folder for the cache; give --cache DIR") from error
    return base / "layerboard"


def default_workers() -> int:
    """Threads for decoding and scoring: the processors that this process may use, at most 16."""
    return min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
