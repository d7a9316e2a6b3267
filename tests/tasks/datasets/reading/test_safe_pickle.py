import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from layerboard.tasks.datasets.reading.safe_pickle import restricted_load
from layerboard.zoo.errors import InputError


class Malicious:
    """Runs a command when an ordinary unpickler reads it."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (self.command,)


PROTOCOLS = pytest.mark.parametrize("protocol", [0, 2, 5])


def refused(path: Path, content: bytes, message: str) -> str:
    """What is said of a pickle, which is refused."""
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        restricted_load(path)
    return str(caught.value)


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_and_arrays(tmp_path: Path, protocol: int) -> None:
    content = {
        "text": "a",
        "numbers": [1, 2.5, None, True, (3,)],
        "bytes": b"x\xff",
        "array": np.arange(6, dtype=np.int32).reshape(2, 3),
        "other": np.arange(4, dtype=">i4"),
        "empty": np.zeros((0, 3), np.float32),
        "bool": np.array([True, False]),
        "names": np.array(["a", "bc"]),
        "scalar": np.float32(2.5),
    }
    path = tmp_path / "plain.pkl"
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    found = restricted_load(path)
    assert isinstance(found, dict)
    for name, value in content.items():
        assert found[name] == (value.ravel().tolist() if isinstance(value, np.ndarray) else value)


def test_module_names_of_numpy_1(tmp_path: Path) -> None:
    path = tmp_path / "old.pkl"
    content = pickle.dumps(np.arange(3), protocol=2).replace(b"numpy._core", b"numpy.core")
    path.write_bytes(content)
    assert restricted_load(path) == [0, 1, 2]


@PROTOCOLS
def test_malicious_pickle_is_refused_and_not_executed(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "executed"
    content = pickle.dumps({"gnd": [Malicious(f"touch {mark}")]}, protocol=protocol)
    refused(tmp_path / "a.pkl", content, r"found the global (posix|nt)\.system, which was not executed")
    assert not mark.exists()


class Forged:
    """Calls what numpy's own pickles call, with other arguments."""

    def __init__(self, name: str, arguments: tuple[object, ...], state: object = None) -> None:
        self.name, self.arguments, self.state = name, arguments, state

    def __reduce__(self) -> tuple[object, ...]:
        array = np.zeros(2)
        functions = {
            "array": array.__reduce__()[0],
            "buffer": array.__reduce_ex__(5)[0],
            "scalar": np.float64(0).__reduce__()[0],
            "dtype": np.dtype,
            "ndarray": np.ndarray,
        }
        made = functions[self.name], self.arguments
        return made if self.state is None else (*made, self.state)


def array(shape: tuple[int, ...], kind: object, content: bytes) -> Forged:
    return Forged("array", (np.ndarray, (0,), b"b"), (1, shape, kind, False, content))


OBJECTS, BYTES, MILLION = np.dtype(object), np.dtype(np.uint8), bytes(10**6)


FORGED: tuple[tuple[object, str], ...] = (
    (Forged("ndarray", ((1,), OBJECTS, b"12345678")), "is malformed"),
    (Forged("ndarray", ([0] * 1000,)), "is malformed"),  # a list that would be copied
    (Forged("buffer", (b"12345678", OBJECTS, (1,), "C")), "an array of type O8"),
    (Forged("scalar", (OBJECTS, b"12345678")), "an array of type O8"),
    (array((1,), OBJECTS, b"12345678"), "an array of type O8"),
    (array((10**9,), np.dtype("i8"), b"12345678"), "an array of another shape with 1 values"),
    (array((1,), 3, b"12345678"), "is malformed"),
    (Forged("dtype", ("V8", False, True)), "an array of type V8"),
    (
        Forged("scalar", (Forged("dtype", ("i8", False, True), (3, "?", *[None] * 3, -1, -1, 0)), bytes(8))),
        "is malformed",
    ),
    # the same bytes again and again
    ([array((10**6,), BYTES, MILLION) for _ in range(5)], "arrays of more than 4,194,304 bytes"),
)


def nested(levels: int, kind: type[list[object]] | type[tuple[object, ...]]) -> object:
    """Two of the same in each other so many times: as many values as two to that power."""
    value: object = kind()
    for _ in range(levels):
        value = kind([value, value])
    return value


