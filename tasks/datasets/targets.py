"""Images with numbers, or with several labels each, from columns of a table."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from layerboard.tasks.datasets.base import Coverage, Data, Sample
from layerboard.tasks.datasets.classes import Unlabelled, require_undivided
from layerboard.tasks.datasets.integrity import mismatch, require
from layerboard.tasks.datasets.reading.door import PARTED
from layerboard.tasks.datasets.reading.labels import LABEL_COLUMNS, LabelledFile, LabelTable, Target
from layerboard.tasks.datasets.reading.names import number_twins, unseen_twins
from layerboard.tasks.datasets.reading.splits import TRAIN
from layerboard.tasks.metrics.arrays import Floats, Integers, Mask
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING, SEED, group_numbers, stratified_folds
from layerboard.zoo.errors import counted, some

MOST_CLASSES = 20  # a class column with up to this many distinct numbers contains classes, not numbers
TRUTHS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}  # cells of a label's column
_INDEX = re.compile(r"(Unnamed: \d+)?")  # names of the index columns that pandas writes
# a number with a decimal comma, and with points that part thousands
_GROUPED = re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+")
_WITH_COMMA = re.compile(rf"[+-]?\d+,\d+([eE][+-]?\d{{1,2}})?|{_GROUPED.pattern}")  # either
_OF_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # possibly a whole number with a thousands separator
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?")


@dataclass(frozen=True, slots=True)
class Targets(Data):
    """Images in sorted key order, and several values of each."""

    name: str
    samples: tuple[Sample, ...]
    values: Floats  # [images targets], finite
    targets: tuple[str, ...]  # names of the values
    fold: Integers  # [images] fold in which each is tested, from 0, or `ALWAYS_TRAINING`
    groups: tuple[str, ...]  # group of each image, or its key
    coverage: Coverage
    firsts = ("samples", "values", "fold", "groups")

    @property
    def split(self) -> str:
        """Description of the tested images, for records."""
        if (self.fold == ALWAYS_TRAINING).any():
            return "train, val"
        return f"{len(np.unique(self.fold))} folds (seed {SEED})"

    @property
    def understood(self) -> tuple[str, ...]:
        """Remarks on the interpretation of the targets and on the tested images."""
        if (self.fold == ALWAYS_TRAINING).any():
            return ("val is tested by what train shows",)
        return (f"every image tested once, in {len(np.unique(self.fold))} folds, seed {SEED}",)

    @property
    def truth(self) -> tuple[object, ...]:
        return self.targets, self.values.tolist(), self.fold.tolist(), self.groups

    def content(self, stated: Callable[[Sample], str]) -> list[object]:
        images = zip(self.samples, self.values.tolist(), self.described(), strict=True)
        return [self.targets, sorted((stated(image), *values, *facts[2:]) for image, values, facts in images)]

    def described(self) -> Iterator[tuple[str, str, str, str]]:
        split = (self.fold == ALWAYS_TRAINING).any()
        for sample, group, fold in zip(self.samples, self.groups, self.fold, strict=True):
            side = ("train" if fold == ALWAYS_TRAINING else "val") if split else ""
            yield sample.key, "", "" if group == sample.key else group, side

    def held_apart(self) -> Iterator[tuple[str, Iterable[Sample], str, Iterable[Sample]]]:
        known = self.fold == ALWAYS_TRAINING
        if known.any():
            yield "train", compress(self.samples, known), "val", compress(self.samples, ~known)

    def serving(self, role: str) -> Data | None:
        """Tasks that need no classes may look at the images alone."""
        if role == "classification":
            return Unlabelled(self.name, self.samples, self.coverage)
        return self if role == self.role else None


class ImageNumbers(Targets):
    """Images with one or several numbers each."""

    __slots__ = ()
    role = "numbers"

    @property
    def understood(self) -> tuple[str, ...]:
        may_be_classes = {*map(str.lower, self.targets)} <= {*LABEL_COLUMNS}
        hint = ("--target class would take the numbers as classes",) if may_be_classes else ()
        return (f"regression of {some(self.targets, 6)}", *hint, *super().understood)


class ImageLabels(Targets):
    """Images with any number of labels each: values are 1 for the labels of an image, 0 for others."""

    __slots__ = ()
    role = "labels"

    @property
    def judged(self) -> Mask:
        """Whether each label is present and absent in every fold and in its training images."""
        folds = np.unique(self.fold[self.fold != ALWAYS_TRAINING])
        parts = [part for fold in folds for part in (self.fold == fold, self.fold != fold)]
        means = np.stack([self.values[part].mean(axis=0) for part in parts])
        return np.asarray(((means > 0) & (means < 1)).all(axis=0))

    @property
    def understood(self) -> tuple[str, ...]:
        words = f"{counted(len(self.targets), 'labels')}, any number an image ({some(self.targets, 6)})"
        left_out = [name for name, judged in zip(self.targets, self.judged, strict=True) if not judged]
        rare = f"{some(left_out, 6)} left out of means: some fold has no image with it, or none without"
        return (words, *([rare] if left_out else []), *super().understood)


class TargetColumns(NamedTuple):
    """The columns of tables with equal headers that contain numbers or labels."""

    role: Literal["numbers", "labels"]
    names: tuple[str, ...]
    header: tuple[str, ...]
    commas: bool = False  # whether numbers have a decimal comma

    @property
    def noun(self) -> tuple[str, str]:
        """Name of a row's value, singular and plural."""
        return self.role.removesuffix("s"), self.role

    def cells(self, row: LabelledFile) -> list[str]:
        """Cells of a row in these columns."""
        return [row.cells[self.header.index(name)] for name in self.names]

    def said(self, row: LabelledFile) -> str:
        """All these cells of a row as one text; "" if a cell is empty."""
        cells = self.cells(row)
        return ", ".join(cells) if all(cells) else ""


