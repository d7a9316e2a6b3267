"""A command of a few lines: its form and its function are all that the command line needs."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import layerboard
from layerboard.benchmark.commands.app import COMMANDS, app_of
from layerboard.benchmark.commands.command import command
from layerboard.benchmark.forms.option import Form, OnePath, Option, Plain, Wholes, Words, called_with
from layerboard.zoo.errors import InputError


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
