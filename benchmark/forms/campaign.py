"""Campaigns: a whole run in one file, whose keys are the options of ``run``; each run leaves such a file.

Beside the options a file can have `PINS`, the weights of its backbones (`benchmark.plan.lock`).
"""

import os
import re
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

from layerboard.benchmark.forms.option import Option
from layerboard.benchmark.forms.parsers import WrongValueError
from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.zoo.errors import InputError, ensure, first_line, likely, shortened, unknown
from layerboard.zoo.reading import DEEPEST, read_as, read_regular, require_modest, unique
from layerboard.zoo.spec import entry_name
from layerboard.zoo.spec.origin import OBJECT, origin_mark, origin_of

RUN_FILE = "run.yaml"  # in the output folder
PINS = "pins"  # name, then the fields of `LockedWeights`
PACKAGED = Path(__file__).parents[1] / "campaigns"
MOST_BYTES = 2**17
MOST_VALUES = 2**16
ONCE = ("campaign", "again")  # options that say nothing of what is measured
_OF_CALLS = ("campaign", "plan", "json", "progress")  # they say what to do with a campaign
_NO_PATH = re.compile(r"[A-Za-z][\w+.-]+:|none$|$")  # hf:DATASET, module:name; labels: none
_CODE = ("backbones", "tasks")  # options that take module:name
_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'')
_DOTTED = re.compile(rf"(?:[\w-]+\s*\.\s*){{{DEEPEST}}}")  # the parser's time is quadratic in a key's parts
_HALF = re.compile(r"\\u[dD][89a-fA-F]..")  # a surrogate, which no text of a file can hold
_HEAD = """\
# What ran last into this folder. `layerboard run --campaign THIS_FILE` goes on with it; with `--output DIR`,
# it runs again there. Relative paths start at the folder of this file.
"""

_NOTHING: tuple[object, ...] = (None, False, (), {}, "")
Options = Collection[Option[Any, Any]]


def campaign_file(name: str) -> Path:
    """The file of a campaign: one that comes with the package, an output folder's, or a path.

    Raises InputError for a word that is none of these.
    """
    packaged = {path.stem: path for path in sorted(PACKAGED.glob("*.yaml"))}
    path = Path(name)
    if name in packaged:
        return packaged[name]
    if path.is_dir():
        return path / RUN_FILE
    if not path.suffix and len(path.parts) == 1 and not path.exists():
        raise unknown("campaign", name, [*packaged, "FILE.yaml", "FILE.toml"])
    return path


def read_campaign(path: Path) -> dict[str, Any]:
    """The values of a campaign file by key; raises InputError, with its path, if it has none."""
    parse, syntax = (_toml, "TOML") if path.suffix == ".toml" else (_yaml, "YAML")
    remedy = "it takes keys with values, such as 'tasks: knn'"
    content = read_as(dict[str, Any], path, remedy, partial(read_regular, most=MOST_BYTES), parse, syntax)
    ensure(content, f"{path} is empty; {remedy}")
    return content


def _toml(content: bytes) -> object:
    """The content of a TOML text; raises ValueError, at once where its parser would take hours."""
    text = content.decode("utf-8-sig")
    if _DOTTED.search(_QUOTED.sub("s", text)):
        raise ValueError("it is nested too deeply")
    return tomllib.loads(text)


def _yaml(content: bytes) -> object:
    """The content of a YAML text; raises ValueError, also for a key that comes twice."""
    import yaml  # only where a file is read

    def inner(node: Any) -> list[Any]:  # noqa: ANN401  # a node of a library without types
        if isinstance(node, yaml.MappingNode):
            unique([(key.value if isinstance(key.value, str) else id(key), 0) for key, _ in node.value])
        each = node.value if isinstance(node, yaml.CollectionNode) else ()
        return [part for value in each for part in (value if isinstance(value, tuple) else (value,))]

    text = content.decode("utf-8-sig")
    if half := _HALF.search(text):
        raise ValueError(f"{half[0]} is half a character")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        require_modest([node], inner, MOST_VALUES)  # before references to values are resolved
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(first_line(error)) from error