def find_targets(tables: Sequence[LabelTable], target: Target | None) -> TargetColumns | None:
    """Columns of numbers or labels in tables, as requested or detected; None for classes; raises InputError.

    If there is a class column, only this is used: it has numbers if most cells are numbers, with more than
    `MOST_CLASSES` distinct ones, and labels if a cell has several. Otherwise all columns of numbers are used.
    """
    first, path = tables[0], tables[0].path
    known = {first.file, first.label, first.split, first.group}
    names = (name for name in first.header if name not in known and not _INDEX.fullmatch(name))
    others = {name: _cells(tables, name) for name in names}
    classes = {first.label: _cells(tables, first.label)} if first.label else {}
    understood = None
    if target is None and first.file:
        understood = _as_it_looks(path, classes, others)
    elif target and target != "class":
        choose = _numbered if target == "number" else partial(_labelled, least=1)
        chosen = choose(classes) or choose(others)
        what = "numbers" if target == "number" else f"labels parted by {PARTED!r}, or of 0 and 1,"
        require(chosen, f"a column of {what} in {path} for --target {target}", some(first.header, 6))
        understood = ("numbers" if target == "number" else "labels"), chosen
    if understood is None:
        return None
    role, chosen = understood
    cells = [cell for name in chosen for cell in _cells(tables, name)]
    commas = role == "numbers" and all(table.commas for table in tables) and _has_decimal_commas(cells)
    columns = TargetColumns(role, chosen, first.header, commas)
    for table in tables:
        _require_alike(table, columns)
    return columns


def _as_it_looks(
    path: Path, classes: Mapping[str, Sequence[str]], others: Mapping[str, Sequence[str]]
) -> tuple[Literal["numbers", "labels"], tuple[str, ...]] | None:
    """Detected role and columns; None for classes; raises InputError if it is unclear."""
    columns = classes or others
    if names := _labelled(columns, least=2):
        return "labels", names
    names = _numbered(columns)
    if len(names) == 1 and (number := len({*columns[names[0]]})) <= MOST_CLASSES:
        if classes:
            return None
        many = f"a column of more than {MOST_CLASSES} different numbers in {path}"
        remedy = "say --target number, or name the column label if they are classes"
        raise mismatch(many, f"{number} in {names[0]!r}", remedy)
    return ("numbers", names) if names else None


def _cells(tables: Iterable[LabelTable], name: str) -> list[str]:
    """The cells of a column that are not empty."""
    cells = (row.cells[table.header.index(name)] for table in tables for row in table.rows)
    return [cell for cell in cells if cell]


