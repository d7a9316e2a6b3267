"""The command line. Heavy libraries are imported by the commands that need them."""

import errno
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from layerboard.benchmark.commands.command import Command, say
from layerboard.benchmark.commands.score import SCORE_COMMANDS
from layerboard.benchmark.commands.slips import require_understood
from layerboard.benchmark.engines.base import WorkerDiedError
from layerboard.benchmark.parsers import require_working_folder
from layerboard.leaderboards.records.files import VERSION
from layerboard.zoo.errors import InputError, shortened

# modules of commands, in the order of the help
NAMES = (
    *("run", "show", "list", "check", "leaderboard", "report", "reproduce", "compare", "parity", "decompose"),
    *("look", "recommend", "cost", "features", "merge", "submit", "verify", "export", "pretrain", "pack"),
)
COMMANDS: tuple[Command[..., Any], ...] = (
    *(getattr(import_module(f"layerboard.benchmark.commands.{name}"), f"{name}_command") for name in NAMES),
    *SCORE_COMMANDS,
)

# errors of the operating system that a user's input, missing rights or limits of the machine cause
_OF_USERS = (
    *(errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP, errno.EROFS, errno.EPERM, errno.EIO, errno.EFBIG),
    *(errno.EMFILE, errno.ENFILE, errno.ESTALE),
)

# first words of two-word commands, with their help
_SCORING = "Score features or predictions that you exported with any code."
GROUPS = {"score": _SCORING, "data": "Convert datasets."}


def app_of(commands: Sequence[Command[..., Any]]) -> typer.Typer:
    """The command line of some commands."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        help="Which frozen vision backbone, and which of its layers, is best for which task?",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(every_command)
    groups = {"": app}
    for name, text in GROUPS.items():
        groups[name] = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help=text)
        groups[name].callback()(lambda: None)  # without it, the only command of a group would have no name
        app.add_typer(groups[name], name=name)
    for each in commands:
        group, _, name = each.name.rpartition(" ")
        groups[group].command(name)(each.for_typer())
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


def spread(arguments: list[str]) -> list[str]:
    """Repeat an option for each of its values: ``--tasks a b`` becomes ``--tasks a --tasks b``."""
    _, command = named_command(arguments)
    several = {name for each in command.params if getattr(each, "multiple", False) for name in each.opts}
    result: list[str] = []
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in several else ""
        elif option and result[-1] != option:
            result.append(option)
        result.append(argument)
    return result


def named_command(arguments: Sequence[str]) -> tuple[list[str], Any]:
    """The words at the beginning that name a command or a group, and its object."""
    command = typer.main.get_command(app)
    words: list[str] = []
    for argument in arguments:
        if argument not in (below := getattr(command, "commands", {})):
            break
        command = below[argument]
        words.append(argument)
    return words, command


def main() -> None:
    """Run the command line; wrong input prints one sentence and exits with code 2."""
    sentence: str | None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # characters that the encoding of the stream lacks are escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        require_working_folder()
        arguments = spread(sys.argv[1:])
        words, command = named_command(arguments)
        require_understood(words, command, arguments[len(words) :])
        app(arguments, prog_name="layerboard")
    except (InputError, WorkerDiedError) as error:
        sentence, code = str(error), 2 if isinstance(error, InputError) else 1
    except (OSError, MemoryError, RuntimeError) as error:
        sentence, code = _sentence_of(error), 2
        if sentence is None:
            raise
    else:
        return
    say(f"error: {sentence}", err=True)
    sys.exit(code)


def _sentence_of(error: Exception) -> str | None:
    """The message of an error caused by the user's input or by lack of memory; None for any other error."""
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return "no space is left on the disk; free some and run again: finished work is kept"
        if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
            there, wanted = ("folder", "file") if error.errno == errno.EISDIR else ("file", "folder")
            name = shortened(str(error.filename2 or error.filename))
            where = f"at {name}, where there is a {there}"
            return f"expected a {wanted} {where}; remove it, or choose another name"
        if error.errno in _OF_USERS:
            return f"{shortened(error.filename)} cannot be used: {error.strerror}"
        return None
    from layerboard.benchmark.extraction.failures import is_out_of_memory  # torch

    return "out of memory; try with less data, or on a machine with more" if is_out_of_memory(error) else None
