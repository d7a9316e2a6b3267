"""Commands made from forms (`benchmark.request.option`): they have the options declared there, no others."""

from collections.abc import Callable, Collection
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer

from benchmark.request.option import Declared, declared

Form = TypeVar("Form")

_CONVERTED = (bool, int, float, Path)
"""Types that the command line makes of a word; of all others, options do."""


def command_of(
    form: Callable[..., Form], without: Collection[str] = ()
) -> Callable[[Callable[[Form], None]], Callable[..., None]]:
    """Make a function of a filled form into a command with the form's options.

    Options that are left out have the form's defaults; a wrong value is InputError, as from Python.

    Args:
        form: The form.
        without: Names of options that the command does not have.
    """

    def decorate(function: Callable[[Form], None]) -> Callable[..., None]:
        @wraps(function)
        def command(**words: object) -> None:
            given = {name: value for name, value in words.items() if value not in (None, [])}
            function(form(**given))

        vars(command)["__signature__"] = Signature(
            [_parameter(one) for one in declared(form) if one.option.name not in without]
        )
        return command

    return decorate


def _parameter(one: Declared) -> Parameter:
    option = one.option
    if option.default is ...:
        words = f"{option.help.removesuffix('.')}: {', '.join(option.choices)}."
        word = typer.Argument(help=words if option.choices else option.help)
        kept = list[str] if option.several else str
        return Parameter(option.name, Parameter.KEYWORD_ONLY, annotation=Annotated[kept, word])
    names = [] if one.kept is bool else [option.flag, *option.also, *filter(None, [option.short])]
    described = typer.Option(
        *names,
        help=f"{option.help.removesuffix('.')}; several may follow." if option.several else option.help,
        metavar=f"[{'|'.join(option.choices)}]" if option.choices else None,
        min=option.least,
        show_default=option.shown or option.default not in (None, ()),
    )
    default = None if option.several else option.default
    kind = _kind(one)
    return Parameter(
        option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, described]
    )


def _kind(one: Declared) -> object:
    """Type of the option for typer."""
    if one.option.several:
        return list[str] | None
    kept = {one.kept, *get_args(one.kept)}
    if {int, str} <= {*get_args(one.given)}:  # a number that may be written as a word, which the option reads
        kept = {str}
    kind = next((known for known in _CONVERTED if known in kept), str)
    return kind | None if one.option.default is None else kind
