"""The command `check`: which datasets are there. Heavy libraries are imported when it runs."""

from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from benchmark.cli.options import command_of
from benchmark.request.request import CheckRequest
from tasks.datasets.hub_spec import PREFIX
from zoo.errors import InputError

if TYPE_CHECKING:
    from tasks.datasets.catalogue import Inspection


@command_of(CheckRequest)
def check_command(request: CheckRequest) -> None:
    """Say which datasets are there, complete, partial, missing or broken, before any GPU hour is spent.

    Of your own images, how they are understood: classes, splits, what is left out.

    Example: `python -m benchmark check --images MY_FOLDER --labels labels.csv`
    """
    from benchmark.plan.suites import require_fitting
    from tasks.datasets.catalogue import State

    require_fitting(request.data, request.images, request.labels)
    found = _inspected(request)
    table = Table(box=None, pad_edge=False)
    for column in ("dataset", "state", "what is there"):
        table.add_column(column, overflow="fold")
    for one in found:
        table.add_row(one.name, one.state.value, one.text)
    Console().print(table)
    usable = any(one.state in (State.COMPLETE, State.PARTIAL) for one in found)
    broken = any(one.state is State.BROKEN for one in found)
    raise typer.Exit(2 if broken or not usable else 0)


def _inspected(request: CheckRequest) -> "list[Inspection]":
    """What is there of the official datasets, or of the user's own."""
    from benchmark.plan.location import data_folder
    from tasks.datasets.catalogue import DATASETS, inspect, inspect_images
    from tasks.datasets.packs.pack import check_bytes

    data = request.data
    if request.digests and not str(data or "").startswith(PREFIX):
        raise InputError("--digests goes with --data hf:PACK; a folder has no digests")
    if request.images:
        return [inspect_images(location, request.labels) for location in request.images]
    if data is None:
        raise InputError("nothing to check; give --data DIR, or --images DIR for your own images")
    root = data_folder(data)
    if request.digests:
        typer.echo(f"{data}: {check_bytes(str(data))}")
    return [inspect(root, entry) for entry in DATASETS]