def campaign_options(name: str, options: Options) -> dict[str, Any]:
    """What a campaign file gives to options, by their names; its relative paths start at its folder.

    Raises InputError for a key that is neither an option nor `PINS`, and for a key without a value.
    """
    path = campaign_file(name)
    named = {option.name: option for option in options if option.name != "campaign"}
    given: dict[str, Any] = {}
    for key, value in read_campaign(path).items():
        spelled = str(key).replace("-", "_")
        if spelled not in (*named, PINS):
            if spelled in _OF_CALLS:
                raise InputError(
                    f"{path} has the key {spelled}, which belongs beside --campaign, not in its file"
                )
            close = likely("option", spelled, [*named, PINS])
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join([*named, PINS])}"
            raise InputError(f"{path} has the key {shortened(key)}, which no campaign has; {hint}")
        ensure(spelled not in given, f"{path} has the key {spelled} twice")
        if value is None:
            raise InputError(f"{path} has the key {spelled} without a value; give it one, or take it out")
        if spelled != PINS:
            given[spelled] = _moved(value, named[spelled], path.parent)
    return given


def require_harmless(name: str, values: Mapping[str, Any], options: Options) -> None:
    """Raise InputError for what a campaign file must not decide alone, as somebody else may have written it.

    That are code, clusters, and paths that are neither below the working folder nor below that of the file,
    also by ``..``, ``~`` or a link. ``values`` are kept ones of options that the command does not give.
    """
    file = campaign_file(name)
    folders = [Path(os.path.realpath(folder)) for folder in (Path.cwd(), file.parent)]
    for option in options:
        value = values[option.name]
        several = [*value.values()] if isinstance(value, Mapping) else value
        for text in map(str, several if isinstance(several, list | tuple) else (value,)):
            path = Path(text.removeprefix(origin_mark(text)).removeprefix(PREFIX))
            below = any(map(Path(os.path.realpath(path)).is_relative_to, folders))  # with its links resolved
            what = ""
            if option.name in _CODE and origin_of(entry_name(text)) is OBJECT:
                what = "Python code"
            elif option.name == "engine" and ":" in text:
                what = "a cluster"
            elif _takes_paths(option) and (not below or any(part[0] == "~" for part in path.parts)):
                what = f"a path outside of {' and '.join(map(str, dict.fromkeys(folders)))}"
            if what:
                raise InputError(
                    f"{file}: {option.name} has {shortened(text)}, {what}, which a file cannot name alone; "
                    f"give {option.flag}, too, if you trust it"
                )


def campaign_text(values: Mapping[str, object], options: Options, folder: Path, pins: object = ()) -> str:
    """The campaign file, to be written into a folder, of kept values of options by their names.

    Values that depend on the machine, or that are nothing, are left out where they are the default.
    """
    import yaml

    content: dict[str, object] = {}
    for option in options:
        value = values[option.name]
        empty = value in _NOTHING and not option.default  # False says something where True is the default
        of_machine = option.instead is not None and value == option.instead()
        if not (empty or of_machine or option.name in ONCE):
            moved = "." if option.name == "output" else _moved(value, option, Path(), folder)
            content[option.name] = plain_value(moved)
    if pins:
        content[PINS] = pins
    body = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, allow_unicode=True, width=110)
    return f"{_HEAD}{body}"


def plain_value(value: Any) -> Any:  # noqa: ANN401
    """A kept value as a file has it: lists, mappings and texts."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _takes_paths(option: Option[Any, Any]) -> bool:
    return Path in (*get_args(option.accepts), *get_args(option.kind), option.kind)


def _moved(value: Any, option: Option[Any, Any], start: Path, end: Path | None = None) -> Any:  # noqa: ANN401
    """A value whose relative paths start at a folder, with those that start here, or at another one."""
    if not _takes_paths(option):
        return value
    if get_origin(option.kind) is Mapping and not isinstance(value, Mapping):
        assert option.parse is not None
        with suppress(WrongValueError):  # of NAME=PATH; what is wrong is said when the form is filled
            value = option.parse(value)

    def move(given: object) -> object:
        """A path, moved unless it has a scheme; what may be a name is one if such a folder exists."""
        if not isinstance(given, str | Path):
            return given
        text, mark = str(given), origin_mark(str(given))
        path = text.removeprefix(mark)
        if os.path.isabs(path) or _NO_PATH.match(path):
            return text
        whole, entry = os.path.normpath(start / path), start / entry_name(path)
        sure = option.name != "backbones" or mark or path.startswith(".")
        if not (sure or os.path.exists(whole) or entry.is_dir()):
            return text
        return f"{mark}{os.path.relpath(whole, end) if end else whole}"

    if isinstance(value, Mapping):
        return {key: move(each) for key, each in value.items()}
    return [*map(move, value)] if isinstance(value, list | tuple) else move(value)
