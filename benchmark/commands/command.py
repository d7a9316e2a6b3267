"""Commands made from forms of options (`benchmark.option`), and what several of them share."""

import json
import re
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from types import FrameType, GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from benchmark.option import Declared, declared
from zoo.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from benchmark.engines.progress import Terminal

Form = TypeVar("Form")

WIDEST_CHOICES = 40
"""Characters of choices that leave room for the words beside them; more are not shown."""

_CONVERTED = (bool, int, float, Path)
"""Types that the command line makes of a word; of all others, options do."""


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Attributes:
        name: Its words, such as ``score knn``.
        form: The form of its options.
        carry_out: Does what is asked for and prints; gives the exit code, None for 0. Its docstring is the
            command's help.
        without: Names of options of the form that the command does not have.
    """

    name: str
    form: Callable[..., Any]
    carry_out: Callable[[Any], int | None]
    without: Collection[str] = ()

    def for_typer(self) -> Callable[..., None]:
        """A function with the form's options as its parameters.

        Options that are left out have the form's defaults; a wrong value is InputError, as from Python.
        """

        def command(**words: object) -> None:
            given = {name: value for name, value in words.items() if value not in (None, [])}
            if code := self.carry_out(self.form(**given)):
                raise typer.Exit(code)

        options = declared(self.form, self.without)
        vars(command)["__signature__"] = Signature([_parameter(option) for option in options])
        command.__doc__ = cleandoc(self.carry_out.__doc__ or "")
        return command


def command(
    name: str, form: Callable[..., Form], without: Collection[str] = ()
) -> Callable[[Callable[[Form], int | None]], Command]:
    """Make a command of a function that is given a filled form."""
    return lambda function: Command(name, form, function, without)


def _parameter(declaration: Declared) -> Parameter:
    option = declaration.option
    text = option.help.removesuffix(".")
    optional = option.default is None
    described: object
    if option.positional:
        words = f"{text}: {', '.join(option.choices)}." if option.choices else option.help
        described = typer.Argument(help=_literal(words), show_default=not optional)
    else:
        switch = bool in {declaration.keeps, *get_args(declaration.keeps)}
        choices = f"[{'|'.join(option.choices)}]" if option.choices else None
        both = switch and option.name != "json"  # --no-json would say nothing
        names = [] if both else [option.flag, *option.also, *filter(None, [option.short])]
        described = typer.Option(
            *names,
            help=_literal(f"{text}; several may follow." if option.several else option.help),
            metavar=choices if not choices or len(choices) < WIDEST_CHOICES else "<name>",
            min=option.least,
            show_default=option.usual or option.default not in (None, ()),
        )
    kind: Any = _kind(declaration)
    kind = GenericAlias(list, kind) if option.several else kind
    default = Parameter.empty if option.default is ... else None if option.several else option.default
    kind = kind | None if default is None else kind
    return Parameter(
        option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, described]
    )


def _kind(declaration: Declared) -> type:
    """What the command line makes of a word before the option reads it."""
    accepted = {declaration.accepts, *get_args(declaration.accepts)}
    if str in accepted and (Path not in accepted or declaration.option.several):  # options read these
        return str
    types = {declaration.keeps, *get_args(declaration.keeps)}
    return next((kind for kind in _CONVERTED if kind in types), str)


def _literal(text: str) -> str:
    """A help text whose placeholders stay: Markdown takes ``<image>`` for a tag and drops it."""
    return re.sub(r"([<>*\[\]])", r"\\\1", text)


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does: what is half written goes away, and so do processes."""


@contextmanager
def ended_by_signals(line: str) -> "Iterator[Terminal]":
    """A reporter; when Ctrl-C or SIGTERM comes, it says a line, and the command ends with 130 or 143."""
    from benchmark.engines.progress import Terminal

    report = Terminal()
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _terminate) if main else None
    try:
        yield report
    except KeyboardInterrupt as stop:
        report.say(line)
        raise typer.Exit(143 if isinstance(stop, TerminatedError) else 130) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise TerminatedError


def say_json(content: object) -> None:
    """Print something for machines."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def rows_of(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a data frame for machines: all digits, and null for what is not a number."""
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", double_precision=15))
    return rows


def counted(count: int, noun: str) -> str:
    """A count with its noun: ``1 backbone``, ``2 backbones``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def records_of(output: Path, *, empty: bool = False) -> "pd.DataFrame":
    """All records of an output folder.

    Args:
        output: The folder.
        empty: Whether it may have none.

    Raises:
        InputError: There is no such folder, or no records in it.
    """
    from leaderboards.records.record import read_records, to_frame

    if not output.is_dir():
        raise InputError(
            f"expected a folder of records and tables at {output}, which does not exist; "
            "`python -m benchmark run` writes one, --output names it"
        )
    folder = output / "records"
    if empty and not any(not path.name.startswith(".") for path in folder.rglob("*.parquet")):
        return to_frame([])
    return read_records([folder])
