"""Standard streams that are closed, full or read by nobody, and Python without docstrings: no traceback."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from layerboard.benchmark.commands.app import app_of
from layerboard.benchmark.commands.command import command
from layerboard.benchmark.forms.option import Form
from tests.benchmark.runs import environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its streams are of another kind")


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


@pytest.mark.parametrize("shell", ['"$@" >&- 2>&-', '"$@" 2> /dev/full'])
def test_an_error_that_nobody_can_read_keeps_its_exit_code(shell: str) -> None:
    assert answer(["list", "backbones", "nowhere"], shell) == (2, "", "")


@pytest.mark.slow  # a process of its own imports torch
def test_without_docstrings_help_is_the_same() -> None:
    usual = answer(["run", "--help"])
    assert "Options" in usual[1]
    assert answer(["run", "--help"], PYTHONOPTIMIZE="2") == usual


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
