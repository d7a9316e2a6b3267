"""Parsers of options: they return the kept value, or say in one sentence what is expected.

A parser also accepts what it returns, so a form can be rebuilt from its own values. There is one for each
kind of value; a default None is never parsed.
"""

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from layerboard.tasks.datasets.hub_spec import require_local
from layerboard.tasks.framework.protocols import PROTOCOLS
from layerboard.tasks.framework.registry import TASKS, find_tasks
from layerboard.tasks.framework.sets import SETS
from layerboard.zoo.errors import InputError, either, ensure, likely, shortened
from layerboard.zoo.references import is_local, is_reference
from layerboard.zoo.registry.find import all_specs, require_named
from layerboard.zoo.spec import READ_TAPS, Dtype, Tap, VectorPooling, entry_name

TAPS: tuple[Tap, ...] = ("block", *READ_TAPS)  # ``final`` is requested as a layer
FINAL = "final"  # as a layer: the norm after the last block
LONGEST_INDEX = 6  # digits of the number of a layer that no network reaches
AUTO: str = "auto"  # a dtype that the device and the protocol determine
DTYPES = (*get_args(Dtype), AUTO)
LONGEST_NAME = 255  # maximum bytes of the name of a file or folder in most file systems
LONGEST_TEXT = 1000  # maximum characters of any name
LARGEST = 2**32  # the largest whole number that an option accepts
USUAL_POOLINGS = ("cls", "mean")  # poolings of which every backbone has at least one
POOLINGS = get_args(VectorPooling)

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}
_PIXELS = "whole numbers from 1 to 99999, such as 448 or 224,448"


class WrongValueError(Exception):
    """Carries what a parser expects, what it was given, and what to do; the option adds its name."""

    def __init__(self, expected: str, given: object, advice: str = "") -> None:
        super().__init__(expected, given, advice)
        self.expected, self.given, self.advice = expected, given, advice

    @classmethod
    def among(
        cls, expected: str, given: object, choices: Collection[str], advice: str = ""
    ) -> "WrongValueError":
        """The error for a value, or several with commas, that is not among the choices.

        It names the likely one, or gives advice without one.
        """
        every = given if isinstance(given, list | tuple) else (given,)
        parts = [part.strip() for text in every if isinstance(text, str) for part in text.split(",")]
        wrong = [part for part in parts if part not in choices]
        close = likely("value", wrong[0], choices) if wrong else []
        return cls(expected, given, f"did you mean {either(close)}?" if close else (wrong and advice) or "")

    def about(self, name: str) -> InputError:
        """The error for users, who gave the value as ``name``."""
        advice = f": {self.advice}" if self.advice else ""
        return InputError(f"{name} takes {self.expected}; found {described(self.given)}{advice}")


def described(value: object) -> str:
    """A found value in a sentence: as code, or by its type if that is no one of Python itself."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, Path) or type(value).__module__ == "builtins":
        return shortened(value)
    return f"an object of {type(value).__module__.partition('.')[0]}: {type(value).__name__}"


def choice(value: Any, choices: Collection[str]) -> Any:  # noqa: ANN401  # a literal of the option's own
    """One of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise WrongValueError.among(either(choices), value, choices)
    return value


def engine(value: object, choices: Collection[str]) -> str:
    """One of the choices; ``ray`` may be followed by the address of a cluster, ray:HOST:PORT."""
    name, _, address = str(value).partition(":")
    return text(value) if name == "ray" and address else str(choice(value, choices))


