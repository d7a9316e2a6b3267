"""Ground truth with one field broken: every field of every JSON file, in every way."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from layerboard.tasks.datasets.coco import CocoEntry, Regions
from layerboard.tasks.datasets.partimagenet import PartImageNetEntry
from layerboard.tasks.datasets.spair import SpairEntry
from tests import fakes
from tests.faults.trials import Effort, Trial, problem_of

FieldPath = tuple[str | int, ...]

MARK = "<broken here>"

WRONG: dict[str, str] = {
    "null": "null",
    "text": '"text"',
    "empty text": '""',
    "a long text": json.dumps("x" * 100_000),
    "odd text": json.dumps("../../\u0000\n\ud800"),
    "minus one": "-1",
    "a half": "1.5",
    "a huge number": "1" + "0" * 400,
    "2 to the 31": str(2**31),
    "not a number": "NaN",
    "infinity": "Infinity",
    "true": "true",
    "an empty list": "[]",
    "an empty object": "{}",
    "a list of objects": "[{}, {}]",
    "a deep list": "[" * 3000 + "]" * 3000,
}
"""Values in JSON, by name."""


DATASETS: dict[str, tuple[Callable[[Path], Path], str, Callable[[Path], object]]] = {
    "coco": (
        lambda root: fakes.write_fake_coco(root, images=2),
        "coco/annotations/instances_val2017.json",
        lambda root: CocoEntry(images=2, first=2).read(root),
    ),
    "partimagenet": (
        lambda root: fakes.write_fake_partimagenet(root, images=1),
        "PartImageNet/train.json",
        lambda root: PartImageNetEntry(images=18, classes=6, supercategories=2, parts=4).read(root),
    ),
    "spair": (
        fakes.write_fake_spair,
        "SPair-71k/PairAnnotation/test",
        lambda root: SpairEntry(pairs=4, categories=2).read(root),
    ),
}
"""Fake datasets by name: how one is written, one of its JSON files, and its reader."""


def field_paths(content: object, at: FieldPath = ()) -> Iterator[FieldPath]:
    """Every place in a document, of lists the first element only."""
    yield at
    if isinstance(content, dict):
        for key, value in content.items():
            yield from field_paths(value, (*at, key))
    elif isinstance(content, list) and content:
        yield from field_paths(content[0], (*at, 0))


def broken(content: Any, path: FieldPath) -> Iterator[tuple[str, str]]:
    """The document, as text, with one field broken in every way, or left out."""
    text = json.dumps(MARK)
    if path:
        changed = copy.deepcopy(content)
        holder = _at(changed, path[:-1])
        holder[path[-1]] = MARK
        text = json.dumps(changed)
        del holder[path[-1]]
        yield "left out", json.dumps(changed)
    for name, value in WRONG.items():
        yield name, text.replace(json.dumps(MARK), value)


def _at(content: Any, path: FieldPath) -> Any:
    for key in path:
        content = content[key]
    return content


def break_fields(root: Path, effort: Effort) -> Iterator[Trial]:
    """Read each document with each field broken.

    What is wanted: the reader takes it, or says in one sentence what is wrong with which file.
    """
    number = 0
    for name, (write, file, read) in DATASETS.items():
        folder = root / name
        write(folder)
        path = folder / file
        path = sorted(path.iterdir())[0] if path.is_dir() else path
        content = json.loads(path.read_text())
        for where in field_paths(content):
            for way, changed in broken(content, where):
                number += 1
                if number % effort.every == 0:
                    path.write_text(changed)
                    title = f"{name} {'.'.join(map(str, where)) or 'document'}, {way}"
                    problem = problem_of(lambda folder=folder, read=read: used(read(folder)))
                    yield Trial("fields of ground truth broken", title, problem)


def used(data: object) -> None:
    """Decode what a run would decode of a dataset."""
    if isinstance(data, Regions):
        for image in data.images:
            for region in image.regions:
                region.mask()
