"""Arrays from files of any code, with errors in one sentence. Nothing is unpickled."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from layerboard.leaderboards.records.arrays import require_bounded
from layerboard.tasks.datasets.integrity import explaining, mismatch, require, require_no
from layerboard.tasks.datasets.reading.door import UNKNOWN, cell, label_text
from layerboard.tasks.framework.checks import unusable
from layerboard.tasks.metrics.arrays import Mask, in_range
from layerboard.zoo.errors import InputError, ensure, in_brackets, some
from layerboard.zoo.reading import open_regular

Array = NDArray[np.generic]
Floats = NDArray[np.float32] | NDArray[np.float64]


class Arrays(dict[str, Array]):
    """Arrays of an archive by their names, and what must hold for each; errors name it and its file."""

    def __init__(self, path: Path, arrays: Mapping[str, Array]) -> None:
        super().__init__(arrays)
        self.path = path

    def features(self, name: str) -> Floats:
        """Features [n dim], `in_range`, that differ between items; raises InputError."""
        return in_range([self._features(name)])[0]

    def feature_pair(self, first: str, second: str) -> tuple[Floats, Floats]:
        """Features of equal dimension for two kinds of items; raises InputError.

        Those of the first differ between items; those of the second kind, the queries, may all be equal.
        """
        known, asked = self._features(first), self._features(second, constant=True)
        widths = f"{known.shape[1]} and {asked.shape[1]}"
        same = known.shape[1] == asked.shape[1]
        require(same, f"{first} and {second} of one width in {self.path}", widths)
        known, asked = in_range([known, asked])
        return known, asked

    def _features(self, name: str, *, constant: bool = False) -> Floats:
        where = f"{name} of {self.path}"
        values = as_floats(self[name], where, "[n dim]")
        reason = unusable(values, constant=not constant)  # type: ignore[arg-type]
        ensure(not reason, f"expected features that tell items apart as {where}, but the {reason}")
        return values

    def texts(self, name: str, items: int) -> Array:
        """One label per item: [items] whole numbers or text, "" for a missing one; raises InputError."""
        return self.labels(name, items, "biuUS")

    def classes(self, name: str, items: int, *, text: bool = False, beside: str = "") -> tuple[Array, Mask]:
        """One class per item, [items] whole numbers or, if ``text`` may be, text; and whether it has one.

        Items have none by NaN, by a text that is a missing cell in tables, and by -1 as ``datasets`` writes
        it: the only number below 0 of this array and the one ``beside`` it, where at least two others begin
        with 0. Raises InputError if no item has a class.
        """
        classes = self.labels(name, items, "biufUS" if text else "biuf")
        there = np.ones(items, np.bool_) if classes.dtype.kind != "U" else classes != ""
        if classes.dtype.kind == "f":
            there, floats = ~np.isnan(classes), classes
            classes = np.where(there, floats, 0).astype(np.int64)
            strange = floats[there & (classes != floats)][:1]
            require_no([str(each) for each in strange], f"whole numbers as {name} of {self.path}")
        known = np.unique(np.concatenate([self[each] for each in (name, beside) if each in self]))
        if classes.dtype.kind == "i" and len(known) > 2 and [*known[:2]] == [UNKNOWN, 0]:
            there &= classes != UNKNOWN
        require(there.any(), f"a class of at least one item as {name} of {self.path}")
        return classes, there

    def labels(self, name: str, items: int, kinds: str = "biu") -> Array:
        """One label per item: [items] whole numbers, or of other ``kinds`` of numpy; raises InputError."""
        array, where = self[name], f"{name} of {self.path}"
        what = "whole numbers or text" if "U" in kinds else "whole numbers"
        remedy = "save them with np.asarray(labels) of that type"
        require(array.dtype.kind in kinds, f"{what} as {where}", f"the type {array.dtype}", remedy)
        rows = f"one label for each of {items:,} rows of features as {where}"
        require(array.shape == (items,), rows, in_brackets(array.shape))
        if array.dtype.kind not in "US":
            return array
        return np.array([cell(label_text(each, where)) for each in array.tolist()], np.str_)


def read_archive(path: Path, names: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """The named arrays of an .npz archive, and optional ones if present; raises InputError."""
    with _open(path) as stream, _readable(path):
        content = np.load(stream, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            archive = f"an .npz archive with {', '.join(names)} at {path}"
            raise mismatch(archive, "a single array", "write it with np.savez")
        require_bounded(content)
        missing = [name for name in names if name not in content.files]
        lack = f"no {' and no '.join(missing)} among {some(content.files, 12) or 'nothing'}"
        remedy = "write them with np.savez under these names"
        require(not missing, f"the arrays {', '.join(names)} in {path}", lack, remedy)
        arrays = Arrays(path, {})
        for name in (*names, *(name for name in optional if name in content.files)):
            with _readable(path, name):
                arrays[name] = content[name]
                if isinstance(arrays[name], bytes):  # numpy returns this for a member of another kind
                    raise ValueError("it is no .npy file")
        return arrays


def read_array(path: Path, mapped: bool = False) -> Array:
    """The array of an .npy file, memory-mapped if ``mapped``; raises InputError."""
    with _open(path) as stream, _readable(path):
        if mapped and stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX:
            with np.errstate(over="raise"):  # in the product of the lengths
                return np.lib.format.open_memmap(path, mode="r")
        stream.seek(0)
        content: Array | np.lib.npyio.NpzFile = np.load(stream, allow_pickle=False)
        if isinstance(content, np.lib.npyio.NpzFile):
            archive = f"an archive of {some(content.files, 12) or 'nothing'}"
            raise mismatch(f"one array (.npy) at {path}", archive, "write it with np.save")
        return content


def as_floats(array: Array, where: str, shape: str, wide: bool = False) -> Floats:
    """Features as float32, or unchanged if ``wide``, checked to be finite numbers of the stated shape.

    The shape names the axes in brackets, such as ``[n dim]``; "..." stands for one or more axes. ``where``
    names the array and its file in errors. Raises InputError for another shape or type, for an empty array,
    and for values that are NaN, infinite or beyond float32.
    """
    axes = shape.strip("[]").split()
    fits = array.ndim >= len(axes) if "..." in axes else array.ndim == len(axes)
    require(fits, f"{where} to have the shape {shape}", in_brackets(array.shape))
    remedy = "export float32 (np.asarray(features, dtype=np.float32))"
    require(array.dtype.kind in "fiu", f"numbers as {where}", f"the type {array.dtype}", remedy)
    require(array.size, f"at least one number in {where}", f"the shape {in_brackets(array.shape)}")
    dtype = np.dtype(np.float64 if wide or array.dtype == np.float64 else np.float32)
    with np.errstate(over="ignore"):  # values that overflow are found here
        values: Floats = array.astype(dtype, copy=False)
        finite = np.isfinite(values.astype(np.float32, copy=False)).reshape(len(values), -1).all(axis=1)
    rows = f"{np.count_nonzero(~finite):,} of {len(values):,} rows, first in row {finite.argmin()}"
    strange = f"NaN, infinite or larger values in {rows}"
    require(finite.all(), f"finite numbers within float32 in {where}", strange, "export them again")
    return values


def _open(path: Path) -> BinaryIO:
    with explaining(f"expected a file of numpy (.npy or .npz) at {path}", OSError):
        return open_regular(path)


@contextmanager
def _readable(path: Path, name: str = "") -> Iterator[None]:
    """Raise InputError with the file, and the array in it, that numpy cannot read."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # numpy and its archives raise many kinds of errors for malformed files
        what = f"array {name} of {path}" if name else str(path)
        if "pickle" in str(error).lower() or "object" in str(error).lower():
            raise InputError(
                f"expected plain numbers or text in {what}, found Python objects or no file of numpy; "
                "save numbers or text, not Python objects (np.asarray(values) with a plain dtype)"
            ) from error
        raise InputError(
            f"expected a file of numpy (.npy or .npz), but {what} is damaged: {error}; export it again"
        ) from error
