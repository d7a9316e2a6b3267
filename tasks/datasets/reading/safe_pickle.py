"""Safe reader for pickles of plain values and numpy arrays, which imports and executes nothing."""

import io
import math
import pickle
import pickletools
import re
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from layerboard.tasks.datasets.reading.files import read_bytes, stamp
from layerboard.zoo.errors import shortened
from layerboard.zoo.reading import read_as, require_modest

# the revisited ground truths have less than a million bytes, some 10,000 values, and 4 levels of containers
LARGEST = 2**22  # bytes of a pickle, and of the arrays that it builds
MOST_VALUES = 1_000_000  # each counted as often as it occurs
MOST_SIDES = 32  # of an array


class _Dtype:
    """A type of numbers or text: numpy's own class restores any state, including forged object pointers."""

    def __init__(self, name: str, *_: object) -> None:
        if not re.fullmatch(r"[biufSU]\d{1,9}", name):
            raise pickle.UnpicklingError(f"an array of type {name}")
        self.name, self.order = name, "="


class _Array(list[Any]):
    """The values of an array in one row."""


def _with_text_keys(code: bytes, keys: slice) -> Callable[[Any], None]:
    """An instruction that fills a dictionary, of text alone: other keys can be forged to collide."""
    fill: Callable[[Any], None] = pickle._Unpickler.dispatch[code[0]]

    def checked(self: Any) -> None:  # noqa: ANN401  # of a class without public attributes
        if not all(isinstance(key, str) for key in self.stack[keys]):
            raise pickle.UnpicklingError("keys that are no text")
        fill(self)

    return checked


def _build(self: Any) -> None:  # noqa: ANN401  # of a class without public attributes
    """The instruction that sets the state of an object: of types and arrays alone."""
    state = self.stack.pop()
    if isinstance(self.stack[-1], _Dtype):
        self.stack[-1].order = str(state[1]).replace("|", "=")
    elif isinstance(self.stack[-1], _Array):
        _, shape, dtype, _, data = state
        self.stack[-1][:] = self.array(data, dtype, shape)
    else:
        raise pickle.UnpicklingError("an object with a state")


class _Unpickler(pickle._Unpickler):
    """Python's unpickler without sets and long numbers, and with known names in place of imports."""

    dispatch = pickle._Unpickler.dispatch | {
        pickle.SETITEM[0]: _with_text_keys(pickle.SETITEM, slice(-2, -1)),
        pickle.SETITEMS[0]: _with_text_keys(pickle.SETITEMS, slice(0, None, 2)),
        pickle.DICT[0]: _with_text_keys(pickle.DICT, slice(0, None, 2)),
        pickle.BUILD[0]: _build,
    }
    for _code in (pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET, pickle.LONG4):
        del dispatch[_code[0]]

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._room = LARGEST
        self._known: dict[str, object] = {
            "numpy.ndarray": None,  # which nothing calls: a list would be copied again and again
            "numpy.dtype": _Dtype,
            "numpy.core.multiarray._reconstruct": lambda *_: _Array(),
            "numpy.core.multiarray.scalar": lambda dtype, data: self.array(data, dtype, ())[0],
            "numpy.core.numeric._frombuffer": lambda data, dtype, shape, _: self.array(data, dtype, shape),
            "_codecs.encode": lambda text, _: self._counted(text),
            "builtins.bytes": lambda: b"",
        }

    def _counted(self, data: str | bytes) -> bytes:
        """Bytes of an array, which count: a pickle can build the same ones again and again."""
        content = data.encode("latin1") if isinstance(data, str) else data
        self._room -= len(content)
        if self._room < 0:
            raise pickle.UnpicklingError(f"arrays of more than {LARGEST:,} bytes")
        return content

    def array(self, data: str | bytes, dtype: _Dtype, shape: tuple[int, ...]) -> _Array:
        """Values of an array, of no objects, from its bytes."""
        content = self._counted(data)
        flat = np.frombuffer(content, np.dtype(dtype.order + dtype.name)) if content else np.empty(0)
        if len(shape) > MOST_SIDES or flat.size != math.prod(shape):
            raise pickle.UnpicklingError(f"an array of another shape with {flat.size:,} values")
        return _Array(flat.tolist())

    def find_class(self, module: str, name: str, /) -> object:
        full = f"{module}.{name}".replace("numpy._core.", "numpy.core.").replace("__builtin__.", "builtins.")
        if full not in self._known:
            said = f"found the global {module}.{name}, which was not executed; do not trust this file"
            raise pickle.UnpicklingError(said)
        return self._known[full]


def _inner(value: Any) -> Iterable[Any]:  # noqa: ANN401  # whatever a pickle holds
    """What a container holds; raises UnpicklingError for a number that takes forever to print."""
    if isinstance(value, int) and value.bit_length() > 64:
        raise pickle.UnpicklingError("a number of more than 64 bits")
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _unpickled(content: bytes) -> object:
    """What a pickle says; raises ValueError for one that is damaged, or may take forever.

    A list that contains another list twice, which contains another one twice, ..., fits into a hundred bytes.
    """
    try:
        deque(pickletools.genops(content), maxlen=0)  # whole, with all bytes that it says it has
        value = _Unpickler(content).load()
        require_modest([value], _inner, MOST_VALUES)
    except Exception as error:  # an invalid pickle can fail in many ways
        raise ValueError(shortened(str(error))) from error
    return value


def _read(path: Path) -> bytes:
    if (size := stamp(path)[0]) > LARGEST:
        raise ValueError(f"it has {size:,} bytes, of at most {LARGEST:,}")
    return read_bytes(path)


def restricted_load(path: Path, kind: type[Any] = object) -> Any:  # noqa: ANN401  # a ``kind``
    """The ``kind`` in a pickle of lists, dictionaries, numbers, text and numpy arrays; raises InputError.

    Arrays, of numbers or text, are lists of their values in order, whatever their shape.
    """
    return read_as(kind, path, "fetch the official one", _read, _unpickled, "a pickle")
