"""Pickles of plain values and numpy arrays, read without running anything that they name."""

import io
import pickle
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.pickle_limits import require_limits
from tasks.datasets.storage import read_bytes, stamp
from zoo.errors import InputError, shortened

LARGEST = 2**28
"""Bytes of a pickle; the revisited ground truths have less than a million."""


def _encode(text: str, encoding: str) -> bytes:
    """What pickles of protocol 2 call to restore bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in encoding {encoding!r}")
    return text.encode("latin1")


def _bytes(*content: object) -> bytes:
    """What pickles of protocol 2 call to make empty bytes."""
    if content:
        raise pickle.UnpicklingError("bytes of another kind")
    return b""


def _bytearray(content: object = b"", *_: object) -> bytearray:
    """What pickles before protocol 5 call to make a bytearray: of a number, it would be of that length."""
    if isinstance(content, str):
        return bytearray(content, "latin1")
    if not isinstance(content, bytes | bytearray):
        raise pickle.UnpicklingError("bytes of another kind")
    return bytearray(content)


class _Dtype:
    """A plain dtype: numpy's own restores any state, forged ones of object pointers among them."""

    __slots__ = ("name", "order")

    def __init__(self, name: str) -> None:
        self.name, self.order = name, "="

    def __setstate__(self, state: tuple[object, ...]) -> None:
        if state[1] not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError(f"byte order {state[1]!r}")
        self.order = str(state[1])

    def real(self) -> np.dtype[Any]:
        return np.dtype(self.name).newbyteorder("=" if self.order == "|" else self.order)  # type: ignore[arg-type]


def _dtype(name: object, *_: object) -> _Dtype:
    """What pickles call to restore a dtype: bool, integer, float, complex, text, bytes or object."""
    if not isinstance(name, str) or not re.fullmatch(r"[biufcSUO]\d{0,9}", name):
        raise pickle.UnpicklingError(f"an array of type {name!r}")
    return _Dtype(name)


def _from_bytes(data: object, dtype: object, shape: object, order: str) -> NDArray[Any]:
    """An array of the shape, from as many bytes as it takes."""
    if not isinstance(dtype, _Dtype) or not isinstance(shape, tuple):
        raise pickle.UnpicklingError("an array without type or shape")
    real = dtype.real()
    if real.hasobject:
        if not isinstance(data, list):
            raise pickle.UnpicklingError("an array of objects from bytes")
        flat = np.empty(len(data), dtype=object)
        flat[:] = data
    else:
        content = data.encode("latin1") if isinstance(data, str) else data
        if not isinstance(content, bytes | bytearray):
            raise pickle.UnpicklingError("an array without content")
        flat = np.frombuffer(content, dtype=real) if content else np.empty(0, real)
    return flat.reshape(shape, order="F" if order == "F" else "C")


class _Array(np.ndarray[Any, Any]):
    """An array whose content arrives later, as pickles before protocol 5 have it."""

    def __setstate__(self, state: Any, /) -> None:  # noqa: ANN401  # numpy's own signature
        _, shape, dtype, fortran, data = state
        found = _from_bytes(data, dtype, shape, "F" if fortran else "C")
        content = found.ravel().tolist() if found.dtype.hasobject else found.tobytes()
        super().__setstate__((1, shape, found.dtype, False, content))  # type: ignore[arg-type]


def _array(*_: object) -> _Array:
    """What pickles call to make an empty array."""
    return np.ndarray.__new__(_Array, (0,), np.int8)


def _scalar(dtype: object, data: object) -> object:
    """What pickles call to restore a numpy scalar."""
    return _from_bytes(data, dtype, (1,), "C")[0]


_NUMPY = {
    ("multiarray", "_reconstruct"): _array,
    ("multiarray", "scalar"): _scalar,
    ("numeric", "_frombuffer"): _from_bytes,
}

_ADMITTED: dict[tuple[str, str], object] = {
    **{
        (f"numpy.{core}.{module}", name): function
        for core in ("core", "_core")
        for (module, name), function in _NUMPY.items()
    },
    ("numpy", "ndarray"): "numpy.ndarray",
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "bytes"): _bytes,
    ("builtins", "bytearray"): _bytearray,
    ("__builtin__", "set"): set,
    ("__builtin__", "frozenset"): frozenset,
    ("__builtin__", "bytes"): _bytes,
    ("__builtin__", "bytearray"): _bytearray,
}
"""What a pickle may name, and what stands for it: no function of numpy that trusts its arguments."""


class _Unpickler(pickle.Unpickler):
    """Admits the globals of a fixed list, and imports nothing."""

    def __init__(self, content: bytes, path: Path) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._path = path

    def find_class(self, module_name: str, global_name: str, /) -> object:
        """The admitted object of that name; raises InputError for any other."""
        if (module_name, global_name) not in _ADMITTED:
            raise InputError(
                f"expected only plain containers and numpy arrays in {self._path}, found the global "
                f"{module_name}.{global_name}, which was not executed; do not trust this file, fetch the "
                "official one"
            )
        return _ADMITTED[module_name, global_name]


def restricted_load(path: Path) -> object:
    """The object in a pickle of plain containers, numbers, text and numpy arrays.

    Raises:
        InputError: A missing or damaged file, one that names any other global, or one beyond all measure
            (`tasks.datasets.pickle_limits`).
    """
    try:
        if (size := stamp(path)[0]) > LARGEST:
            raise InputError(
                f"expected a pickle of at most {LARGEST:,} bytes at {path}, found {size:,}; "
                "fetch the official one"
            )
        content = read_bytes(path)
        require_limits(content)
        return _Unpickler(content, path).load()
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"expected a pickle at {path}: {error.strerror}") from error
    except (
        pickle.UnpicklingError,
        EOFError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        MemoryError,
    ) as error:
        raise InputError(
            f"expected a pickle in {path}, which is damaged ({shortened(str(error))}); fetch it again"
        ) from error
