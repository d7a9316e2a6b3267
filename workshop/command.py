"""Commands of the workshop, with options of forms as the package's commands have them."""

from typing import Any

import typer

from layerboard.benchmark.commands.app import errors_in_sentences
from layerboard.benchmark.commands.command import Command
from layerboard.benchmark.forms.parsers import require_working_folder


def run_by_arguments(command: Command[..., Any]) -> None:
    """Run a command by the process's arguments; wrong input prints one sentence and exits with code 2."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(command.for_typer())
    with errors_in_sentences():
        require_working_folder()
        app(prog_name=f"python -m workshop.{command.name}")
