"""Which datasets are there: the command `check`."""

from dataclasses import dataclass

import typer
from rich.console import Console
from rich.table import Column, Table

from benchmark.commands.command import command
from benchmark.option import Option, OptionalPath, Plain
from benchmark.request import DATA, FOLDERS, IMAGES, LABELS, Images
from tasks.datasets.hub_spec import PREFIX
from zoo.errors import InputError


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """Which data to look at."""

    data: OptionalPath = Option(None, DATA)
    images: Images = Option((), IMAGES)
    labels: OptionalPath = Option(None, LABELS, usual=FOLDERS)
    digests: Plain[bool] = Option(
        False, "With --data hf:PACK: read every byte and compare it with the digests."
    )


@command("check", CheckRequest)
def check_command(request: CheckRequest) -> int:
    """Say which datasets are there, complete, partial, missing or broken, before any GPU hour is spent.

    Of your own images, how they are understood: classes, splits, what is left out.

    Example: `python -m benchmark check --images MY_FOLDER --labels labels.csv`
    """
    from benchmark.plan.location import data_folder
    from benchmark.plan.suites import require_fitting
    from tasks.datasets.catalogue import DATASETS, State, inspect, inspect_images
    from tasks.datasets.packs.pack import check_bytes

    data = request.data
    require_fitting(data, request.images, request.labels)
    if request.digests and not str(data or "").startswith(PREFIX):
        raise InputError("--digests goes with --data hf:PACK; a folder has no digests")
    if request.images:
        inspections = [inspect_images(location, request.labels) for location in request.images]
    elif data is None:
        raise InputError("nothing to check; give --data DIR, or --images DIR for your own images")
    else:
        root = data_folder(data)
        if request.digests:
            typer.echo(f"{data}: {check_bytes(str(data))}")
        inspections = [inspect(root, entry) for entry in DATASETS]
    titles = ("dataset", "state", "what is there")
    table = Table(*(Column(title, overflow="fold") for title in titles), box=None, pad_edge=False)
    for each in inspections:
        table.add_row(each.name, each.state.value, each.text)
    Console().print(table)
    states = {each.state for each in inspections}
    return 2 if State.BROKEN in states or not states & {State.COMPLETE, State.PARTIAL} else 0
