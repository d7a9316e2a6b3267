"""The command `check`: which datasets are there."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from zoo.errors import InputError


def check_command(
    data: Annotated[Path, typer.Option(help="Folder that holds the real datasets.")],
) -> None:
    """Say which datasets are there, complete, partial, missing or broken, before any GPU hour is spent."""
    from tasks.datasets.catalogue import DATASETS, State, inspect

    if not data.is_dir():
        raise InputError(f"expected the datasets' folder at {data}, which does not exist; give --data DIR")
    found = [inspect(data, entry) for entry in DATASETS]
    table = Table(box=None, pad_edge=False)
    for column in ("dataset", "state", "what is there"):
        table.add_column(column, overflow="fold")
    for one in found:
        table.add_row(one.name, one.state.value, one.text)
    Console().print(table)
    usable = any(one.state in (State.COMPLETE, State.PARTIAL) for one in found)
    broken = any(one.state is State.BROKEN for one in found)
    raise typer.Exit(2 if broken or not usable else 0)
