"""Images with numbers, or with several labels each, as columns of a table say them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from layerboard.tasks.datasets.base import Coverage, Data, Sample, counted
from layerboard.tasks.datasets.classes import Unlabelled
from layerboard.tasks.datasets.labels import LabelledFile, LabelTable
from layerboard.tasks.metrics.arrays import Floats, Integers, Mask
from layerboard.tasks.metrics.ridge import ALWAYS_TRAINING
from layerboard.zoo.errors import InputError, some

Target = Literal["class", "number", "labels"]  # what a table is asked for

MOST_CLASSES = 20  # different numbers up to which a column of classes that are numbers is one of classes
PARTED = "|"  # stands between the labels of an image
TRUTHS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}  # cells of a label's column
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?")


@dataclass(frozen=True, slots=True)
class Targets(Data):
    """Images in sorted key order, and several values of each."""

    name: str
    samples: tuple[Sample, ...]
    values: Floats  # [images targets], finite
    targets: tuple[str, ...]  # what the values are called
    fold: Integers  # [images] the fold that each is tested in, from 0, or `ALWAYS_TRAINING`
    groups: tuple[str, ...]  # what each image belongs to, or its key
    coverage: Coverage
    firsts = ("samples", "values", "fold", "groups")

    @property
    def split(self) -> str:
        """What was read of it, for records."""
        return "train, val" if (self.fold == ALWAYS_TRAINING).any() else f"{self.fold.max() + 1} folds"

    @property
    def truth(self) -> tuple[object, ...]:
        return self.targets, self.values.tolist(), self.fold.tolist(), self.groups

    def serving(self, role: str) -> Data | None:
        """Tasks that need no classes may look at the images alone."""
        if role == "classification":
            return Unlabelled(self.name, self.samples, self.coverage)
        return self if role == self.role else None


class Numbers(Targets):
    """Images with a number, or several, each."""

    __slots__ = ()
    role = "numbers"


class Labels(Targets):
    """Images with any number of labels each: values are 1 for those that an image has, and 0."""

    __slots__ = ()
    role = "labels"

    @property
    def judged(self) -> Mask:
        """Labels that some images of each fold, and of what it learns from, have, and some have not."""
        folds = np.unique(self.fold[self.fold != ALWAYS_TRAINING])
        parts = [part for fold in folds for part in (self.fold == fold, self.fold != fold)]
        means = np.stack([self.values[part].mean(axis=0) for part in parts])
        return np.asarray(((means > 0) & (means < 1)).all(axis=0))


class TargetColumns(NamedTuple):
    """The columns of a table that say more of an image than a class."""

    role: Literal["numbers", "labels"]
    names: tuple[str, ...]


def find_targets(tables: Sequence[LabelTable], target: Target | None) -> TargetColumns | None:
    """What tables say of images, as asked or as it looks; None for classes; raises InputError.

    A column of classes is looked at alone, where there is one: it is of numbers if most cells are, of more
    than `MOST_CLASSES` different ones, and of labels if one is parted. Without, any columns of numbers count.
    """
    if target == "class":
        return None
    first, path = tables[0], tables[0].path
    known = {first.file, first.label, first.split, first.group}
    others = {name: _cells(tables, name) for name in first.header if name not in known}
    classes = {first.label: _cells(tables, first.label)} if first.label else {}
    if target is None:
        columns = classes or others
        names = _labelled(columns, least=2)
        if names:
            return TargetColumns("labels", names)
        names = _numbered(columns)
        if len(names) == 1 and len({*columns[names[0]]}) <= MOST_CLASSES:
            if first.label:
                return None
            raise InputError(
                f"expected to know what column {names[0]!r} of {path} is, which has few different numbers; "
                "say --target number, or name the column label if they are classes"
            )
        return TargetColumns("numbers", names) if names else None
    for columns in (classes, others):
        names = _numbered(columns) if target == "number" else _labelled(columns, least=1)
        if names:
            return TargetColumns("numbers" if target == "number" else "labels", names)
    what = "numbers" if target == "number" else f"labels parted by {PARTED!r}, or of 0 and 1,"
    raise InputError(
        f"expected a column of {what} in {path} for --target {target}, found {some(first.header, 6)}"
    )


def _cells(tables: Iterable[LabelTable], name: str) -> list[str]:
    """What rows say in a column, where they say something."""
    cells = (row.cells[table.header.index(name)] for table in tables for row in table.rows)
    return [cell for cell in cells if cell]


def _numbered(columns: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Columns most of whose cells are numbers."""
    shares = {name: [bool(_NUMBER.fullmatch(cell)) for cell in cells] for name, cells in columns.items()}
    return tuple(name for name, numbers in shares.items() if 2 * sum(numbers) > len(numbers))


