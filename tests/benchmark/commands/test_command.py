"""A command is its form and its function, and ends in no traceback where its streams are closed or full."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import layerboard
from layerboard.benchmark.commands.app import COMMANDS, app_of
from layerboard.benchmark.commands.command import command
from layerboard.benchmark.forms.option import Form, OnePath, Option, Plain, Wholes, Words, called_with
from layerboard.zoo.errors import InputError
from tests.benchmark.runs import environment


class ToyRequest(Form):
    """Whom to greet, how often, and where."""

    names: Words = Option(..., "Whom to greet.")
    times: Wholes = Option((), "How often.", usual="once")
    folder: OnePath = Option(".", "Where.", positional=False)
    loud: Plain[bool] = Option(False, "Whether it is shouted.")


@command("greet", ToyRequest)
def toy_command(request: ToyRequest) -> int:
    """Greet people in <brackets>."""
    typer.echo(f"{greet(**vars(request))} {request.times}")
    return 3 if request.loud else 0


@called_with(ToyRequest)
def greet(request: ToyRequest) -> str:
    """Greet people."""
    return f"hello {', '.join(request.names)} in {request.folder}{'!' if request.loud else ''}"


def test_a_command_is_a_form_and_a_function() -> None:
    app = app_of((*COMMANDS, toy_command))
    done = CliRunner().invoke(app, ["greet", "you", "me", "--times", "1", "--times", "2", "--loud"])
    assert (done.exit_code, done.output) == (3, "hello you, me in .! (1, 2)\n")
    text = CliRunner().invoke(app, ["greet", "--help"]).output
    assert "How often; several may follow." in " ".join(text.split())
    with pytest.raises(InputError, match="times= takes a whole number; found 'x'"):
        greet(names="you", times="x")  # type: ignore[arg-type]


def test_python_has_the_function_of_the_same_form() -> None:
    assert greet(names="you", folder=Path("here")) == "hello you in here"
    assert "times: How often. Default: once." in (greet.__doc__ or "")


def test_every_function_is_described_where_help_begins() -> None:
    described = (layerboard.__doc__ or "").split("\n\n")
    names = [name for name in layerboard.__all__ if name[0].islower()]
    assert all(any(part.startswith(f"{name}(") for part in described) for name in names)


POSIX = pytest.mark.skipif(sys.platform == "win32", reason="its streams are of another kind")


def answer(words: Sequence[str], shell: str = '"$@"', **variables: str) -> tuple[int, str, str]:
    """Exit code and what stands on the standard streams; ``shell`` says where ``$@`` leads."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}", "bash", sys.executable, "-m", "layerboard", *words],
        env=environment() | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@POSIX
@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        ('"$@" <&- >&-', (0, "", "")),
        ('"$@" | true', (1, "", "")),
        pytest.param(
            '"$@" > /dev/full',
            (2, "", "error: what is printed cannot be written: No space left on device\n"),
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it"),
        ),
    ],
)
def test_output_that_nobody_can_read(shell: str, expected: tuple[int, str, str]) -> None:
    assert answer(["list", "backbones", "--json"], shell) == expected


@POSIX
@pytest.mark.parametrize("shell", ['"$@" >&- 2>&-', '"$@" 2> /dev/full'])
def test_an_error_that_nobody_can_read_keeps_its_exit_code(shell: str) -> None:
    assert answer(["list", "backbones", "nowhere"], shell) == (2, "", "")


@POSIX
@pytest.mark.slow  # a process of its own imports torch
def test_without_docstrings_help_is_the_same() -> None:
    for name in ("run", "compare"):
        usual = answer([name, "--help"])
        assert "Options" in usual[1]
        assert answer([name, "--help"], PYTHONOPTIMIZE="2") == usual


class StayRequest(Form):
    """No options."""


@command("stay", StayRequest)
def stay_command(request: StayRequest) -> None:
    """Stay until a signal comes."""
    del request
    os.kill(os.getpid(), signal.SIGTERM)


def test_every_command_says_that_it_was_interrupted() -> None:
    done = CliRunner().invoke(app_of([stay_command, stay_command]), ["stay"])
    assert (done.exit_code, done.stdout) == (143, "")
    assert done.stderr == "interrupted; every file that was written is complete\n"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
