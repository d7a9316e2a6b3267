"""Options that are declared once: as fields of a frozen dataclass, a form.

A Python function (`called_with`) and a command (`benchmark.commands.command`) are made from the form:
both have exactly its options, with the same names, defaults and words.
"""

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import getattr_static
from pathlib import Path
from textwrap import fill
from types import EllipsisType
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_args, get_type_hints, overload

from zoo.errors import InputError, shortened

Given = TypeVar("Given")
Kept = TypeVar("Kept")
Form = TypeVar("Form")
Result = TypeVar("Result")
P = ParamSpec("P")


@dataclass(eq=False, kw_only=True)
class Option(Generic[Given, Kept]):
    """A field of a form that is given as one type and kept, parsed and checked, as another.

    It is a descriptor: the form's constructor accepts what is ``Given``, its attribute is what is ``Kept``,
    and a type checker knows both. What is kept may be given again, so `dataclasses.replace` works.

    Attributes:
        default: What is given where nothing is; ``...`` where something must be. None is never parsed.
        help: What it is for, one phrase that ends with a full stop.
        parse: Turns what is given to an option into what is kept; raises InputError with one sentence where
            it cannot.
        short: One-letter name on the command line, such as ``-o``.
        also: Further names on the command line.
        several: Whether several values may follow the name on the command line.
        positional: Whether it has no name on the command line; None for those without a default alone.
        choices: All values that there are, where they can be counted.
        least: The smallest whole number that is accepted.
        usual: The default in words, where it depends on something else.
        instead: Gives what is kept in place of the default None.
        name: Name of the field.
    """

    default: Given | EllipsisType = field(kw_only=False)
    help: str = field(kw_only=False)
    parse: Callable[[Any, "Option[Any, Any]"], Kept] = field(kw_only=False)
    short: str = ""
    also: tuple[str, ...] = ()
    several: bool = False
    positional: bool | None = None
    choices: Collection[str] = ()
    least: int | None = None
    usual: str = ""
    instead: Callable[[], Kept] | None = None
    name: str = field(init=False)

    def __post_init__(self) -> None:
        if self.positional is None:
            self.positional = self.default is ...

    @property
    def flag(self) -> str:
        """Name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

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
        """Keep what is given; a frozen dataclass comes here from its constructor only."""
        if value is None and self.default is None:
            vars(instance)[self.name] = self.instead() if self.instead else None
        else:
            vars(instance)[self.name] = self.parse(value, self)

    def takes(self, expected: str, found: object) -> InputError:
        """The error of being given something else than what is expected."""
        name = self.name if self.positional else self.flag
        return InputError(f"{name} takes {expected}; found {shortened(found)}")


Switch = Option[bool, bool]
OptionalSwitch = Option[bool | None, bool | None]
OneWord = Option[str, str]
OptionalWord = Option[str | None, str | None]
Words = Option[str | Sequence[str], tuple[str, ...]]
OnePath = Option[str | Path, Path]
OptionalPath = Option[str | Path | None, Path | None]
Paths = Option[str | Path | Sequence[str | Path], tuple[Path, ...]]
Whole = Option[int, int]
OptionalWhole = Option[int | None, int | None]
Wholes = Option[int | Sequence[int], tuple[int, ...]]
OptionalReal = Option[float | None, float | None]


@dataclass(frozen=True)
class Declared:
    """An option, and the types that it accepts and keeps."""

    option: Option[Any, Any]
    accepts: Any
    keeps: Any


def declared(form: Callable[..., object], without: Collection[str] = ()) -> tuple[Declared, ...]:
    """The options of a form in the order of their declaration, but those of some names."""
    assert isinstance(form, type)
    hints = get_type_hints(form)
    names = [each.name for each in fields(form) if each.name not in without]
    return tuple(Declared(getattr_static(form, name), *get_args(hints[name])) for name in names)


def called_with(
    form: Callable[P, Form], without: Collection[str] = ()
) -> Callable[[Callable[[Form], Result]], Callable[P, Result]]:
    """Make a function of a filled form into one that is called with the form's options.

    Its signature and its documentation list them all, but those that it goes without: of the command line.
    """

    def decorate(function: Callable[[Form], Result]) -> Callable[P, Result]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> Result:
            for name in kwargs.keys() & set(without):
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(form(*args, **kwargs))

        options = declared(form, without)
        parameters = inspect.signature(form).parameters
        vars(called)["__signature__"] = inspect.Signature(
            [parameters[each.option.name].replace(annotation=each.accepts) for each in options],
            return_annotation=inspect.signature(function).return_annotation,
        )
        items = (_described(each.option) for each in options)
        listed = (fill(item, 100, initial_indent=" " * 4, subsequent_indent=" " * 8) for item in items)
        called.__doc__ = "\n".join([f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:", *listed])
        return called

    return decorate


def _described(option: Option[Any, Any]) -> str:
    """Name of an option, what it is for, its choices and its default, as a docstring has them."""
    words = [f"{option.name}: {option.help}"]
    if option.choices:
        words.append(f"One of {', '.join(option.choices)}.")
    if option.usual:
        words.append(f"Default: {option.usual}.")
    return " ".join(words)
