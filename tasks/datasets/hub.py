"""Image classification datasets of the Hugging Face Hub, or saved by ``datasets``."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from layerboard.tasks.datasets import classes as classed
from layerboard.tasks.datasets.base import Coverage, range_text
from layerboard.tasks.datasets.classes import Classification, LabelledSample
from layerboard.tasks.datasets.hub_spec import HubSpec, parse_hub_spec
from layerboard.tasks.datasets.integrity import explaining, mismatch, require
from layerboard.tasks.datasets.reading.door import class_names, label_text
from layerboard.tasks.datasets.reading.splits import QUERY_SPLITS
from layerboard.zoo.errors import UnreadableImageError, counted, some
from layerboard.zoo.online import hub_within_limits
from layerboard.zoo.view.geometry import Box
from layerboard.zoo.view.photos import DEEPEST, as_seen, decoding, open_file

Table = Any  # a ``datasets.Dataset``; the library has no types of its own


@dataclass(frozen=True, slots=True)
class TableSample:
    """A row of a table with undecoded images; all samples of a split share the table."""

    key: str  # ``<split>/<row>``
    index: int
    column: str
    fingerprint: str  # identifies the table's content
    table: Table = field(repr=False, compare=False)
    box: Box | None = None
    bits: int = DEEPEST  # as those of `tasks.datasets.base.PhotoSample`
    pixels: str = ""

    @property
    def source(self) -> str | io.BytesIO:
        """The undecoded image, or its path; raises UnreadableImageError for none."""
        stored = self.table[self.index][self.column] or {}
        source = stored.get("path") if stored.get("bytes") is None else io.BytesIO(stored["bytes"])
        if source is None:
            raise UnreadableImageError(f"cannot decode image {self.key}: the table has none in that row")
        return source

    def open(self) -> Image.Image:
        with decoding(f"cannot decode image {self.key}"), open_file(self.source) as image:
            return as_seen(image, self.bits)

    @property
    def read_as(self) -> str:
        """How the pixels are read, as of `tasks.datasets.base.PhotoSample`."""
        return range_text(self.bits)

    def signature(self) -> str:
        return f"{self.fingerprint}|{self.key}|{self.column}|{self.box}{self.read_as}|as seen|{self.pixels}"


def read_hub_dataset(text: str) -> Classification:
    """A dataset of the Hub, or a saved one, under the user's name for it; keys are ``<split>/<row>``.

    Splits are train, and validation, test or val; with one split every image is tested with the others.
    Unless the user chooses columns, there must be one image column and one ``ClassLabel`` column. Raises
    InputError.
    """
    spec = parse_hub_spec(text)
    tables = _load(spec)
    names = _choose_splits(tables, spec)
    notes: list[str] = []
    train, *others = (_read_split(name, tables[name], spec, notes) for name in names)
    val = others[0] if others else None
    coverage = Coverage(notes=tuple(notes))
    dataset = classed.classification(text, train, val, f"{text}, split {names[-1]},", coverage)
    classed.require_classes(len(dataset.train.classes), text)
    return dataset


def _load(spec: HubSpec) -> dict[str, Table]:
    import datasets

    advice = "name a folder written by save_to_disk"
    if not spec.local:
        advice = "check the id and the network, or save_to_disk it elsewhere and name it hf:PATH"
    # any error: of the connection, missing files, configurations, what a server sent
    with explaining(f"cannot load dataset {spec.text}", Exception, remedy=advice):
        if spec.local:
            loaded = datasets.load_from_disk(spec.location)
        else:
            with hub_within_limits():
                config = spec.options.get("config")
                loaded = datasets.load_dataset(spec.location, config, revision=spec.revision)
    return dict(loaded) if isinstance(loaded, Mapping) else {str(loaded.split or "all"): loaded}


def _choose_splits(tables: Mapping[str, Table], spec: HubSpec) -> list[str]:
    """Names of the splits of bank and queries; one name if one split serves both."""
    options, known = spec.options, ", ".join(sorted(tables))
    for name in (options.get("train"), options.get("val")):
        require(name is None or name in tables, f"a split {name!r} in {spec.text}", known)
    if len(tables) == 1 and "val" not in options:
        return [*tables]
    bank = options.get("train", "train")
    queries = options.get("val") or next((name for name in QUERY_SPLITS if name in tables), None)
    if bank not in tables or queries is None or bank == queries:
        splits = f"a split train and one of {', '.join(QUERY_SPLITS)} in {spec.text}"
        raise mismatch(splits, known, "choose them with ?train=SPLIT&val=SPLIT")
    return [bank, queries]


def _read_split(name: str, table: Table, spec: HubSpec, notes: list[str]) -> list[LabelledSample]:
    """The class name and the undecoded image of each row of a split that has a class; raises InputError.

    A note on the others is added to ``notes``.
    """
    import datasets

    features = table.features
    images = [column for column, kind in features.items() if isinstance(kind, datasets.Image)]
    labels = [column for column, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
    image = _choose_column("image", "image", images, images, spec)
    label = _choose_column("label", "ClassLabel", labels, list(features), spec)
    values = table.select_columns([label])[:][label]
    undecoded = table.cast_column(image, datasets.Image(decode=False))
    classes = class_names(getattr(features[label], "names", None))
    where = f"split {name} of {spec.text}"
    named = [label_text(each, f"{label} in row {row} of {where}", classes) for row, each in enumerate(values)]
    require(any(named), f"a class in the rows of {where}, in the column {label}", remedy="choose others")
    if nameless := [f"{name}/{row:09d}" for row, value in enumerate(named) if not value]:
        what = counted(len(nameless), "images")
        notes.append(f"{what} whose row has no class left out ({some(nameless, 2)})")
    fingerprint = str(table._fingerprint)  # before the cast, so that it identifies the stored content
    return [
        (value, TableSample(f"{name}/{row:09d}", row, image, fingerprint, undecoded))
        for row, value in enumerate(named)
        if value
    ]


def _choose_column(option: str, kind: str, columns: list[str], admitted: list[str], spec: HubSpec) -> str:
    """The user's column, or the only one of its kind; raises InputError."""
    chosen = spec.options.get(option)
    if chosen is not None:
        named = f"{option}={chosen} to name a column of {spec.text}"
        require(chosen in admitted, named, ", ".join(sorted(admitted)) or "no such column")
        return chosen
    remedy = "choose with hf:ID?image=COLUMN&label=COLUMN"
    listed = ", ".join(sorted(columns)) or "none"
    require(len(columns) == 1, f"one {kind} column in {spec.text}", listed, remedy)
    return columns[0]
