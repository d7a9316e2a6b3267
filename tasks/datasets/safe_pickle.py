"""Safe reader for pickles of plain values and numpy arrays, which executes nothing from the file."""

import io
import pickle
import pickletools
import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.files import read_bytes, stamp
from layerboard.zoo.errors import InputError, shortened

# the revisited ground truths have less than a million bytes, some 10,000 values, and 4 levels of nested
# containers, with a few more inside their arrays
LARGEST = 2**28  # bytes
MOST_VALUES = 5_000_000  # each counted as often as it occurs
DEEPEST = 32  # levels of nested containers


# replacements for functions that pickles call to restore bytes: Python's `bytes(n)` would allocate n bytes


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in encoding {encoding!r}")
    return text.encode("latin1")


def _bytes(*content: object) -> bytes:
    if content:
        raise pickle.UnpicklingError("bytes of another kind")
    return b""


def _bytearray(content: object = b"", *_: object) -> bytearray:
    if isinstance(content, str):
        return bytearray(content, "latin1")
    if not isinstance(content, bytes | bytearray):
        raise pickle.UnpicklingError("bytes of another kind")
    return bytearray(content)


class _Dtype:
    """A dtype of bool, integer, float, complex, text, bytes or object.

    numpy's own class restores any state, including forged object pointers.
    """

    __slots__ = ("name", "order")

    def __init__(self, name: object, *_: object) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[biufcSUO]\d{0,9}", name):
            raise pickle.UnpicklingError(f"an array of type {name!r}")
        self.name, self.order = name, "="

    def __setstate__(self, state: tuple[object, ...]) -> None:
        if state[1] not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError(f"byte order {state[1]!r}")
        self.order = str(state[1])

    def real(self) -> np.dtype[Any]:
        return np.dtype(self.name).newbyteorder("=" if self.order == "|" else self.order)  # type: ignore[arg-type]


_ATOMS = (str, bytes, int, float, type(None))


def _require_atoms(keys: Iterable[object]) -> None:
    """Raise UnpicklingError for keys that can be forged to collide, which makes dictionaries slow."""
    if not all(isinstance(key, _ATOMS) for key in keys):
        raise pickle.UnpicklingError("keys that are no text and no number")


def _set(items: Iterable[object] = ()) -> set[object]:
    _require_atoms(items)
    return {*items}


def _ordered(pairs: Iterable[tuple[object, object]] = ()) -> OrderedDict[object, object]:
    _require_atoms(pair[0] for pair in pairs)
    return OrderedDict(pairs)


def _from_bytes(data: object, dtype: object, shape: object, order: str) -> NDArray[Any]:
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
    """An array whose content is set later, as in pickles before protocol 5."""

    def __setstate__(self, state: Any, /) -> None:  # noqa: ANN401  # numpy's own signature
        _, shape, dtype, fortran, data = state
        array = _from_bytes(data, dtype, shape, "F" if fortran else "C")
        content = array.ravel().tolist() if array.dtype.hasobject else array.tobytes()
        super().__setstate__((1, shape, array.dtype, False, content))  # type: ignore[arg-type]


# allowed globals and their replacements: no function of numpy that trusts its arguments
_ADMITTED: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): "numpy.ndarray",
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): _ordered,
}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_core}.multiarray", "_reconstruct"] = lambda *_: np.ndarray.__new__(_Array, (0,), np.int8)
    _ADMITTED[f"{_core}.multiarray", "scalar"] = lambda dtype, data: _from_bytes(data, dtype, (1,), "C")[0]
    _ADMITTED[f"{_core}.numeric", "_frombuffer"] = _from_bytes
for _builtins in ("builtins", "__builtin__"):
    _ADMITTED[_builtins, "set"] = _set
    _ADMITTED[_builtins, "frozenset"] = lambda items=(): frozenset(_set(items))
    _ADMITTED[_builtins, "bytes"] = _bytes
    _ADMITTED[_builtins, "bytearray"] = _bytearray

# errors that libraries raise for an invalid pickle
_DAMAGED = (pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError, AttributeError, MemoryError)

