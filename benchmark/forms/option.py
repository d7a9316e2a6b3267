"""Options that are declared once, as fields of a `Form`.

A Python function (`called_with`) and a command (`benchmark.commands.command`) are made from the form: both
have exactly its options, with the same names, defaults and help.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, fields
from functools import partial, reduce, wraps
from inspect import getattr_static
from operator import or_
from pathlib import Path
from textwrap import dedent, fill
from types import EllipsisType
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    overload,
)

from layerboard.benchmark.forms import parsers
from layerboard.zoo.errors import InputError, either, likely, shortened
from layerboard.zoo.libraries import imports_explained

Given = TypeVar("Given")
Kept = TypeVar("Kept")
Filled = TypeVar("Filled")  # a form with values
Result = TypeVar("Result")
P = ParamSpec("P")
PANELS = ("Data", "Backbones", "Tasks", "Layers and vectors", "Machine", "Output")  # in the order of the help
Caller = Literal["command", "python"]  # who fills a form: the command line, or a call from Python

RAISES = """\
Raises:
    layerboard.InputError: Something that was given is wrong, or is not there: one sentence says what."""

_PARSERS: Mapping[Any, Callable[[Any], Any]] = {
    bool: parsers.switch,
    float: parsers.real,
    str: parsers.text,
    Path: parsers.path,
    tuple[str, ...]: parsers.names,
    tuple[int, ...]: parsers.wholes,
    tuple[Path, ...]: parsers.paths,
}


@dataclass(eq=False, kw_only=True)
class Option(Generic[Given, Kept]):
    """A field of a form whose given value is parsed, checked and kept as another type.

    It is a descriptor: the constructor of the form accepts a ``Given`` value, the attribute is a ``Kept``
    value, and a type checker knows both. A kept value may be given again, so `dataclasses.replace` works. By
    default, the parser is that of the kept type, the choices are those of a literal, and options kept as a
    tuple or mapping accept several values on the command line.
    """

    default: Given | EllipsisType = field(kw_only=False)  # ``...``: must be given; None is never parsed
    help: str = field(kw_only=False)  # one phrase that ends with a full stop
    parse: Callable[[Any], Kept] | None = field(default=None, kw_only=False)
    also: str = ""  # further names on the command line, such as "--task -t"
    several: bool | None = None
    positional: bool | None = None  # without a name on the command line; None: if it is required
    choices: Collection[str] = ()
    keys: Collection[str] = ()  # what stands before ``=`` in an option of NAME=VALUE
    least: int | None = None
    most: int = parsers.LARGEST
    usual: str = ""  # the default in words, if it depends on something else
    instead: Callable[[], Kept] | None = None  # returns the kept value for the default None
    panel: str = ""  # heading of its group in the help; "": that of the class that declares it
    only: Caller | None = None  # who has it, if not both
    name: str = field(init=False)
    accepts: Any = field(init=False)
    kind: Any = field(init=False)  # type of the kept value, apart from None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.accepts, keeps = get_args(owner.__annotations__[name])
        kinds = [kind for kind in get_args(keeps) if kind is not type(None)]
        self.kind = reduce(or_, kinds) if type(None) in get_args(keeps) else keeps
        if get_origin(self.kind) is Literal:
            self.choices = get_args(self.kind)
        if self.positional is None:
            self.positional = self.default is ...
        if self.several is None:
            self.several = get_origin(self.kind) in (tuple, Mapping)
        usual: Any = _PARSERS.get(self.kind, lambda value: value)  # others are checked where used
        if self.choices:
            usual = partial(parsers.choice, choices=self.choices)
        elif self.kind is int:
            usual = partial(parsers.whole, least=self.least, most=self.most)
        self.parse = self.parse or usual

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @overload
    def __get__(self, instance: None, owner: type) -> Given: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Kept: ...
    def __get__(self, instance: object, owner: type) -> Given | Kept:
        if instance is not None:
            return cast("Kept", vars(instance)[self.name])
        if isinstance(self.default, EllipsisType):  # dataclasses take this for a field without a default
            raise AttributeError(f"{self.name} has no default")
        return self.default

    def __set__(self, instance: object, value: Given) -> None:
        """Keep the parsed value; a frozen dataclass calls this from its constructor only."""
        if value is None and self.default is None:
            vars(instance)[self.name] = self.instead() if self.instead else None
            return
        assert self.parse is not None
        try:
            vars(instance)[self.name] = self.parse(value)
        except parsers.WrongValueError as error:
            raise error.about(self.name.upper() if self.positional else self.flag) from None

    @property
    def documentation(self) -> str:
        """Name, help, choices and default, in the form of a docstring."""
        words = [f"{self.name}: {self.help}"]
        words += [f"One of {', '.join(self.choices)}."] if self.choices else []
        words += [f"Default: {self.usual}."] if self.usual else []
        return fill(" ".join(words), 100, initial_indent=" " * 4, subsequent_indent=" " * 8)


Plain = Option[Kept, Kept]
Words = Option[str | Sequence[str], tuple[str, ...]]
OnePath = Option[str | Path, Path]
OptionalPath = Option[str | Path | None, Path | None]
Paths = Option[str | Path | Sequence[str | Path], tuple[Path, ...]]
Wholes = Option[int | Sequence[int], tuple[int, ...]]
ByName = Option[str | Sequence[str] | Mapping[str, Any], Mapping[str, Any]]


# mypy would take options that a frozen class inherits for what they accept, not for what they keep
@dataclass_transform(kw_only_default=True)
class Form:
    """Options of a command or a function: each subclass is a frozen dataclass of options.

    ``panel`` is the heading of its own options in the help of commands. Callers have all options, or those
    that ``takes`` names.
    """

    takes: ClassVar[str] = ""

    def __init_subclass__(cls, *, kw_only: bool = True, panel: str = "") -> None:
        for option in vars(cls).values():
            if isinstance(option, Option):
                option.panel = option.panel or panel
        dataclass(frozen=True, kw_only=kw_only)(cls)

    @classmethod
    def of(cls, other: "Form", **changes: Any) -> Self:  # noqa: ANN401  # options of any kind
        """This form, with the options that it shares with another one, and with some of its own."""
        names = {each.name for each in fields(cls)}  # type: ignore[arg-type]  # each subclass is a dataclass
        return cls(**{name: value for name, value in vars(other).items() if name in names} | changes)

    @classmethod
    def filled(cls, given: Mapping[str, Any]) -> Self:
        """The form with what a user gave, by name of the option; the other options have their defaults."""
        return cls(**given)


def docstring(function: Callable[..., object]) -> str:
    """The documentation of a function, read from its source where Python left it out (``-OO``)."""
    if sys.flags.optimize < 2:
        return inspect.cleandoc(function.__doc__ or "")
    with suppress(OSError, SyntaxError):  # without its source
        definition = ast.parse(dedent(inspect.getsource(function))).body[0]
        if isinstance(definition, ast.FunctionDef):
            return ast.get_docstring(definition) or ""
    return ""


def declared(form: Callable[..., object], caller: Caller = "command") -> tuple[Option[Any, Any], ...]:
    """The options of a form that a caller has, group by group.

    Those without a panel come first, then `PANELS`, and ``json`` is the last of its group.
    """
    assert isinstance(form, type)
    assert issubclass(form, Form)
    names = form.takes.split() or [each.name for each in fields(form)]  # type: ignore[arg-type]  # a dataclass
    options = [getattr_static(form, name) for name in names]
    options = [option for option in options if option.only in (caller, None)]
    panels = ["", *PANELS, *(option.panel for option in options)]
    return tuple(sorted(options, key=lambda each: (panels.index(each.panel), each.name == "json")))


def filled_form(form: Callable[..., Filled], given: Mapping[str, Any]) -> Filled:
    """A form with what a user gave, by name of the option."""
    assert isinstance(form, type)
    assert issubclass(form, Form)
    for name, value in given.items():
        require_something(getattr_static(form, name), value)
    filled = form.filled(given)
    for name in given:  # what was given may be a generator
        require_something(getattr_static(form, name), vars(filled)[name])
    return cast("Filled", filled)


def require_something(option: Option[Any, Any], value: object) -> None:
    """Raise InputError for an empty list, table, array or dataset: it does not mean the default."""
    if isinstance(value, str | bytes):
        return
    with suppress(TypeError):  # an array without axes has no length
        if isinstance(value, Sized) and len(value) == 0:
            name = option.name.upper() if option.positional else option.flag
            advice = "" if option.positional else "; leave it out to have its default"
            raise InputError(
                f"{name} takes at least one value, found an empty {type(value).__name__}{advice}"
            )


def called_with(
    form: Callable[P, Filled], documented: Callable[[str], str] = str
) -> Callable[[Callable[[Filled], Result]], Callable[P, Result]]:
    """Turn a function of a filled form into one that is called with the options of the form.

    Its signature and documentation list all options but those of commands alone. The documentation begins
    with what ``documented`` makes of the docstring.
    """

    def decorate(function: Callable[[Filled], Result]) -> Callable[P, Result]:
        parameters = inspect.signature(form).parameters
        options = sorted(declared(form, "python"), key=lambda option: parameters[option.name].kind)
        signature = inspect.Signature([parameters[option.name] for option in options])

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> Result:
            given = _require_options(function.__name__, signature, args, kwargs)
            settings: AbstractContextManager[None] = nullcontext()
            if "torch" in sys.modules:  # it computes as in a new process, whoever has imported it
                from layerboard.zoo.features.pass_context import pass_context

                settings = pass_context(gradients=True)
            try:
                with imports_explained(), settings:
                    return function(filled_form(form, given))
            except InputError as error:
                error.args = (in_python(str(error), options),)
                raise

        vars(called)["__signature__"] = inspect.Signature(
            [parameters[option.name].replace(annotation=option.accepts) for option in options],
            return_annotation=inspect.signature(function).return_annotation,
        )
        listed = "\n".join(["Options:", *(option.documentation for option in options)])
        own = documented(docstring(function))
        called.__doc__ = "\n\n".join(filter(None, [own, RAISES, listed]))
        return called

    return decorate


def _require_options(
    name: str, signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]
) -> Mapping[str, Any]:
    """The arguments by name; raises InputError, with the function's name, for those that are not taken."""
    for each in (each for each in kwargs if each not in signature.parameters):
        close = likely("option", each, [*signature.parameters])
        hint = f"did you mean {either(close)}?" if close else f"help(layerboard.{name}) lists all"
        raise InputError(f"{name}() has no option {shortened(each)}; {hint}")
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        taken = ", ".join(f"{each}=" for each in signature.parameters)
        raise InputError(f"{name}(): {error}; it takes {taken}") from None


_NOT_VALUES = "out|too|first|alone|again|instead|another|has"  # words that follow an option in a sentence
_NAMED = re.compile(
    r"`[^`]*`|--(no-)?([a-z][a-z-]*)"
    rf"(?: (?!(?:{_NOT_VALUES})\b)([a-z](?:[\w:@/*.-]*\w)?)(?=[.,;?)]|$)|[ =](?=[A-Z\d]))?"
)


def in_python(text: str, options: Sequence[Option[Any, Any]]) -> str:
    """A sentence with options as in Python, ``images=`` for ``--images``, ``first`` for ``FIRST``.

    Commands stay.
    """
    names = {option.name for option in options if not option.positional}
    arguments = {option.name.upper(): option.name for option in options if option.positional}
    subject, takes, rest = text.partition(" takes ")
    text = f"{arguments.get(subject, subject)}{takes}{rest}"

    def renamed(found: re.Match[str]) -> str:
        name = (found[2] or "").replace("-", "_")
        if name not in names:
            return found[0]
        value = "False" if found[1] else repr(found[3]) if found[3] else ""
        return f"{name}={value}"

    return _NAMED.sub(renamed, text)
