"""Every option of every command with values that are none of its own."""

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from unittest.mock import patch

from layerboard.benchmark.commands.app import command_line, main
from tests.faults.trials import Effort, Trial, in_time

Arguments = tuple[str, ...]

NUMBERS = ("-1", "0.5", "x", "", "nan", "1e400", "9" * 25)
PATHS = ("nowhere", "", "\0", "x" * 5000, "file/below", "file")
WORDS = (
    *("", "nonsense", "*", "../..", "-", "=", "a=b=c", "猫", "x\ny", ",", "9" * 400),
    *("module:nothing", "nowhere:nothing"),
)

NEEDED: dict[str, Arguments] = {
    "check": ("--data", "nowhere"),
    "list": ("backbones",),
    "score": ("knn", "--features", "nowhere"),
}
"""What a command needs beside the option that is tried, so that it ends before any work."""

ENDS = {
    "run": ("--data", "nowhere", "-b", "mini-random"),
    "features": ("--data", "nowhere", "-b", "mini-random"),
    "compare": ("mini-fs", "mini-dino", "-o", "nowhere"),
    "merge": ("nowhere", "nowhere", "--output", "nowhere"),
    "export": ("csv", "-o", "nowhere"),
    "reproduce": ("-o", "nowhere"),
    "leaderboard": ("-o", "nowhere"),
}
"""Arguments by which commands that would do work, or read what is there, end in a sentence anyway."""


def commands(found: object = None, name: str = "") -> Iterator[tuple[str, object]]:
    """Every command with its name."""
    found = found or command_line()
    below = getattr(found, "commands", None)
    if below is None:
        yield name, found
        return
    for word, command in below.items():
        yield from commands(command, f"{name} {word}".strip())


def cases() -> Iterator[Arguments]:
    """Command lines that are wrong, or harmless."""
    for name, command in commands():
        usual = (*name.split(), *NEEDED.get(name, ()), *ENDS.get(name, ()))
        yield (*name.split(), "--no-such-option")
        yield (*name.split(), *["superfluous"] * 9)
        for option in getattr(command, "params", ()):
            if (
                option.param_type_name != "option"
                or getattr(option, "is_flag", False)
                or option.name == "help"
            ):
                continue
            for value in (*NUMBERS, *PATHS, *WORDS):
                yield (*usual, option.opts[0], value)
            yield (*usual, option.opts[0])


def try_options(folder: Path, effort: Effort) -> Iterator[Trial]:
    """Give each command each wrong value.

    What is wanted: exit code 2 and at most one sentence of ours, or the usage of the option; 0 or 1 where the
    value does no harm. Never a traceback.
    """
    folder.mkdir()
    (folder / "file").write_text("a file in the way")
    for arguments in islice(cases(), effort.every - 1, None, effort.every):
        problem = answered(arguments, folder).problem
        yield Trial("wrong values of options", " ".join(arguments)[:150], problem)


@dataclass(frozen=True)
class Answer:
    """How a command line was answered: what is wrong with that, its exit code, and all that it said."""

    problem: str
    code: object = None
    said: str = ""


def answered(arguments: Sequence[str], folder: Path) -> Answer:
    """Carry out a command line in this process, with a folder as the working one."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", ["layerboard", *arguments]),
    ):
        try:
            with in_time():
                main()
            code: object = 0
        except SystemExit as stop:
            code = stop.code
        except BaseException as error:
            return Answer(f"{type(error).__name__}: {str(error)[:120]}")
    return Answer(_problem(code, out.getvalue(), err.getvalue()), code, out.getvalue() + err.getvalue())


def _problem(code: object, out: str, said: str) -> str:
    if "Traceback" in said + out:
        return "a traceback"
    if code not in (0, 1, 2, None):
        return f"exit code {code}"
    ours = [line for line in said.splitlines() if line.startswith("error: ")]
    if code == 2 and not (ours or "Error" in said or out):
        return f"exit code 2 without a sentence: {said[:100]!r}"
    if any(len(line) > 6000 for line in ours) or len(ours) > 1:
        return "more than one sentence"
    return ""
