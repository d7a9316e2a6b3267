"""Which datasets are there: the command `check`."""

import os
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import command, say
from layerboard.benchmark.commands.result import rows_text
from layerboard.benchmark.option import Form, Option, OptionalPath, Plain
from layerboard.benchmark.request import (
    AS_IT_LOOKS,
    COPIES,
    DATA,
    FOLDERS,
    GROUP_COLUMN,
    GROUPS,
    IMAGES,
    LABELS,
    TARGET,
    Images,
    TargetChoice,
)
from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.zoo.errors import InputError

if TYPE_CHECKING:
    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.tasks.datasets.base import Sample
    from layerboard.tasks.datasets.catalogue import Inspection

SAMPLE = 100  # images of a dataset that are opened, evenly spread, where not all are asked for


class CheckRequest(Form):
    """Which data to look at."""

    data: OptionalPath = Option(None, DATA)
    images: Images = Option((), IMAGES)
    labels: OptionalPath = Option(None, LABELS, usual=FOLDERS)
    groups: OptionalPath = Option(None, GROUPS, usual=GROUP_COLUMN)
    target: Plain[TargetChoice | None] = Option(None, TARGET, usual=AS_IT_LOOKS)
    copies: Plain[bool] = Option(False, COPIES)
    digests: Plain[bool] = Option(False, "With --data hf:PACK: read every file and verify its checksum.")
    all: Plain[bool] = Option(False, f"Decode every image instead of at most {SAMPLE} per dataset.")


@command("check", CheckRequest)
def check_command(request: CheckRequest) -> int:
    """Check which datasets are complete, partial, missing or damaged before you run anything.

    Of your own images, shows which classes and splits were found and which files are skipped. A sample of
    each dataset is decoded; `--all` decodes every image.

    Example: `layerboard check --images MY_FOLDER --labels labels.csv`
    """
    from layerboard.benchmark.engines.progress import Terminal
    from layerboard.benchmark.plan.location import data_folder
    from layerboard.benchmark.plan.suites import require_fitting
    from layerboard.tasks.datasets.catalogue import DATASETS, State, inspect, inspect_images
    from layerboard.tasks.datasets.labels import Labelling
    from layerboard.tasks.datasets.packs.pack import check_bytes

    data = request.data
    labelling = Labelling.of(request)
    require_fitting(data, request.images, labelling)
    if request.digests and not str(data or "").startswith(PREFIX):
        raise InputError("--digests needs --data hf:PACK; a folder has no digests")
    if request.images:
        inspections = [inspect_images(location, labelling) for location in request.images]
    elif data is None:
        raise InputError("nothing to check; give --data DIR, or --images DIR for your own images")
    else:
        root = data_folder(data)
        if request.digests:
            say(f"{data}: {check_bytes(str(data))}")
        inspections = [inspect(root, entry) for entry in DATASETS]
    report = Terminal()
    inspections = [_opened(each, report, every=request.all) for each in inspections]
    rows = [(each.name, each.state.value, each.text) for each in inspections]
    say(rows_text(["dataset", "state", "what is there"], rows))
    states = {each.state for each in inspections}
    return 2 if State.BROKEN in states or not states & {State.COMPLETE, State.PARTIAL} else 0


def _opened(inspection: "Inspection", report: "Reporter", *, every: bool) -> "Inspection":
    """An inspection that says whether images can be decoded, too."""
    from layerboard.tasks.datasets.base import images_of
    from layerboard.tasks.datasets.catalogue import State

    if not (images := [*images_of(inspection.data)]):
        return inspection
    chosen = images if every else images[:: -(-len(images) // SAMPLE)]
    unreadable = []
    title = f"{inspection.name}  opening"
    with ThreadPool(os.cpu_count()) as pool, report.bar(title, len(chosen), "images") as advance:
        for reason in pool.imap(_unreadable, chosen, chunksize=8):
            unreadable += [reason] if reason else []
            advance(1)
    text = f"{inspection.text}; {len(chosen):,} of {len(images):,} images opened"
    if not unreadable:
        return inspection._replace(text=text)
    state = State.BROKEN if len(unreadable) == len(chosen) else State.PARTIAL
    return inspection._replace(state=state, text=f"{text}, {len(unreadable):,} unreadable ({unreadable[0]})")


def _unreadable(image: "Sample") -> str:
    """Why an image cannot be decoded; "" where it can be."""
    try:
        image.open()
    except InputError as error:
        return str(error)
    return ""
