"""The command line. Heavy libraries are imported by the commands that need them."""

import atexit
import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from itertools import chain
from traceback import walk_tb
from typing import Annotated, Any

import typer

from layerboard.benchmark.commands.command import Command, say
from layerboard.benchmark.engines.base import WorkerDiedError
from layerboard.benchmark.forms.option import Option, declared
from layerboard.benchmark.forms.parsers import require_working_folder
from layerboard.leaderboards.records.files import VERSION
from layerboard.zoo.errors import InputError, about_file, either, first_line, likely, shortened
from layerboard.zoo.libraries import explained

UsageError: Any = typer.BadParameter.__base__  # which Typer keeps in modules of its own

PANELS = {  # names of commands, in the order of the help; each is that of its module
    "Measure": ("run", "check", "score"),
    "Look": ("show", "leaderboard", "report", "look"),
    "Know": ("recommend", "compare", "reproduce", "list"),
    "Take": ("features", "export", "merge"),
}


def _command_of(name: str) -> Command[..., Any]:
    there = vars(import_module(f"layerboard.benchmark.commands.{name}")).values()
    commands = (getattr(each, "command", each) for each in there)
    return next(each for each in commands if isinstance(each, Command) and each.name == name)


# of every command, since click keeps the option with which a command was first seen, alone or below others
HELP = {"help_option_names": ["-h", "--help"]}
COMMANDS = tuple(map(_command_of, chain.from_iterable(PANELS.values())))


def app_of(commands: Sequence[Command[..., Any]]) -> typer.Typer:
    """The command line of some commands."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        help="Which frozen vision backbone, and which of its layers, is best for which task?",
        context_settings=HELP,
    )
    app.callback()(every_command)
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    for each in commands:
        panel = panels.get(each.name)
        app.command(each.name, context_settings=HELP, rich_help_panel=panel)(each.for_typer())
    return app


def _say_version(wanted: bool) -> None:
    if wanted:
        say(f"layerboard {VERSION}")
        raise typer.Exit


def every_command(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Accept the options that precede the name of a command."""
    del version


app = app_of(COMMANDS)


@cache
def command_line() -> Any:  # noqa: ANN401  # of one of typer's classes that has no stubs
    """The command line as it is called; to build it takes longer than to read a line of it."""
    return typer.main.get_command(app)


def named_command(name: str) -> Any:  # noqa: ANN401
    """The object of typer behind a command's name; the whole command line for any other name."""
    whole = command_line()
    return whole.commands.get(name, whole)


def repeat_options(arguments: list[str]) -> list[str]:
    """Repeat an option for each of its values: ``--tasks a b`` becomes ``--tasks a --tasks b``."""
    options = named_command(arguments[0] if arguments else "").params
    several = {name for each in options if getattr(each, "multiple", False) for name in each.opts}
    result: list[str] = []
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in several else ""
        elif option and result[-1] != option:
            result.append(option)
        result.append(argument)
    return result


atexit.register(gc.freeze)  # else the end takes a third of a second, to look for cycles in torch's modules


def main() -> None:
    """Run the command line; wrong input prints one sentence and exits with code 2."""
    with errors_in_sentences():
        require_working_folder()
        arguments, whole = repeat_options(sys.argv[1:]), command_line()
        name = arguments[0] if arguments else "-"
        if name not in whole.commands and not name.startswith("-"):
            close = likely("command", name, [*whole.commands])
            hint = f"did you mean {either(f'`layerboard {each}`' for each in close)}?" if close else ""
            listed = hint or "`layerboard -h` lists all"
            raise InputError(f"there is no command {shortened(name)}; {listed}")
        try:
            code = whole(arguments, prog_name="layerboard", standalone_mode=False)
        except UsageError as error:
            if not error.message and not hasattr(error, "param"):  # without arguments, help was shown
                sys.exit(2)
            raise usage_reason(error, name) from None
        sys.exit(code or 0)