def from_above(levels: int) -> bytes:
    """The same lists, each filled when the one around it holds it already."""
    lists = b"".join(b"]q%c" % index for index in range(levels))
    fill = b"".join(b"h%c(h%ch%ce0" % (index, index + 1, index + 1) for index in range(levels - 1))
    return b"\x80\x02" + lists + fill + b"h\x00."


MERSENNE = 2**61 - 1  # whole numbers have it as their modulus when they are hashed
NO_TEXT, MANY, DEEP = "keys that are no text", "more than 1,000,000 values", "nested too deeply"


ENDLESS: tuple[tuple[object, str], ...] = (
    (nested(28, list), MANY),
    (nested(28, tuple), MANY),
    (nested(80, list), f"{MANY}|{DEEP}"),
    (nested(80, tuple), f"{MANY}|{DEEP}"),
    ({number * MERSENNE: 0 for number in range(100)}, NO_TEXT),
    ({1: 0}, NO_TEXT),
    ({(number, 0): 0 for number in range(100)}, NO_TEXT),
    ({number * MERSENNE for number in range(100)}, r"found the global \w+.set|is malformed"),
    (frozenset({(number, 0) for number in range(100)}), r"found the global \w+.frozenset|is malformed"),
    ([MERSENNE * 2**9], "a number of more than 64 bits"),
)
"""Values that take for ever, or much memory, to be read or compared."""

KEY = pickle.dumps(nested(30, tuple), protocol=2)  # it takes for ever to hash
SCALAR = b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'%s'\ntRS'abcdefgh'\ntR."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((pickle.dumps([forged]), message) for forged, message in FORGED),
        *((pickle.dumps({"gnd": one}, protocol=p), message) for p in (0, 2, 5) for one, message in ENDLESS),
        (b"", "is malformed"),
        (b"not a pickle", "is malformed"),
        (pickle.dumps([1, 2, 3])[:-3], "is malformed"),
        (b"\x80\x05.", "is malformed"),
        (b"F" + b"x" * 5000 + b"\n.", "is malformed"),
        (b"cbuiltins\neval\n(S'1'\ntR.", "found the global builtins.eval"),
        (b"cnumpy.core.multiarray\n_reconstruct.__globals__\n.", "found the global"),
        (b"cnumpy\nload\n(S'x'\ntR.", "found the global numpy.load"),
        (b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.tofile__\x93.", "found the global|is malformed"),
        (KEY[:2] + b"}" + KEY[2:-1] + b"K\x01s.", NO_TEXT),
        (from_above(60), MANY),
        (b"\x80\x02]q\x00h\x00a.", DEEP),
        (b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", DEEP),
        (b"c__builtin__\nbytes\n(I99999999999\ntR.", "is malformed"),
        (b"c__builtin__\nbytearray\n(I99999999999\ntR.", "found the global __builtin__.bytearray"),
        (b"\x80\x02\x8b\x02\x00\x00\x00\x01\x01.", "is malformed"),
        (b"\x80\x02]}X\x01\x00\x00\x00aK\x01sb.", "an object with a state"),
        (b"\x80\x02h\x05.", "is malformed"),
        (b"\x80\x02e.", "is malformed"),
        *((SCALAR % name, "is malformed") for name in (b"U999999999", b"S0", b"U0", b"f3")),
        (bytes(2**22 + 1), r"4,194,305 bytes, of at most 4,194,304"),
    ],
)
def test_what_no_ground_truth_holds_is_refused_in_a_short_sentence(
    tmp_path: Path, content: bytes, message: str
) -> None:
    assert len(refused(tmp_path / "gnd.pkl", content, message)) < len(f"{tmp_path}") + 250


def test_a_place_beyond_all_others_takes_no_memory(tmp_path: Path) -> None:
    for content in (b"\x80\x02]r\xff\xff\xff\x7f.", b"\x80\x02]p99999999999\n."):
        (tmp_path / "gnd.pkl").write_bytes(content)
        assert restricted_load(tmp_path / "gnd.pkl") == []


@PROTOCOLS
def test_values_that_are_shared_are_kept(tmp_path: Path, protocol: int) -> None:
    shared = [1, 2]
    content = {"a": shared, "b": [shared, shared], "c": [b"\xff", b""]}
    path = tmp_path / "plain.pkl"
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    assert restricted_load(path) == content


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.pkl, which cannot be read: No such file"):
        restricted_load(tmp_path / "no.pkl")