# positions of keys among the arguments of an instruction
_KEYS = {"DICT": slice(0, None, 2), "SETITEM": slice(1, None, 2), "SETITEMS": slice(1, None, 2)}
_KEYS |= {"ADDITEMS": slice(1, None), "FROZENSET": slice(None)}
_GROW = ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD")
_REMEMBER = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")
_RECALL = ("GET", "BINGET", "LONG_BINGET")


@dataclass(slots=True, eq=False)
class _Value:
    """An item on the stack of the unpickler; a mark has no values."""

    values: int = 1
    depth: int = 0
    held: bool = False

    def take(self, items: Iterable["_Value"]) -> "_Value":
        """Contain other values, which must not change afterwards; raises UnpicklingError."""
        for item in items:
            if self.held or item is self:
                raise pickle.UnpicklingError("a container changes while another one, or itself, holds it")
            item.held = True
            self.values += item.values
            self.depth = max(self.depth, item.depth + 1)
        if self.values > MOST_VALUES:
            raise pickle.UnpicklingError(f"more than {MOST_VALUES:,} values")
        if self.depth > DEEPEST:
            raise pickle.UnpicklingError(f"more than {DEEPEST} containers within each other")
        return self


def require_limits(content: bytes) -> None:
    """Raise UnpicklingError, LookupError or ValueError unless a pickle is complete and of moderate size.

    The instructions are checked before any is executed. A list that contains another list twice, which
    contains another one twice, and so on, fits into a hundred bytes and takes forever to hash or print.
    """
    stack: list[_Value] = []
    memo: dict[object, _Value] = {}
    for done, (operation, argument, _) in enumerate(pickletools.genops(content)):
        if done > MOST_VALUES:
            raise pickle.UnpicklingError(f"more than {MOST_VALUES:,} instructions")
        if operation.name in _REMEMBER:
            index = len(memo) if argument is None else argument
            if not isinstance(index, int) or not 0 <= index <= done:
                raise pickle.UnpicklingError("a value is remembered at a place beyond all others")
            memo[index] = stack[-1]
        elif operation.name in _RECALL:
            stack.append(memo[argument])
        elif operation.name == "DUP":
            stack.append(stack[-1])
        elif operation.name == "MARK":
            stack.append(_Value(values=0))
        else:
            taken = _taken(stack, operation, argument)
            if operation.name in _GROW:
                stack.append(taken[0].take(taken[1:]))
            elif operation.stack_after:
                stack.append(_Value().take(taken))


def _taken(stack: list[_Value], operation: pickletools.OpcodeInfo, argument: object) -> list[_Value]:
    if isinstance(argument, int) and argument.bit_length() > 64:  # arbitrarily many of these share a hash
        raise pickle.UnpicklingError("a number of more than 64 bits")
    above: list[_Value] = []
    wanted = operation.stack_before
    if pickletools.markobject in wanted:
        wanted = wanted[: wanted.index(pickletools.markobject)]
        while (top := stack.pop()).values:
            above.append(top)
    below = [stack.pop() for _ in wanted]
    taken = below[::-1] + above[::-1]
    if any(key.depth for key in taken[_KEYS.get(operation.name, slice(0))]):
        raise pickle.UnpicklingError("keys that are no text and no number")
    return taken


class _Unpickler(pickle.Unpickler):
    """Unpickler that allows only the globals of a fixed list and imports nothing; raises InputError."""

    def __init__(self, content: bytes, path: Path) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._path = path

    def find_class(self, module_name: str, global_name: str, /) -> object:
        if (module_name, global_name) not in _ADMITTED:
            raise InputError(
                f"expected only plain containers and numpy arrays in {self._path}, found the global "
                f"{module_name}.{global_name}, which was not executed; do not trust this file, fetch the "
                "official one"
            )
        return _ADMITTED[module_name, global_name]


def restricted_load(path: Path) -> object:
    """The object in a pickle of plain containers, numbers, text and numpy arrays; raises InputError."""
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
    except _DAMAGED as error:
        raise InputError(
            f"expected a pickle in {path}, which is damaged ({shortened(str(error))}); fetch it again"
        ) from error