def usage_reason(error: Any, name: str) -> InputError:  # noqa: ANN401  # a usage error of Typer
    """A usage error of a command as a sentence, with the nearest name of an option, or the line of usage.

    ``name`` is the first word of the line, if it names no command a global option. An unknown option may be
    one of another command.
    """
    command, options = named_command(name), {each.name: declared(each.form) for each in COMMANDS}
    words = ["layerboard", name] if name in options else ["layerboard"]
    if hasattr(error, "possibilities"):
        return _unknown_option(error.option_name, " ".join(words), command, options)
    parameter = getattr(getattr(error, "param", None), "name", "")
    option = next((each for each in options.get(name, ()) if each.name == parameter), None)
    if option and not error.message:
        flag = option.name.upper() if option.positional else (option.also or option.flag).split()[0]
        reason = f"{name} takes {flag}, which is missing"
    else:
        reason = error.format_message().removesuffix(".")
    usage = command.get_usage(typer.Context(command, info_name=" ".join(words)))
    usage = " ".join(usage.split()).replace("Usage", "usage", 1)
    return InputError(f"{reason[:1].lower()}{reason[1:]}; {usage}")


def _unknown_option(
    name: str,
    whole: str,
    command: Any,  # noqa: ANN401
    options: Mapping[str, Sequence[Option[Any, Any]]],
) -> InputError:
    """The error for an option that a command lacks, with its nearest one, or the commands that have it."""
    flags = [flag for each in command.params for flag in each.opts if flag.startswith("--")]
    known = {flag.removeprefix("--").replace("-", "_"): flag for flag in flags}
    text = name.lstrip("-").replace("-", "_")
    have = [f"`{each}`" for each in options if text in [option.name for option in options[each]]]
    grouped = [  # options of NAME=VALUE that take this name, or its last part: max_ms is --within ms
        f"{each.flag} {part}="
        for each in options.get(command.name, ())
        for part in (text, text.rpartition("_")[2])
        if part in each.keys
    ]
    if close := likely("option", text, [*known]):
        hint = f"did you mean {either(known[each] for each in close)}?"
    elif grouped:
        hint = f"did you mean {grouped[0]}?"
    else:
        hint = f"{either(have[:3])} has it" if have else f"`{whole} -h` lists all"
    return InputError(f"{whole} has no option {shortened(name)}; {hint}")


@contextmanager
def errors_in_sentences() -> Iterator[None]:
    """Print errors that the user's input, machine or libraries caused as one sentence, and exit with code 2.

    Standard streams that are closed, or that cannot show some character, end no program.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # characters that the encoding of the stream lacks are escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    except Exception as error:
        if (sentence := _sentence_of(error)) is None:
            raise
        with suppress(OSError):
            say(f"error: {sentence}", err=True)
        sys.exit(1 if isinstance(error, WorkerDiedError) else 2)
    finally:
        _give_up_broken_streams()


def _open_closed_streams() -> None:
    """Let standard streams that are closed lead to the null device: else a file may take their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115  # until the end
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _give_up_broken_streams() -> None:
    """Drop what a standard stream cannot write, which Python would try again at its end."""
    for number, stream in enumerate((sys.stdout, sys.stderr), start=1):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)


def _sentence_of(error: Exception) -> str | None:
    """The message of an error caused by the user's input, machine or libraries; None for any other error."""
    if isinstance(error, InputError | WorkerDiedError):
        return str(error)
    if isinstance(error, OSError):
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        writer = str(frames[-1].f_globals.get("__name__")).partition(".")[0]
        if writer in ("typer", "rich"):  # which write to standard streams alone
            return f"what is printed cannot be written: {error.strerror}"
        if (sentence := about_file(error)) is not None:
            return sentence
    if (broken := explained(error)) is not None:
        return str(broken)
    if isinstance(error, Warning):
        return f"warnings are errors here ({first_line(error)}); unset PYTHONWARNINGS, or leave out -W"
    if not isinstance(error, MemoryError | RuntimeError):
        return None
    from layerboard.zoo.features.pass_context import is_out_of_memory  # torch

    return "out of memory; try with less data, or on a machine with more" if is_out_of_memory(error) else None