def _numbered(columns: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Columns in which most cells are numbers."""
    shares = {
        name: [bool(_NUMBER.fullmatch(cell) or _WITH_COMMA.fullmatch(cell)) for cell in cells]
        for name, cells in columns.items()
    }
    return tuple(name for name, numbers in shares.items() if 2 * sum(numbers) > len(numbers))


def _has_decimal_commas(cells: Iterable[str]) -> bool:
    """Whether numbers have a decimal comma: some have one that parts no thousands, and none has a point."""
    numbers = [cell for cell in cells if _NUMBER.fullmatch(cell) or _WITH_COMMA.fullmatch(cell)]
    certain = any("," in cell and not _OF_THOUSANDS.fullmatch(cell) for cell in numbers)
    return certain and not any("." in cell for cell in numbers if not _GROUPED.fullmatch(cell))


def _with_point(cell: str) -> str:
    """A number with a decimal comma as one with a point."""
    return (cell.replace(".", "") if _GROUPED.fullmatch(cell) else cell).replace(",", ".")


def _labelled(columns: Mapping[str, Sequence[str]], least: int) -> tuple[str, ...]:
    """The column of separated labels, or the columns of 0 and 1 if no other column has numbers."""
    parted = [name for name, cells in columns.items() if any(PARTED in cell for cell in cells)]
    binary = [name for name, cells in columns.items() if cells and {*map(str.lower, cells)} <= {*TRUTHS}]
    if parted:
        return (parted[0],)
    return tuple(binary) if len(binary) >= max(least, len(_numbered(columns))) else ()


def _require_alike(table: LabelTable, columns: TargetColumns) -> None:
    """Raise InputError if columns differ from those of other tables, or a cell is not a number."""
    alike = f"the columns {some(columns.header, 6)} in {table.path}, too, in this order"
    require(table.header == columns.header, alike, some(table.header, 6))
    for row in table.rows if columns.role == "numbers" else ():
        for name, cell in zip(columns.names, columns.cells(row), strict=True):
            if cell and not _NUMBER.fullmatch(_with_point(cell) if columns.commas else cell):
                cure = "leave the cell empty to leave the image out"
                if _WITH_COMMA.fullmatch(cell):
                    whole = f", or {cell.replace(',', '')} if it parts thousands"
                    cure = f"write {_with_point(cell)}{whole if _OF_THOUSANDS.fullmatch(cell) else ''}"
                where = f"column {name!r} of {table.path}, line {row.number}"
                raise mismatch(f"a number in {where}", repr(cell), cure)


def _values(cells: Sequence[Sequence[str]], columns: TargetColumns) -> tuple[Floats, tuple[str, ...]]:
    """Values of the images, [images targets], and their names."""
    if columns.role == "numbers":
        points = [[*map(_with_point, row)] for row in cells] if columns.commas else cells
        return np.array(points, np.float64), columns.names
    if {cell.lower() for row in cells for cell in row} <= {*TRUTHS}:
        return np.array([[TRUTHS[cell.lower()] for cell in row] for row in cells]), columns.names
    labels = [{label.strip() for label in row[0].split(PARTED)} - {""} for row in cells]
    names = tuple(sorted(set().union(*labels)))
    return np.array([[float(name in each) for name in names] for each in labels]), names


def targets_of(
    name: str,
    samples: Sequence[Sample],
    columns: TargetColumns,
    files: Sequence[LabelledFile],
    coverage: Coverage,
) -> Targets:
    """The dataset of images (those of the files, in order) with the values in the columns.

    Raises InputError for a group in both train and val, or if no image can be tested by another group.
    """
    values, targets = _values([columns.cells(file) for file in files], columns)
    groups = tuple(file.group or file.path for file in files)
    if any(file.split for file in files):
        fold = np.array([ALWAYS_TRAINING if file.split == TRAIN else 0 for file in files], np.int64)
        sides = ([file.group for file in files if (file.split == TRAIN) == known] for known in (True, False))
        require_undivided(name, *sides)
    else:
        several = f"images of two groups in {name}, since none is tested by its own group"
        require(len({*groups}) > 1, several, f"{counted(len(files), 'images')} of one")
        fold = stratified_folds(np.zeros(len(files), np.int64), group_numbers(groups))
    kind = ImageNumbers if columns.role == "numbers" else ImageLabels
    alike = [*unseen_twins(targets, columns.role), *number_twins(targets, columns.role)]
    commas = ("numbers with a decimal comma",) if columns.commas else ()
    coverage = replace(coverage, notes=(*alike, *coverage.notes), remarks=(*commas, *coverage.remarks))
    data = kind(name, tuple(samples), values, targets, fold, groups, coverage)
    return replace(data, coverage=replace(coverage, remarks=(*data.understood, *coverage.remarks)))