def switch(value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise WrongValueError("True or False", value)
    return value


def whole(value: object, least: int | None = None, most: int = LARGEST) -> int:
    """A whole number from ``least`` to ``most``."""
    if isinstance(value, int) and abs(value) > most:
        raise WrongValueError(f"a whole number of at most {most}", value)
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        raise WrongValueError(f"a whole number{'' if least is None else f' of at least {least}'}", value)
    return value


def batch(value: object) -> int | Literal["auto"]:
    """A whole number above 0, also as text, or ``auto``."""
    if value == "auto":
        return "auto"
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= LARGEST:
        raise WrongValueError("auto, or a whole number of at least 1", value)
    return number


def wholes(value: object) -> tuple[int, ...]:
    """Whole numbers; a single one becomes a tuple."""
    return tuple(map(whole, value if isinstance(value, Iterable) else (value,)))


def real(value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValueError("a number", value)
    if not math.isfinite(value):
        raise WrongValueError("a finite number", value)
    return value


def positive(value: object, most: float = math.inf, *, zero: bool = False, least: float = 0.0) -> float:
    """A number above 0, or also 0, and from ``least`` to ``most``."""
    if not least <= (number := real(value)) <= most or not (number or zero):
        lowest = f"of at least {least:g}" if zero or least else "above 0"
        raise WrongValueError(f"a number {lowest}{'' if most == math.inf else f' and at most {most}'}", value)
    return number


not_negative = partial(positive, zero=True)
temperature = partial(positive, least=1e-30)  # which divides cosines in float32


def count(value: object) -> int:
    """A whole number above 0, in full or such as 100M or 1.2G."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGB]?)", str(value).strip(), re.IGNORECASE)
    number = 0 if match is None else round(float(match[1]) * _UNITS[match[2].upper()])
    if isinstance(value, bool) or number < 1:
        raise WrongValueError("a number such as 100M or 1.2G", value)
    return number


def text(value: object) -> str:
    """A non-empty text."""
    if not (isinstance(value, str) and value):
        raise WrongValueError("a word", value)
    if len(value) > LONGEST_TEXT or "\0" in value:
        raise WrongValueError(f"at most {LONGEST_TEXT} characters", value)
    return value


def word(value: object) -> str:
    """A text or a path, as text."""
    return text(str(value) if isinstance(value, Path) else value)


def names(value: object) -> tuple[str, ...]:
    """Texts or paths; a single one becomes a tuple."""
    if not isinstance(value, Iterable | Path):
        raise WrongValueError("words", value)
    return tuple(map(word, (value,) if isinstance(value, str | Path) else value))


def listed(value: object) -> tuple[str, ...]:
    """Texts, which may also be separated by commas."""
    return tuple(text(part.strip()) for each in names(value) for part in each.split(","))


def commas(value: object) -> str:
    """Texts, separated by commas."""
    return ",".join(listed(value))


def some_of(value: object, choices: Collection[Any], expected: str = "", advice: str = "") -> tuple[Any, ...]:
    """At least one of the choices, each once and in their order; text is separated by commas."""
    chosen = {*listed(value)}
    if not chosen or not chosen <= {*choices}:
        expected = expected or f"some of {', '.join(choices)}"
        raise WrongValueError.among(expected, value, choices, advice)
    return tuple(each for each in choices if each in chosen)


def dtypes(value: object) -> tuple[Any, ...]:
    """Dtypes, each once; ``auto`` only alone."""
    expected = f"{AUTO}, or some of {', '.join(get_args(Dtype))}"
    chosen = some_of(value, DTYPES, expected)
    if AUTO in chosen and len(chosen) > 1:
        raise WrongValueError.among(expected, value, DTYPES)
    return tuple(dict.fromkeys(listed(value)))


def assigned(value: object) -> Mapping[str, Any]:
    """Values by name: a mapping, or texts NAME=VALUE; a text of a number is one, and commas separate several.

    Which names there are, and what each takes, is checked by `of_names`.
    """
    if isinstance(value, Mapping):
        return value
    pairs = [each.partition("=") for each in names(value)]
    for pair in pairs:
        if not all(pair):
            raise WrongValueError("NAME=VALUE, several with blanks between", "".join(pair))
    given = {name: [_number(part.strip()) for part in rest.split(",")] for name, _, rest in pairs}
    if len(given) < len(pairs):
        raise WrongValueError("each name once, several values with commas", value)
    return {name: parts if len(parts) > 1 else parts[0] for name, parts in given.items()}


def _number(text: str) -> object:
    """The number that a text is, or else the text."""
    with suppress(ValueError):
        return int(text)
    with suppress(ValueError):
        return float(text)
    return text


def of_names(value: object, kinds: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Values by name, each parsed as those of its name in ``kinds`` are."""
    given, parsed = assigned(value), dict[str, Any]()
    for name, each in given.items():
        if name not in kinds:
            raise WrongValueError.among(f"values of {either(kinds)}", name, kinds)
        try:
            parsed[name] = kinds[name](each)
        except WrongValueError as error:
            raise WrongValueError(f"as {name} {error.expected}", error.given, error.advice) from None
    return parsed


def path(value: object) -> Path:
    """A path."""
    require_working_folder()
    if not isinstance(value, str | Path) or not str(value):
        raise WrongValueError("a path", value)
    if "\0" in str(value) or any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(value).parts):
        raise WrongValueError(f"a path whose names have at most {LONGEST_NAME} bytes", value)
    return Path(value)


def paths(value: object) -> tuple[Path, ...]:
    """Paths; a single one becomes a tuple."""
    return tuple(map(path, names(value)))


def require_working_folder() -> None:
    """Raise InputError if the working folder was removed: libraries fail without it."""
    try:
        Path.cwd()
    except OSError as error:
        raise InputError("the working folder does not exist any more; change to another folder") from error


def pictures(value: object) -> tuple[Path, ...]:
    """Files and folders of pictures; a single one becomes a tuple, images in memory a folder of the cache."""
    given = value if isinstance(value, list | tuple) else (value,)
    return paths(value if all(isinstance(each, str | PathLike) for each in given) else [*images(value)])


def run_name(value: Any) -> str:  # noqa: ANN401  # a network or a name
    """The name under which a backbone was run, or that of a network of this process."""
    return text(value.spec.name if hasattr(value, "spec") else value)


def backbone(value: Any) -> str:  # noqa: ANN401  # a network or a name
    """The name of a backbone, or of a network of this process; raises InputError for a name of none."""
    given = backbones(value)
    if len(given) != 1:
        raise WrongValueError("one name", value)
    return given[0]


def backbones(value: Any) -> tuple[str, ...]:  # noqa: ANN401  # networks among names
    """Names of backbones and networks of this process; a single one becomes a tuple.

    Raises InputError for a name that no backbone has, as far as that is known without loading one.
    """
    several = (value,) if isinstance(value, str | Path) or hasattr(value, "reference") else value
    for each in (several, *(several if isinstance(several, list | tuple) else ())):
        if isinstance(each, type) or (hasattr(each, "state_dict") and not hasattr(each, "reference")):
            expected = "names, and what from_module returns"
            raise WrongValueError(expected, each, "give from_module(NETWORK)")
    if not isinstance(several, Iterable):
        raise WrongValueError("words", value)
    given = names([getattr(each, "reference", each) for each in several])
    for name in given:
        entry = name if is_local(name) else entry_name(name)
        require_own_kind(entry, "backbones")
        require_named(entry)
    return given


def tasks(value: object) -> tuple[str, ...]:
    """Names of tasks; a single one becomes a tuple. Raises InputError for a name that no task has."""
    given = run_tasks(value)
    find_tasks([name for name in given if not is_reference(name)])
    return given


def run_tasks(value: object) -> tuple[str, ...]:
    """Names of tasks of earlier runs, which may have had others than the registry."""
    given = names(value)
    for name in given:
        require_own_kind(name, "tasks")
    return given


def require_own_kind(name: str, option: str) -> None:
    """Raise InputError for the name of something else, such as a task among backbones."""
    specs = [spec.name for spec in all_specs()]
    # dino is also the beginning of names of backbones, which is what is meant by itself
    begins_backbones = any(spec.startswith(name) for spec in specs)
    kinds = (
        ("task", "tasks", [task.name for task in TASKS]),
        ("backbone", "backbones", specs),
        ("protocol", "protocol", [] if begins_backbones else [protocol.name for protocol in PROTOCOLS]),
    )
    kind, usual, _ = next((each for each in kinds if name in each[2]), ("", option, []))
    if usual != option and not is_local(name):
        raise InputError(f"--{option} has {name!r}, which is a {kind}; did you mean --{usual} {name}?")
    ensure("," not in name, f"--{option} has {shortened(name)}; separate its names by blanks, without commas")


def protocols(value: object) -> tuple[str, ...]:
    """Names of protocols, which may also be separated by commas."""
    given = listed(value)
    for name in given:
        require_own_kind(name, "protocol")
    return given


def images(value: object) -> tuple[str, ...]:
    """Folders of images and ``hf:`` datasets, as texts; a dataset in memory becomes a folder of the cache.

    A list of texts and paths names several datasets, of which shards of one set are one; the items of any
    other list, and of one of image files, are images. Raises InputError for an address of another machine.
    """
    given = value if isinstance(value, list | tuple) else (value,)
    are_paths = all(isinstance(each, str | PathLike) for each in given)
    files = bool(given) and value is given and are_paths and all(map(_names_image, given))
    if not files and are_paths:
        for location in (locations := names(value)):
            require_local(location, "--images")
        if len(locations) < 2:
            return locations
        from layerboard.tasks.datasets.reading.webdataset import together

        return together(locations)
    from layerboard.tasks.datasets.reading.memory import stored
    from layerboard.zoo.view.pixels import is_one

    value = [value] if is_one(value) else value
    is_data = isinstance(value, Iterable) or (hasattr(value, "__len__") and hasattr(value, "__getitem__"))
    if not is_data:
        raise WrongValueError("folders of image files, hf:DATASET, or a dataset in memory", value)
    return (str(stored(value, default_cache())),)


def _names_image(path: str | PathLike[str]) -> bool:
    """Whether a path names an image, by its ending."""
    from layerboard.zoo.view.photos import endings

    return Path(path).suffix.lower() in endings() and not Path(path).is_dir()


def one_path(value: object, expected: str, advice: str) -> Path:
    """A path; advice for what is none, such as an array or a table in memory."""
    if not isinstance(value, str | Path):
        raise WrongValueError(expected, value, advice)
    return path(value)


def datasets(value: object) -> Path:
    """The folder of public datasets; raises InputError for an address of another machine."""
    require_local(str(value), "--data")
    advice = "your own images go into files, one folder per class: give their folder with --images"
    return one_path(value, "the folder of public datasets", advice)


table = partial(one_path, expected="a CSV file", advice="write the table as CSV, and give its path")


def sides(value: Any) -> tuple[int, ...]:  # noqa: ANN401  # numbers and text
    """Input sizes in pixels, ascending and without repetition; text may be separated by commas."""
    given = () if value is None else (value,) if isinstance(value, int | str) else value
    if not isinstance(given, Iterable):
        raise WrongValueError(_PIXELS, value)
    parts = [part for each in given for part in (each.split(",") if isinstance(each, str) else (each,))]
    for part in parts:
        if not re.fullmatch(r"(?=0*[1-9])[0-9]{1,5}", str(part).strip()):
            raise WrongValueError(_PIXELS, part)
    return tuple(sorted({int(part) for part in parts}))


def ranges_of(text: str) -> list[tuple[int, int]]:
    """First and last block of each range in a text of layers, without ``all`` and ``final``.

    Raises InputError for a text that is none of layers, whatever the backbone.
    """
    ranges = []
    for part in comma_separated(text):
        if part == FINAL or text == "all":
            continue
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not all(number.isdecimal() and len(number) < LONGEST_INDEX for number in (first, last)):
            hint = (
                f"{part} is a set of layers: did you mean --fuse {part}?"
                if part in SETS
                else "blocks go by number, `layerboard list backbones NAME` says how many there are; final "
                "is the norm after the last"
            )
            raise InputError(
                f"layers {shortened(text)}: expected 'all' or a list such as '4,8-12,final', "
                f"found {shortened(part)}; {hint}"
            )
        ranges.append((int(first), int(last)))
    return ranges


def comma_separated(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [part.strip() for part in text.split(",")]


def layers(value: object) -> str:
    """Layers by number, as text; the numbers are compared with a backbone later."""
    if not isinstance(value, str):
        raise WrongValueError("a text such as '4,8-12,final'", value, "write the numbers into one text")
    ranges_of(given := text(value))
    return given


def each_once(parse: Callable[[str], str], value: object) -> tuple[str, ...]:
    """Names that ``parse`` accepts, each once in the given order; text may be separated by commas."""
    return tuple(dict.fromkeys(map(parse, listed(value))))


def poolings(value: object) -> tuple[str, ...]:
    """Poolings, each once in the order of `POOLINGS`; text is separated by commas."""
    expected = "cls, mean or both, and with them any of cls+mean, gem, patchwise"
    advice = "`layerboard score knn` scores vectors that other code has pooled"
    chosen = some_of(value, POOLINGS, expected, advice)
    if not {*chosen} & {*USUAL_POOLINGS}:
        together = ",".join((*USUAL_POOLINGS, *chosen))
        hint = f"they are compared with the usual ones: did you mean {together}?" if chosen else ""
        raise WrongValueError(expected, value, hint)
    return chosen


def weights(value: object) -> Mapping[str, Path]:
    """Files or folders of weights by name of the backbone."""
    each = value.values() if isinstance(value, Mapping) else (value,)
    if any(
        hasattr(given, "state_dict") or hasattr(given, "dtype") or isinstance(given, Mapping)
        for given in each
    ):
        expected = "files or folders of weights by name of the backbone"
        raise WrongValueError(expected, value, "a network of this process is run as from_module(NETWORK)")
    if not isinstance(value, Mapping):
        parts = [each.partition("=") for each in names(value)]
        for part in parts:
            if not all(part):
                expected = "NAME=PATH, such as moco-s16=vit-s-300ep.pth.tar"
                raise WrongValueError(expected, "".join(part))
        value = {name: rest for name, _, rest in parts}
    return {text(name): path(given) for name, given in value.items()}


def default_cache() -> Path:
    """Folder for vectors, measurements and the data of the mini suite, below the user's cache folder.

    Raises InputError if the user's folders are unknown.
    """
    if folder := os.environ.get("LAYERBOARD_CACHE"):
        return Path(folder)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "layerboard"
    except RuntimeError as error:
        raise InputError("this user has no home folder for the cache; give --cache DIR") from error


def default_workers() -> int:
    """Number of threads for decoding and scoring: the processors that this process may use, at most 16."""
    return min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
