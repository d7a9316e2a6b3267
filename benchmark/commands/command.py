"""Commands made from forms of options (`benchmark.option`), and functions that several commands share."""

import inspect
import json
import re
import shlex
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from types import FrameType, GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar, get_args

import typer

from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.forms.option import (
    Filled,
    Given,
    Option,
    P,
    called_with,
    declared,
    docstring,
    filled_form,
)
from layerboard.zoo.errors import InputError, few_of, fitting, printable, unknown

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.benchmark.engines.progress import Terminal
    from layerboard.benchmark.passes.failures import Failure
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.charts.engine import Chart
    from layerboard.leaderboards.published.literature import Published

Shown = TypeVar("Shown", bound=Result)

Runnable = Literal["backbone", "task", "suite"]
WIDEST_CHOICES = 12  # in characters; longer lists of choices are in the help, which has more room


@dataclass(frozen=True)
class Command(Generic[P, Filled]):
    """A command: a form of options, and the function that carries it out.

    The function returns what is printed, or prints and returns the exit code (None for 0).
    """

    name: str  # its word, such as ``merge``
    form: Callable[P, Filled]
    handle: "Callable[[Filled], Result | int | None]"
    interrupted: str = "every file that was written is complete"  # what is said on Ctrl-C

    @property
    def help(self) -> str:
        """The docstring of the function, without what it returns to Python."""
        return docstring(self.handle).partition("\n\nReturns:")[0]

    def for_typer(self) -> Callable[..., None]:
        """A function with the form's options as parameters; a wrong value raises InputError, as in Python."""
        context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)

        def command(context: typer.Context, **words: object) -> None:
            sources = {name: context.get_parameter_source(name) for name in words}
            typed = {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}
            given = {name: words[name] for name in typed if words[name] not in (None, [])}
            if "progress" in inspect.signature(self.form).parameters:
                given["progress"] = True
            with ended_by_signals(f"interrupted; {self.interrupted}"):
                outcome = self.handle(filled_form(self.form, given))
                if isinstance(outcome, Result):
                    if outcome.content is not None:
                        say_json(outcome.content)
                    else:
                        for line in (outcome.text(),) if outcome.lines is None else outcome.lines:
                            say(line)
                    outcome = outcome.status
            if outcome:
                raise typer.Exit(outcome)

        vars(command)["__signature__"] = Signature([context, *map(_parameter, declared(self.form))])
        command.__doc__ = self.help
        return command

    def python(self, function: Callable[[Filled], Given]) -> Callable[P, Given]:
        """Turn a function of the filled form into a public one with the command's options and help."""
        said, _, _ = self.help.partition("\n\nExample")
        summary = f"{said}\n\nDoes what ``layerboard {self.name}`` does, with the same options.\n\n"
        return called_with(self.form, lambda own: summary + own.removeprefix(self.help).lstrip())(function)


def command(
    name: str, form: Callable[P, Filled]
) -> Callable[[Callable[[Filled], int | None]], Command[P, Filled]]:
    """Decorator that makes a command from a function of a filled form."""
    return lambda function: Command(name, form, function)


def public(
    name: str, form: Callable[P, Filled], *interrupted: str
) -> "Callable[[Callable[[Filled], Shown]], Callable[P, Shown]]":
    """Decorator that makes a command and a function of Python, with the same options, of one function.

    The function turns a filled form into a `Result`, which the command prints. Its docstring is the help of
    the command up to its section Returns, which is for Python alone.
    """

    def decorate(function: Callable[[Filled], Shown]) -> Callable[P, Shown]:
        command: Command[P, Filled] = Command(name, form, function, *interrupted)
        called = command.python(function)
        vars(called)["command"] = command
        return called

    return decorate


def _parameter(option: Option[Any, Any]) -> Parameter:
    word: Any = int if option.several else option.kind  # what the option reads
    if option.choices or (option.kind is not Path and str in (option.accepts, *get_args(option.accepts))):
        word = str
    text = option.help.removesuffix(".")
    extra: object
    if option.positional:
        words = f"{text}: {', '.join(option.choices)}." if option.choices else option.help
        shown = option.default is not None
        extra = typer.Argument(help=_literal(words), metavar=option.name.upper(), show_default=shown)
    else:
        choices = f"[{'|'.join(option.choices)}]" if option.choices else None
        if choices and len(choices) >= WIDEST_CHOICES:
            text, choices = f"{text}. One of {', '.join(option.choices)}", "<name>"
        number = None if option.least is None else "<int>"  # "<int range>" would leave help texts no room
        extra = typer.Option(
            *([] if option.kind is bool else [option.flag, *option.also.split()]),
            help=_literal(f"{text}; several may follow." if option.several else f"{text}."),
            metavar=number or choices or (f"<{word.__name__}>..." if option.several else None),
            min=option.least,
            autocompletion=(lambda: [*option.choices]) if option.choices else None,
            rich_help_panel=option.panel or None,
            show_default=option.usual or (option.default not in (None, ()) and option.default is not False),
        )
    kind = GenericAlias(list, word) if option.several else word
    default = Parameter.empty if option.default is ... else None if option.several else option.default
    kind = kind | None if default is None else kind
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, extra])


def _literal(text: str) -> str:
    """The help text with placeholders such as ``<image>`` escaped, which Markdown would drop as tags."""
    return re.sub(r"([<>*\[\]])", r"\\\1", text)


