"""ImageNet-1k in the form in which the Hub has it: tables of images and labels, names of files beside them.

Names are those of ``ILSVRC/imagenet-1k``: of an image of the official archives, with its class behind it, such
as ``n01440764_10026_n01440764.JPEG`` and ``ILSVRC2012_val_00000293_n01440764.JPEG``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.hub_spec import HubSpec
from tasks.datasets.packs.pack import Pack
from zoo.errors import InputError
from zoo.online import hub_answers, offline_unless

FOLDER = "imagenet"
"""Folder of the official layout below the data folder."""

SPLITS = {"train": "train", "validation": "val"}
"""Folder in it of each split."""

_NAME = re.compile(r"(.+)_(n\d{8})(\.\w+)$")


class TableRows:
    """Rows of tables of ``datasets``, which lie on the disk; of each, its size is in memory."""

    def __init__(self, tables: Sequence[Any]) -> None:
        import datasets

        self._first = np.cumsum([0, *(table.num_rows for table in tables)])
        self._tables = [table.cast_column("image", datasets.Image(decode=False)) for table in tables]
        # Of the stored content: a cast gives another one.
        self._prints = [str(table._fingerprint) for table in tables]
        self._sizes = np.concatenate([np.empty(0, np.int64), *(_sizes(table) for table in tables)])

    def _at(self, row: int) -> tuple[int, int]:
        table = int(np.searchsorted(self._first, row, side="right")) - 1
        return table, row - int(self._first[table])

    def size(self, row: int) -> int:
        """Bytes of an image file."""
        return int(self._sizes[row])

    def stamp(self, row: int) -> str:
        """Fingerprint of its table, and the row."""
        table, index = self._at(row)
        return f"{self._prints[table]}|{index}"

    def read(self, row: int) -> bytes:
        """Bytes of an image file."""
        table, index = self._at(row)
        content: bytes | None = (self._tables[table][index]["image"] or {}).get("bytes")
        return content or b""


def open_hub_imagenet(spec: HubSpec) -> Pack:
    """The images of ImageNet-1k of the Hub as the files ``imagenet/{train,val}/<wnid>/<name>``.

    ``datasets`` writes its parquet files once more into its own cache, from where single rows can be read.

    Raises:
        InputError: It cannot be loaded, or its splits, columns or names are not those of imagenet-1k.
    """
    tables = _load(spec)
    files: dict[str, int] = {}
    for path in _paths(tables, spec):
        if path in files:
            raise InputError(f"expected each image once in {spec.text}, found {path} twice")
        files[path] = len(files)
    return Pack(files, tuple(files.values()), TableRows([tables[split] for split in SPLITS]))


def _load(spec: HubSpec) -> Mapping[str, Any]:
    """Its tables by split; raises InputError."""
    import datasets

    try:
        if spec.local:
            loaded = datasets.load_dataset(spec.location)
        else:
            with offline_unless(hub_answers()):
                loaded = datasets.load_dataset(spec.location, revision=spec.revision)
    except (OSError, ValueError, RuntimeError, NotImplementedError, datasets.exceptions.DatasetsError) as error:
        raise InputError(f"cannot load dataset {spec.text}: {' '.join(str(error).split())[:300]}") from error
    if missing := [split for split in SPLITS if split not in loaded]:
        raise InputError(
            f"expected a pack of `data pack`, or the splits {' and '.join(SPLITS)} of imagenet-1k, in {spec.text}, "
            f"found no {' and no '.join(missing)}; name other datasets with --images"
        )
    return dict(loaded)


def _paths(tables: Mapping[str, Any], spec: HubSpec) -> Iterator[str]:
    """Path of each row of both splits in the official layout; raises InputError."""
    import datasets

    wnids: dict[int, str] = {}
    for split, folder in SPLITS.items():
        table = tables[split]
        where = f"split {split} of {spec.text}"
        if not isinstance(table.features.get("image"), datasets.Image) or "label" not in table.features:
            raise InputError(
                f"expected the columns image and label in {where}, as imagenet-1k has them, found "
                f"{', '.join(table.features)}"
            )
        labels = table.data.column("label").to_pylist()
        for name, label in zip(_names(table), labels, strict=True):
            found = _NAME.match(PurePosixPath(name or "").name)
            if found is None or wnids.setdefault(label, found[2]) != found[2]:
                raise InputError(
                    f"expected names such as n01440764_10026_n01440764.JPEG, one class a label, in {where}, found "
                    f"{name!r} of label {label}; name other datasets with --images"
                )
            yield f"{FOLDER}/{folder}/{found[2]}/{found[1]}{found[3]}"


def _names(table: Any) -> list[str | None]:  # noqa: ANN401  # the library has no types
    """Name of the file of each row."""
    from pyarrow import compute

    names: list[str | None] = compute.struct_field(table.data.column("image"), "path").to_pylist()
    return names


def _sizes(table: Any) -> NDArray[np.int64]:  # noqa: ANN401  # the library has no types
    """Bytes of the file of each row, int64 [rows]; 0 where there is none."""
    from pyarrow import compute

    stored = compute.struct_field(table.data.column("image"), "bytes")
    sizes: NDArray[np.int64] = compute.fill_null(compute.binary_length(stored), 0).to_numpy().astype(np.int64)
    return sizes
