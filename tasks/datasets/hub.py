"""Image classification datasets of the Hugging Face Hub, or saved by ``datasets``."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from tasks.datasets.base import Count, Coverage, to_rgb
from tasks.datasets.classes import (
    MADE,
    MADE_SPLIT,
    Classification,
    ClassImages,
    class_labels,
    require_classes,
    require_known_classes,
    require_splittable,
    split_names,
)
from tasks.datasets.files import FORMATS, UnreadableImageError, decoding
from tasks.datasets.hub_spec import HubSpec, parse_hub_spec
from zoo.errors import InputError
from zoo.online import hub_answers, offline_unless
from zoo.view.geometry import Box

QUERY_SPLITS = ("validation", "test", "val")  # names of the split of queries, in order of preference
Table = Any  # A ``datasets.Dataset``; the library has no types of its own


@dataclass(frozen=True, slots=True)
class TableSample:
    """A row of a table whose image column is read undecoded."""

    key: str  # ``<split>/<row>``
    index: int
    column: str
    fingerprint: str  # identifies the table's content
    table: Table = field(repr=False, compare=False)  # the table, which all samples of a split share
    box: Box | None = None

    def open(self) -> Image.Image:
        stored = self.table[self.index][self.column] or {}
        source = stored.get("path") if stored.get("bytes") is None else io.BytesIO(stored["bytes"])
        if source is None:
            raise UnreadableImageError(f"cannot decode image {self.key}: the table has none in that row")
        with decoding(f"cannot decode image {self.key}"), Image.open(source, formats=FORMATS) as image:
            return to_rgb(image)

    def signature(self) -> str:
        """Fingerprint of the table, and the row."""
        return f"{self.fingerprint}|{self.key}|{self.column}|{self.box}"


@dataclass(frozen=True, slots=True)
class _Split:
    """A split with an undecoded image column and the class name of each row."""

    name: str
    table: Table
    column: str
    fingerprint: str
    labels: Sequence[str]

    def images(self, rows: Sequence[int], classes: Mapping[str, int]) -> ClassImages:
        """Some rows as samples, in order."""
        samples = tuple(
            TableSample(f"{self.name}/{row:09d}", row, self.column, self.fingerprint, self.table)
            for row in rows
        )
        labels = np.array([classes[self.labels[row]] for row in rows], dtype=np.int64)
        return ClassImages(samples, labels, tuple(classes))


def read_hub_dataset(text: str) -> Classification:
    """A dataset of the Hub, or a saved one, named as the user named it; keys are ``<split>/<row>``.

    Splits are train, and validation, test or val; a dataset of one split is divided as `folder` divides
    class folders. Without a choice of the user there must be one image column and one ``ClassLabel`` column.

    Args:
        text: ``hf:ID``, ``hf:ID@REVISION`` or ``hf:PATH``, with options (`hub_spec`).

    Raises:
        InputError: No such dataset, no network, or no images with class labels in it.
    """
    spec = parse_hub_spec(text)
    tables = _load(spec)
    names = _choose_splits(tables, spec)
    splits = [_read_split(name, tables[name], spec) for name in names]
    classes = class_labels(splits[0].labels)
    made = len(splits) == 1
    if made:
        rows = _divided(splits[0].labels, spec)
        splits *= 2
    else:
        require_known_classes(classes, splits[1].labels, f"{text}, split {names[1]},")
        rows = [range(len(split.labels)) for split in splits]
    train, val = (split.images(part, classes) for split, part in zip(splits, rows, strict=True))
    require_classes(len(classes), text)
    counts = (
        Count("classes", len(classes)),
        Count("train images", len(train.samples)),
        Count("val images", len(val.samples)),
    )
    coverage = Coverage(counts, remarks=(MADE,) if made else ())
    return Classification(text, train, val, coverage, MADE_SPLIT if made else "train, val")


def _load(spec: HubSpec) -> dict[str, Table]:
    """The splits of a dataset by name; raises InputError."""
    import datasets

    try:
        if spec.local:
            loaded = datasets.load_from_disk(spec.location)
        else:
            with offline_unless(hub_answers()):
                config = spec.options.get("config")
                loaded = datasets.load_dataset(spec.location, config, revision=spec.revision)
    # The library's errors have no base but these: connection, missing files, configurations, scripts.
    except (
        OSError,
        ValueError,
        RuntimeError,
        NotImplementedError,
        datasets.exceptions.DatasetsError,
    ) as error:
        advice = (
            "name a folder written by save_to_disk"
            if spec.local
            else "check the id and the network, or save_to_disk it elsewhere and name it hf:PATH"
        )
        raise InputError(
            f"cannot load dataset {spec.text}: {' '.join(str(error).split())}; {advice}"
        ) from error
    return dict(loaded) if isinstance(loaded, Mapping) else {str(loaded.split or "all"): loaded}


def _choose_splits(tables: Mapping[str, Table], spec: HubSpec) -> list[str]:
    """Names of the splits of bank and queries; one where one split has to serve both."""
    options = spec.options
    for name in (options.get("train"), options.get("val")):
        if name is not None and name not in tables:
            raise InputError(f"expected a split {name!r} in {spec.text}, found {', '.join(sorted(tables))}")
    if len(tables) == 1 and "val" not in options:
        return [*tables]
    bank = options.get("train", "train")
    queries = options.get("val") or next((name for name in QUERY_SPLITS if name in tables), None)
    if bank not in tables or queries is None or bank == queries:
        raise InputError(
            f"expected a split train and one of {', '.join(QUERY_SPLITS)} in {spec.text}, found "
            f"{', '.join(sorted(tables))}; choose them with ?train=SPLIT&val=SPLIT"
        )
    return [bank, queries]


def _read_split(name: str, table: Table, spec: HubSpec) -> _Split:
    """A split with its columns found and its labels read; raises InputError."""
    import datasets

    features = table.features
    images = [column for column, kind in features.items() if isinstance(kind, datasets.Image)]
    labels = [column for column, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
    image = _choose_column("image", "image", images, images, spec)
    label = _choose_column("label", "ClassLabel", labels, list(features), spec)
    values = table.select_columns([label])[:][label]
    undecoded = table.cast_column(image, datasets.Image(decode=False))
    names = _class_names(values, features[label], label, f"split {name} of {spec.text}")
    # The fingerprint from before the cast: it is that of the stored content.
    return _Split(name, undecoded, image, str(table._fingerprint), names)


def _choose_column(option: str, kind: str, columns: list[str], admitted: list[str], spec: HubSpec) -> str:
    """The user's column, or the only one of its kind; raises InputError."""
    chosen = spec.options.get(option)
    if chosen is not None:
        if chosen not in admitted:
            raise InputError(
                f"expected {option}={chosen} to name a column of {spec.text}, which has "
                f"{', '.join(sorted(admitted)) or 'no such column'}"
            )
        return chosen
    if not columns:
        raise InputError(
            f"expected images with class labels in {spec.text}, found no {kind} column; choose columns with "
            "hf:ID?image=COLUMN&label=COLUMN"
        )
    if len(columns) > 1:
        raise InputError(
            f"expected one {kind} column in {spec.text}, found {', '.join(sorted(columns))}; choose with "
            "hf:ID?image=COLUMN&label=COLUMN"
        )
    return columns[0]


def _class_names(values: Sequence[object], kind: object, column: str, where: str) -> list[str]:
    """The class name of each row; raises InputError for rows without a label."""
    names: list[str] | None = getattr(kind, "names", None)
    valid = [
        (isinstance(value, int) and 0 <= value < len(names)) if names else isinstance(value, str | int)
        for value in values
    ]
    if not values or not all(valid):
        bad = "no row" if not values else f"{values[valid.index(False)]!r} in row {valid.index(False)}"
        raise InputError(f"expected a class label in every row of column {column} in {where}, found {bad}")
    if names is None:
        return [str(value) for value in values]
    return [names[value] for value in values if isinstance(value, int)]


def _divided(labels: Sequence[str], spec: HubSpec) -> list[Sequence[int]]:
    """Rows of one split that are the bank and those that are queries, by the hash of their numbers."""
    rows: dict[str, list[str]] = {}
    for index, label in enumerate(labels):
        rows.setdefault(label, []).append(str(index))
    require_splittable({label: len(numbers) for label, numbers in rows.items()}, spec.text)
    parts = zip(*(split_names(numbers) for numbers in rows.values()), strict=True)
    return [sorted(int(row) for names in part for row in names) for part in parts]
