"""Ground truth with one field broken: every field of every JSON file, in every way."""

import copy
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layerboard.tasks.datasets.coco import CocoEntry, Regions
from layerboard.tasks.datasets.partimagenet import PartImageNetEntry
from layerboard.tasks.datasets.spair import SpairEntry
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.faults.counts import Count

LONGEST = 600
"""Characters of a sentence that people still read."""

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


@dataclass(frozen=True)
class Dataset:
    """A fake dataset, one of its JSON files, and its reader."""

    name: str
    write: Callable[[Path], Path]
    file: str
    read: Callable[[Path], object]


DATASETS = (
    Dataset(
        "coco",
        lambda root: fakes.write_fake_coco(root, images=2),
        "coco/annotations/instances_val2017.json",
        lambda root: CocoEntry(images=2, first=2).read(root),
    ),
    Dataset(
        "partimagenet",
        lambda root: fakes.write_fake_partimagenet(root, images=1),
        "PartImageNet/train.json",
        lambda root: PartImageNetEntry(images=18, classes=6, supercategories=2, parts=4).read(root),
    ),
    Dataset(
        "spair",
        fakes.write_fake_spair,
        "SPair-71k/PairAnnotation/test",
        lambda root: SpairEntry(pairs=4, categories=2).read(root),
    ),
)


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
    if path:
        without = copy.deepcopy(content)
        holder = _at(without, path[:-1])
        del holder[path[-1]]
        yield "left out", json.dumps(without)
    marked = copy.deepcopy(content)
    if path:
        _at(marked, path[:-1])[path[-1]] = MARK
    text = json.dumps(marked) if path else json.dumps(MARK)
    for name, value in WRONG.items():
        yield name, text.replace(json.dumps(MARK), value)


def _at(content: Any, path: FieldPath) -> Any:
    for key in path:
        content = content[key]
    return content


def break_fields(root: Path, every: int = 1) -> Count:
    """Read each document with each field broken; one try in ``every``.

    What is wanted: the reader takes it, or says in one sentence what is wrong with which file.
    """
    count, number = Count("fields of ground truth broken"), 0
    for dataset in DATASETS:
        folder = root / dataset.name
        dataset.write(folder)
        path = folder / dataset.file
        path = sorted(path.iterdir())[0] if path.is_dir() else path
        text = path.read_text()
        content = json.loads(text)
        for where in field_paths(content):
            for name, changed in broken(content, where):
                number += 1
                if number % every:
                    continue
                path.write_text(changed)
                title = f"{dataset.name} {'.'.join(map(str, where)) or 'document'}, {name}"
                count.note(title, problem_of(lambda folder=folder, read=dataset.read: used(read(folder))))
        path.write_text(text)
    return count


def used(data: object) -> None:
    """Decode what a run would decode of a dataset."""
    if isinstance(data, Regions):
        for image in data.images:
            for region in image.regions:
                region.mask()


def problem_of(act: Callable[[], object]) -> str:
    """What is wrong with how something bad was answered; "" for a sentence, or where it does no harm."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)  # pycocotools
        try:
            act()
        except InputError as error:
            return _problem_of_sentence(str(error))
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:120]}"
    return ""


def _problem_of_sentence(text: str) -> str:
    if not text or len(text) > LONGEST:
        return f"a sentence of {len(text)} characters"
    if "\n" in text or "\0" in text:
        return "a sentence with line breaks"
    return ""
