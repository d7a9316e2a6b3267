"""Images in memory, written once into the cache as a folder with a table of labels."""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from PIL.ImageFile import ImageFile

from layerboard.tasks.datasets.integrity import explaining, require
from layerboard.tasks.datasets.reading.door import class_names, labels_text
from layerboard.zoo.atomic import move_once, remove_leftovers, temporary_folder
from layerboard.zoo.errors import shortened
from layerboard.zoo.reading import read_regular
from layerboard.zoo.view.photos import as_seen, decoding, open_file, raw_mode, upright, whole_values
from layerboard.zoo.view.pixels import file_of, in_memory, is_one

NAME = "memory"  # of the folder, which is the dataset's name on pages
LABELS = ("label", "labels", "class", "target")  # columns of labels, in order of preference
TABLE = "metadata.jsonl"  # which can tell a class "NA" from none


class LabelledImage(NamedTuple):
    """An image in memory and what is known of it."""

    image: object
    label: object = None
    names: tuple[str, ...] = ()  # of the classes, if labels are their numbers
    split: str = ""


def stored(images: object, cache: Path) -> Path:
    """The folder below ``cache`` with the images of a dataset in memory, which is written once.

    The dataset is a ``datasets.Dataset``, a ``torch.utils.data.Dataset``, a list or another iterable of
    images, of pairs (image, label), or of mappings with ``image`` and ``label``; or a mapping from the names
    of splits to such. A label is a class, a number, or a list of classes (`reading.door`); integers
    are named by the ``ClassLabel`` or the attribute ``classes`` of the dataset, if it has one. The folder is
    named by a digest of the written files and labels. Raises InputError if an item is no image, if its label
    is none, or if the folder cannot be written.
    """
    below = cache / "images"
    remove_leftovers([below])
    what = f"cannot write the images in memory below {below}"
    with explaining(what, OSError), temporary_folder(below) as draft:
        root = below / _write(_splits_of(images), draft / NAME) / NAME
        return move_once(draft / NAME, root)


def _write(rows: Iterable[LabelledImage], folder: Path) -> str:
    """Write the files and the table of rows, and return the digest of both."""
    folder.mkdir()
    content, table = blake2b(TABLE.encode(), digest_size=16), list[dict[str, str]]()
    for number, row in enumerate(rows):
        said = f", {row.image}" if isinstance(row.image, str | PathLike) else ""
        with decoding(f"cannot take item {number}{said}"):
            encoded, ending = _encoded(row.image)
        name = f"{number:07d}.{ending}"
        label = labels_text(row.label, f"the label of item {number}", row.names)
        (folder / name).write_bytes(encoded)
        content.update(repr((len(encoded), label, row.split)).encode() + encoded)
        table.append({"file": name, "label": label, "split": row.split})
    require(table, "at least one image", "an empty dataset in memory")
    empty = {name for name in ("label", "split") if not any(row[name] for row in table)}
    if len(empty) < 2:
        with (folder / TABLE).open("w", encoding="utf-8") as file:
            for line in table:
                file.write(json.dumps({name: line[name] for name in line if name not in empty}) + "\n")
    return content.hexdigest()


def _splits_of(images: Any) -> Iterator[LabelledImage]:  # noqa: ANN401
    """The rows of a dataset, or of each split of one."""
    if not isinstance(images, Mapping):
        yield from _rows_of(images)
        return
    for split, each in images.items():
        yield from (row._replace(split=str(split)) for row in _rows_of(each))


def _rows_of(images: Any) -> Iterator[LabelledImage]:  # noqa: ANN401
    """The rows of a dataset, labels by their names."""
    if hasattr(images, "features") and hasattr(images, "select_columns"):
        yield from _rows_of_table(images)
        return
    whole = images
    while not hasattr(whole, "classes") and hasattr(whole, "dataset"):  # subsets of torch
        whole = whole.dataset
    names = class_names(getattr(whole, "classes", None))
    is_mapped = hasattr(images, "__len__") and not isinstance(images, Iterable)  # a dataset of torch
    require(
        is_mapped or isinstance(images, Iterable),
        "a list of images, or another iterable of them",
        shortened(images),
    )
    for item in map(images.__getitem__, range(len(images))) if is_mapped else images:
        if isinstance(item, Mapping) and not is_one(item):
            label = next((item[name] for name in LABELS if name in item), None)
            row = LabelledImage(item.get("image"), label)
        elif isinstance(item, tuple | list):
            row = LabelledImage(item[0] if item else None, item[1] if len(item) > 1 else None)
        else:
            row = LabelledImage(item)
        yield row._replace(names=names)


def _rows_of_table(table: Any) -> Iterator[LabelledImage]:  # noqa: ANN401  # datasets has no types
    """The rows of a ``datasets.Dataset``, whose images stay encoded."""
    import datasets

    def columns(kind: type) -> list[str]:
        return [name for name, each in table.features.items() if isinstance(each, kind)]

    images, classes = columns(datasets.Image), columns(datasets.ClassLabel)
    labels = classes or [name for name in LABELS if name in table.features][:1]
    for what, several, most in (("images", images, 1), ("labels", labels, len(labels[:1]))):
        there = ", ".join(several) or "none"
        remedy = "choose with .select_columns([...])"
        require(len(several) == most, f"one column of {what} in the dataset", there, remedy)
    kind = table.features[labels[0]] if labels else None
    names = class_names(getattr(getattr(kind, "feature", kind), "names", None))
    undecoded = table.cast_column(images[0], datasets.Image(decode=False))
    for row in undecoded.select_columns([*images, *labels]):
        yield LabelledImage(row[images[0]], row[labels[0]] if labels else None, names)


def _encoded(image: object) -> tuple[bytes, str]:
    """The bytes of a file with an image, and its ending; raises InputError, or as Pillow does, for no image.

    Files stay as they are, so that a dataset has one range of values of more than 8 bits; other pixels are
    those that people see.
    """
    if isinstance(image, ImageFile) and image.fp is not None and raw_mode(image):
        image = image.fp  # Pillow would decode 8 of 16 bits a channel
    if (file := file_of(image)) is not None:
        content = file.getvalue() if isinstance(file, BytesIO) else read_regular(Path(file))
        with open_file(BytesIO(content)) as opened:
            return content, str(opened.format).lower()
    given, buffer = in_memory(image), BytesIO()
    if given.mode.startswith("I"):
        seen = Image.fromarray(whole_values(upright(given)).astype(np.uint16))
    else:  # what is transparent stays so: a drawing in white is lost on white, which is said
        seen = upright(given) if given.mode in ("RGBA", "LA", "P") else as_seen(given)
    seen.save(buffer, "png", compress_level=1)
    return buffer.getvalue(), "png"