@contextmanager
def ended_by_signals(line: str) -> "Iterator[Terminal]":
    """A reporter; on Ctrl-C or SIGTERM it prints the line, and the command exits with code 130 or 143.

    SIGTERM is handled as Ctrl-C: half-written files are removed and worker processes are stopped.
    """
    from layerboard.benchmark.engines.progress import Terminal

    code, report = 130, Terminal()

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal code
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        code = 143
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, terminate) if main else None
    try:
        yield report
    except KeyboardInterrupt:
        report.say(line)
        raise typer.Exit(code) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def exit_code(failures: "Sequence[Failure]") -> int:
    """Exit code: 0 without failures, 2 if wrong input caused all of them, else 1."""
    return (2 if all(failure.bad_input for failure in failures) else 1) if failures else 0


def say(text: object, *, err: bool = False) -> None:
    """Print text for people, made `printable` whatever names it contains."""
    typer.echo(printable(str(text)), err=err)


def say_json(content: object) -> None:
    """Print JSON; other characters than ASCII are escaped where the terminal cannot show them safely."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    typer.echo(text if text == printable(text) else json.dumps(content, indent=2, allow_nan=False))


def rows_of(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows of a data frame for JSON, with all digits; None where a number is not finite."""
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", double_precision=15))
    return rows


def boards_of(
    records: "pd.DataFrame", output: Path, suite: str | None = None, published: "Sequence[Published]" = ()
) -> "list[Board]":
    """The boards of all suites in the records of an output folder, or of the named one."""
    from layerboard.benchmark.plan.facts import known_trainings, with_seen
    from layerboard.leaderboards.blocks.display import page_problem
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.records.record import suites_of

    suites = suites_of(records)
    if problem := page_problem(suites):
        raise InputError(f"{problem}; take the results of one of them out of {output}")
    chosen = suites if suite is None else [suite]
    require_run("suite", chosen, suites, output)
    folders = {"items": output / "items", "arrays": output / "arrays"}
    known, records = known_trainings(), with_seen(records)
    return [Board.of(records, each, published=published, trainings=known, **folders) for each in chosen]


def drawn(
    board: "Board", usual: Sequence[str], backbones: Sequence[str] | None = None
) -> "Callable[[], Iterator[Chart]]":
    """A function that gives the charts of a board when they are wanted, the ``usual`` one first.

    It is named by patterns in order of preference. ``backbones`` are those with lines, by name, if not all.
    """

    @cache
    def figures() -> "list[Chart]":
        from layerboard.benchmark.plan.facts import known_facts
        from layerboard.leaderboards.published.literature import all_published
        from layerboard.leaderboards.report.content import report_of
        from layerboard.leaderboards.report.figures import charts_of

        published = tuple(number for number in all_published() if number.backbone in board.labels)
        report = report_of(replace(board, published=published) if published else board, known_facts())
        if backbones is not None:
            report = report.only([board.labels[name] for name in backbones])
        return charts_of(report, usual)

    def draw() -> "Iterator[Chart]":
        from layerboard.leaderboards.report.figures import charts_of_pages

        yield from figures()
        yield from charts_of_pages(board) if backbones is None else ()

    return draw


def require_run(what: Runnable, names: Iterable[str], measured: Collection[str], output: Path) -> None:
    """Raise InputError for the first name of which an output folder has no record.

    Its sentence tells a name that can be run, and how, from one that there is not.
    """
    lacking = [name for name in names if name not in measured]
    if not lacking:
        return
    from layerboard.benchmark.plan.suites import SUITES
    from layerboard.tasks.framework.registry import TASKS
    from layerboard.zoo.registry.find import all_specs
    from layerboard.zoo.spec import Variant

    flags: dict[Runnable, str] = {"backbone": "--backbones", "task": "--tasks", "suite": "--suite"}
    entries: Sequence[Any] = {"backbone": all_specs(), "task": TASKS, "suite": SUITES}[what]
    for name in lacking:
        entry = Variant.of(name).entry if what == "backbone" else name
        if any(each.name == entry for each in entries):
            words = shlex.join(["layerboard", "run", flags[what], name, "-o", str(output)])
            raise InputError(
                f"{what} {name} was not run here; `{words}`, with the other options of that run, adds it to "
                f"{few_of([*measured])}"
            )
    raise unknown(what, lacking[0], measured)


def run_backbones(patterns: Sequence[str], measured: Collection[str], output: Path) -> set[str]:
    """The backbones of an output folder that fit names or patterns; raises InputError for one without any."""
    exact = (pattern for pattern in patterns if not {*"*?["} & {*pattern})
    require_run("backbone", [*exact], sorted(measured), output)
    return fitting(measured, patterns)


def records_of(output: Path, *, empty: bool = False, missing: bool = False) -> "pd.DataFrame":
    """All records of an output folder; raises InputError if there is no such folder, or no record in it.

    With ``empty``, a folder without records is allowed, and with ``missing`` that there is none.
    """
    if not output.is_dir() and not missing:
        raise InputError(
            f"expected a folder of records and tables at {output}, which does not exist; "
            "`layerboard run` writes one, --output names it"
        )
    from layerboard.leaderboards.records.record import read_records, to_frame  # pandas

    folder = output / "records"
    if empty and not any(not path.name.startswith(".") for path in folder.rglob("*.parquet")):
        return to_frame([])
    return read_records([folder])