def _labelled(columns: Mapping[str, Sequence[str]], least: int) -> tuple[str, ...]:
    """The column of parted labels, or the columns of 0 and 1 where no other is of numbers."""
    parted = [name for name, cells in columns.items() if any(PARTED in cell for cell in cells)]
    binary = [name for name, cells in columns.items() if cells and {*map(str.lower, cells)} <= {*TRUTHS}]
    if parted:
        return (parted[0],)
    return tuple(binary) if len(binary) >= max(least, len(_numbered(columns))) else ()


def require_numbers(tables: Iterable[LabelTable], columns: TargetColumns) -> None:
    """Raise InputError for a cell in a column of numbers that is none."""
    for table in tables if columns.role == "numbers" else ():
        places = [table.header.index(name) for name in columns.names]
        for row in table.rows:
            for name, cell in ((table.header[place], row.cells[place]) for place in places):
                if cell and not _NUMBER.fullmatch(cell):
                    point = f"write {cell.replace(',', '.')}" if re.fullmatch(r"-?\d+,\d+", cell) else ""
                    raise InputError(
                        f"expected a number in column {name!r} of {table.path}, line {row.number}, found "
                        f"{cell!r}; {point or 'leave the cell empty to leave the image out'}, or say "
                        "--target class"
                    )


def values_of(files: Sequence[LabelledFile], columns: TargetColumns) -> tuple[Floats, tuple[str, ...]]:
    """The values of images, [images targets], and what they are called."""
    cells = [[file.cells[name] for name in columns.names] for file in files]
    if columns.role == "numbers":
        return np.array(cells, np.float64), columns.names
    if len(columns.names) > 1 or {*map(str.lower, (row[0] for row in cells))} <= {*TRUTHS}:
        return np.array([[TRUTHS[cell.lower()] for cell in row] for row in cells]), columns.names
    labels = [{label.strip() for label in row[0].split(PARTED)} - {""} for row in cells]
    names = tuple(sorted(set().union(*labels)))
    return np.array([[float(name in each) for name in names] for each in labels]), names


def targets_of(
    name: str,
    samples: Sequence[Sample],
    columns: TargetColumns,
    files: Sequence[LabelledFile],
    fold: Integers,
    coverage: Coverage,
) -> Targets:
    """The dataset of images, which are those of the files, and of what columns say of them."""
    values, targets = values_of(files, columns)
    groups = tuple(file.group or file.path for file in files)
    kind = Numbers if columns.role == "numbers" else Labels
    data = kind(name, tuple(samples), values, targets, fold, groups, coverage)
    remarks = [_understood(data)]
    if isinstance(data, Labels) and not data.judged.all():
        left_out = [target for target, judged in zip(targets, data.judged, strict=True) if not judged]
        remarks.append(f"{some(left_out)} left out of means: a fold has no image with, or none without")
    return replace(data, coverage=replace(coverage, remarks=(*remarks, *coverage.remarks)))


def _understood(data: Targets) -> str:
    """How the targets were understood, in words."""
    if isinstance(data, Labels):
        return f"{counted(len(data.targets), 'label')} ({some(data.targets)}), any number of them an image"
    return f"numbers: {some(data.targets)}; --target class takes them as classes"
