"""ImageNet-1k as stored on the Hub: tables of images and labels, with file names.

Names are those of ``ILSVRC/imagenet-1k``: the official file name with the class appended, such as
``n01440764_10026_n01440764.JPEG`` and ``ILSVRC2012_val_00000293_n01440764.JPEG``.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import compute

from layerboard.tasks.datasets.packs.manifest import MANIFEST
from layerboard.tasks.datasets.packs.shards import one_column
from layerboard.zoo.errors import InputError
from layerboard.zoo.reading import require_regular

FOLDER = "imagenet"  # folder of the official layout below the data folder
SPLITS = {"train": "train", "validation": "val"}  # its subfolder for each split
FILES = tuple(f"*{split}-*.parquet" for split in SPLITS)  # patterns of its files on the Hub
_TOTAL = re.compile(r"-of-(\d+)\.parquet$")
_NAME = re.compile(r"(.+)_(n\d{8})(\.\w+)$")


def open_hub_imagenet(folder: Path, name: str) -> tuple[dict[str, int], Any, Any]:
    """ImageNet-1k of the Hub as rows of the files ``imagenet/{train,val}/<wnid>/<name>``; raises InputError.

    The number of each file's row, and the bytes and a stamp of each row, in columns.
    ``datasets`` converts the parquet files to its own cache, from which single rows can be read.
    """
    shards = {split: _files(folder, split, name) for split in SPLITS}
    for parquet in shards.values():
        _require_columns(parquet[0], name)
    tables = _load(shards, name)
    files: dict[str, int] = {}
    for path in _paths(tables, name):
        if path in files:
            raise InputError(f"expected each image once in {name}, found {path} twice")
        files[path] = len(files)
    ordered = [tables[split] for split in SPLITS]
    # fingerprints are those of the stored content
    stamps = (f"{table._fingerprint}|{row}" for table in ordered for row in range(table.num_rows))
    contents = one_column((_stored(table, "bytes") for table in ordered), pa.binary())
    return files, contents, pa.array(stamps, pa.string())


def _files(folder: Path, split: str, name: str) -> list[str]:
    """The parquet files of a split; raises InputError if there are none, or fewer than their names state."""
    paths = sorted([*folder.glob(f"{split}-*.parquet"), *folder.glob(f"*/{split}-*.parquet")])
    if not paths:
        raise InputError(
            f"expected {MANIFEST}, as `pack` writes it, or {split}-*.parquet, as imagenet-1k has them, "
            f"in {name}, found neither; a folder of an official layout is given without hf:"
        )
    totals = {int(total[1]) for path in paths if (total := _TOTAL.search(path.name))}
    if totals and totals != {len(paths)}:
        raise InputError(
            f"expected {max(totals):,} files {split}-*.parquet in {name}, as their names say, found "
            f"{len(paths):,}; fetch the others"
        )
    return [str(path) for path in paths]


def _require_columns(file: str, name: str) -> None:
    """Raise InputError unless a file has images and labels, before all files are converted."""
    import datasets
    from pyarrow.parquet import read_schema

    try:
        require_regular(file)
        features = datasets.Features.from_arrow_schema(read_schema(file))
    except (OSError, ValueError, pa.ArrowException) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"expected a parquet file at {file}, which is damaged ({said}); fetch it again"
        ) from error
    if not isinstance(features.get("image"), datasets.Image) or "label" not in features:
        raise InputError(
            f"expected the columns image and label in {file}, as imagenet-1k has them, found "
            f"{', '.join(features)}; other datasets go with --images"
        )


def _load(files: Mapping[str, list[str]], name: str) -> Mapping[str, Any]:
    import datasets

    try:
        loaded = datasets.load_dataset("parquet", data_files=dict(files))
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        cause = error.__cause__ or error
        raise InputError(
            f"cannot load the parquet files of {name}: {' '.join(str(cause).split())[:300]}; fetch them again"
        ) from error
    return dict(loaded)


def _paths(tables: Mapping[str, Any], name: str) -> Iterator[str]:
    """Path of each row of both splits in the official layout; raises InputError."""
    wnids: dict[int, str] = {}
    for split, folder in SPLITS.items():
        table = tables[split]
        where = f"split {split} of {name}"
        labels = table.data.column("label").to_pylist()
        for file, label in zip(_stored(table, "path").to_pylist(), labels, strict=True):
            parts = _NAME.match(PurePosixPath(file or "").name)
            if parts is None or wnids.setdefault(label, parts[2]) != parts[2]:
                raise InputError(
                    f"expected names such as n01440764_10026_n01440764.JPEG, one class a label, in {where}, "
                    f"found {file!r} of label {label}; other datasets go with --images"
                )
            yield f"{FOLDER}/{folder}/{parts[2]}/{parts[1]}{parts[3]}"


def _stored(table: Any, field: str) -> Any:  # noqa: ANN401  # the library has no types
    return compute.struct_field(table.data.column("image"), field)
