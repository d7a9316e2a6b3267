"""Datasets as stored on the Hub: tables of images and labels, read as files of the official layouts.

ImageNet-1k has file names there: those of ``ILSVRC/imagenet-1k`` are the official name with the class
appended, such as ``n01440764_10026_n01440764.JPEG`` and ``ILSVRC2012_val_00000293_n01440764.JPEG``. CIFAR-10
and CIFAR-100 have none: a file is named after its row, which is its place in the authors' file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import compute

from layerboard.tasks.datasets.integrity import explaining, mismatch, require, require_distinct, require_no
from layerboard.zoo.reading import require_regular

_TOTAL = re.compile(r"-of-(\d+)\.parquet$")
_NAME = re.compile(r"(.+)_(n\d{8})(\.\w+)$")


class HubTables(NamedTuple):
    """A dataset of the Hub whose tables are read as files of its official layout."""

    repository: str
    revision: str | None  # commit that is read if the user names none; None for the current one
    folder: str  # of the official layout, below the data folder
    image: str  # column
    label: str  # column
    splits: Mapping[str, str]  # folder of the official layout for each split
    named: bool = False  # whether rows have file names, with their class


CIFAR_SPLITS = {"train": "train", "test": "test"}
HUB_TABLES = (
    HubTables(
        *("ILSVRC/imagenet-1k", None, "imagenet", "image", "label"),
        {"train": "train", "validation": "val"},
        named=True,
    ),
    HubTables(
        *("uoft-cs/cifar10", "0b2714987fa478483af9968de7c934580d0bb9a2", "cifar10", "img", "label"),
        CIFAR_SPLITS,
    ),
    HubTables(
        *("uoft-cs/cifar100", "aadb3af77e9048adbea6b47c21a81e47dd092ae5", "cifar100", "img", "fine_label"),
        CIFAR_SPLITS,
    ),
)
_REPOSITORIES = ", ".join(each.repository for each in HUB_TABLES)


def tables_of(repository: str) -> HubTables:
    """The tables of a repository; of one that is not known, those of ImageNet-1k, which many repeat."""
    return next((each for each in HUB_TABLES if each.repository == repository), HUB_TABLES[0])


def has_tables(folder: Path) -> bool:
    """Whether a folder has a training split as parquet files, as a copy of a repository of the Hub does."""
    return any(_found(folder, "train"))


def open_hub_tables(folder: Path, name: str) -> tuple[dict[str, int], Any, Any]:
    """A dataset of the Hub as rows of files ``FOLDER/{train,val,test}/<class>/<name>``; raises InputError.

    The number of each file's row, and the bytes and a stamp of each row, in columns. Which dataset it is,
    its columns tell. ``datasets`` converts the parquet files to its own cache, from which single rows can be
    read.
    """
    first = _files(folder, "train", name)
    known = _known(first[0])
    if known is None:
        forms = " or ".join(f"{each.image} and {each.label}" for each in HUB_TABLES)
        columns = f"the columns {forms} in {first[0]}, as {_REPOSITORIES} have them"
        raise mismatch(columns, ", ".join(_columns(first[0])), "other datasets go with --images")
    tables = _load({split: _files(folder, split, name) for split in known.splits}, name)
    paths = [*_paths(known, tables, name)]
    require_distinct(paths, f"each image once in {name}")
    files = {path: row for row, path in enumerate(paths)}
    ordered = [tables[split] for split in known.splits]
    # fingerprints are those of the stored content
    stamps = (f"{table._fingerprint}|{row}" for table in ordered for row in range(table.num_rows))
    chunks = [chunk for table in ordered for chunk in _stored(known, table, "bytes").chunks]
    contents = pa.chunked_array(chunks, type=pa.binary())
    return files, contents, pa.array(stamps, pa.string())


def _found(folder: Path, split: str) -> list[Path]:
    return sorted([*folder.glob(f"{split}-*.parquet"), *folder.glob(f"*/{split}-*.parquet")])


def _files(folder: Path, split: str, name: str) -> list[str]:
    """The parquet files of a split; raises InputError if there are none, or fewer than their names state."""
    paths = _found(folder, split)
    files = f"{split}-*.parquet, as {_REPOSITORIES} have them, in {name}"
    require(paths, files, remedy="a folder of an official layout is given without hf:")
    totals = {int(total[1]) for path in paths if (total := _TOTAL.search(path.name))}
    every = f"{max(totals, default=0):,} files {split}-*.parquet in {name}, as their names say"
    require(totals <= {len(paths)}, every, f"{len(paths):,}", "fetch the others")
    return [str(path) for path in paths]


def _columns(file: str) -> dict[str, Any]:
    """The columns of a parquet file by name, before all files are converted; raises InputError."""
    import datasets
    from pyarrow.parquet import read_schema

    damaged = f"expected a parquet file at {file}, which is damaged"
    with explaining(damaged, OSError, ValueError, pa.ArrowException, remedy="fetch it again"):
        require_regular(file)
        return dict(datasets.Features.from_arrow_schema(read_schema(file)))


def _known(file: str) -> HubTables | None:
    """The dataset with the columns of a parquet file; None if there is none."""
    import datasets

    columns = _columns(file)
    images = [each for each in HUB_TABLES if isinstance(columns.get(each.image), datasets.Image)]
    return next((each for each in images if each.label in columns), None)


def _load(files: Mapping[str, list[str]], name: str) -> Mapping[str, Any]:
    import datasets

    with explaining(f"cannot load the parquet files of {name}", Exception, remedy="fetch them again"):
        try:
            return dict(datasets.load_dataset("parquet", data_files=dict(files)))
        except datasets.exceptions.DatasetGenerationError as error:  # which says nothing itself
            raise error.__cause__ or error from None


def _paths(known: HubTables, tables: Mapping[str, Any], name: str) -> Iterator[str]:
    """Path of each row of all splits in the official layout; raises InputError."""
    wnids: dict[int, str] = {}
    for split, folder in known.splits.items():
        table, where = tables[split], f"split {split} of {name}"
        labels = table.data.column(known.label).to_pylist()
        if not known.named:
            names = _class_names(table.features[known.label], labels, where)
            rows = enumerate(names)
            yield from (f"{known.folder}/{folder}/{label}/{row:05d}.png" for row, label in rows)
            continue
        for file, label in zip(_stored(known, table, "path").to_pylist(), labels, strict=True):
            parts = _NAME.match(PurePosixPath(file or "").name)
            if parts is None or wnids.setdefault(label, parts[2]) != parts[2]:
                official = f"names such as n01440764_10026_n01440764.JPEG, one class a label, in {where}"
                raise mismatch(official, f"{file!r} of label {label}", "other datasets go with --images")
            yield f"{known.folder}/{folder}/{parts[2]}/{parts[1]}{parts[3]}"


def _class_names(column: Any, labels: Sequence[int | None], where: str) -> list[str]:  # noqa: ANN401  # untyped
    """Name of the class of each row; raises InputError for a label that has none."""
    names = getattr(column, "names", None) or []
    wrong = [label for label in labels if label is None or not 0 <= label < len(names)]
    named = f"labels from 0 to {len(names) - 1} with their names in {where}"
    require_no(wrong, named, "fetch it again", most=1)
    return [names[label] for label in labels if label is not None]


def _stored(known: HubTables, table: Any, field: str) -> Any:  # noqa: ANN401  # the library has no types
    return compute.struct_field(table.data.column(known.image), field)
