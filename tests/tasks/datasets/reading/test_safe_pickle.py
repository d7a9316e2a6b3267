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


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_malicious_pickle_is_refused_and_not_executed(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "executed"
    path = tmp_path / "gnd.pkl"
    path.write_bytes(pickle.dumps({"gnd": [Malicious(f"touch {mark}")]}, protocol=protocol))
    with pytest.raises(InputError, match=r"found the global (posix|nt)\.system, which was not executed"):
        restricted_load(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    "payload",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct.__globals__\n.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.tofile__\x93.",
    ],
)
def test_other_globals_are_refused(tmp_path: Path, payload: bytes) -> None:
    (tmp_path / "bad.pkl").write_bytes(payload)
    with pytest.raises(InputError, match=r"found the global|is malformed"):
        restricted_load(tmp_path / "bad.pkl")


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


OBJECTS = np.dtype(object)


@pytest.mark.parametrize(
    "forged",
    [
        Forged("ndarray", ((1,), OBJECTS, b"12345678")),
        Forged("buffer", (b"12345678", OBJECTS, (1,), "C")),
        Forged("scalar", (OBJECTS, b"12345678")),
        Forged("array", (np.ndarray, (0,), b"b"), (1, (1,), OBJECTS, False, b"12345678")),
        Forged("array", (np.ndarray, (0,), b"b"), (1, (10**9,), np.dtype("i8"), False, b"12345678")),
        Forged("dtype", ("V8", False, True)),
        Forged("scalar", (Forged("dtype", ("i8", False, True), (3, "?", *[None] * 3, -1, -1, 0)), bytes(8))),
        Forged("array", (np.ndarray, (0,), b"b"), (1, (1,), 3, False, b"12345678")),
    ],
)
def test_forged_arrays_are_refused(tmp_path: Path, forged: Forged) -> None:
    (tmp_path / "forged.pkl").write_bytes(pickle.dumps([forged]))
    with pytest.raises(InputError, match="is malformed"):
        restricted_load(tmp_path / "forged.pkl")


def test_a_damaged_file_is_a_short_sentence(tmp_path: Path) -> None:
    path = tmp_path / "long.pkl"
    path.write_bytes(b"F" + b"x" * 5000 + b"\n.")
    with pytest.raises(InputError, match="is malformed") as caught:
        restricted_load(path)
    assert len(str(caught.value)) < len(str(path)) + 250


@pytest.mark.parametrize("content", [b"", b"not a pickle", pickle.dumps([1, 2, 3])[:-3], b"\x80\x05."])
def test_damaged_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cut.pkl").write_bytes(content)
    with pytest.raises(InputError, match=r"cut\.pkl, which is malformed"):
        restricted_load(tmp_path / "cut.pkl")


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


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("levels", [28, 40])
def test_exponential_nesting_is_refused(
    tmp_path: Path, levels: int, kind: type[list[object]] | type[tuple[object, ...]], protocol: int
) -> None:
    path = tmp_path / "gnd.pkl"
    path.write_bytes(pickle.dumps({"gnd": [nested(levels, kind)]}, protocol=protocol))
    with pytest.raises(InputError, match=r"is malformed \(.*(more than 1,000,000 values|nested too deeply)"):
        restricted_load(path)


def test_key_that_takes_for_ever_to_hash_is_refused(tmp_path: Path) -> None:
    key = pickle.dumps(nested(30, tuple), protocol=2)
    (tmp_path / "gnd.pkl").write_bytes(key[:2] + b"}" + key[2:-1] + b"K\x01s.")
    with pytest.raises(InputError, match="keys that are no text"):
        restricted_load(tmp_path / "gnd.pkl")


MERSENNE = 2**61 - 1  # whole numbers have it as their modulus when they are hashed


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({number * MERSENNE: 0 for number in range(100)}, "keys that are no text"),
        ({1: 0}, "keys that are no text"),
        ({(number, 0): 0 for number in range(100)}, "keys that are no text"),
        ({number * MERSENNE for number in range(100)}, r"found the global \w+.set|is malformed"),
        (frozenset({(number, 0) for number in range(100)}), r"found the global \w+.frozenset|is malformed"),
        ([MERSENNE * 2**9], "a number of more than 64 bits"),
    ],
)
def test_keys_that_may_collide_are_refused(
    tmp_path: Path, content: object, message: str, protocol: int
) -> None:
    (tmp_path / "gnd.pkl").write_bytes(pickle.dumps({"gnd": content}, protocol=protocol))
    with pytest.raises(InputError, match=message):
        restricted_load(tmp_path / "gnd.pkl")


def deep(levels: int) -> bytes:
    return b"\x80\x02" + b"]" * levels + b"a" * (levels - 1) + b"."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (from_above(60), "more than 1,000,000 values"),
        (b"\x80\x02]q\x00h\x00a.", "nested too deeply"),
        (deep(100_000), "nested too deeply"),
        (b"c__builtin__\nbytes\n(I99999999999\ntR.", "is malformed"),
        (b"c__builtin__\nbytearray\n(I99999999999\ntR.", "found the global __builtin__.bytearray"),
        (b"\x80\x02\x8b\x02\x00\x00\x00\x01\x01.", "is malformed"),
        (b"\x80\x02]}X\x01\x00\x00\x00aK\x01sb.", "an object with a state"),
        (b"\x80\x02h\x05.", "is malformed"),
        (b"\x80\x02e.", "is malformed"),
    ],
)
def test_what_no_ground_truth_holds_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "gnd.pkl").write_bytes(content)
    with pytest.raises(InputError, match=message):
        restricted_load(tmp_path / "gnd.pkl")


def test_a_place_beyond_all_others_takes_no_memory(tmp_path: Path) -> None:
    for content in (b"\x80\x02]r\xff\xff\xff\x7f.", b"\x80\x02]p99999999999\n."):
        (tmp_path / "gnd.pkl").write_bytes(content)
        assert restricted_load(tmp_path / "gnd.pkl") == []


def test_arrays_of_the_same_bytes_again_and_again_are_refused(tmp_path: Path) -> None:
    array, content = np.zeros(10**6, np.uint8), bytes(10**6)
    state = (1, array.shape, array.dtype, False, content)
    arrays = [Forged("array", (np.ndarray, (0,), b"b"), state) for _ in range(5)]
    (tmp_path / "gnd.pkl").write_bytes(pickle.dumps(arrays))
    with pytest.raises(InputError, match=r"arrays of more than 4,194,304 bytes"):
        restricted_load(tmp_path / "gnd.pkl")


def test_lists_are_not_copied(tmp_path: Path) -> None:
    copies = [Forged("ndarray", ([0] * 1000,))]
    (tmp_path / "gnd.pkl").write_bytes(pickle.dumps(copies))
    with pytest.raises(InputError, match=r"is malformed"):
        restricted_load(tmp_path / "gnd.pkl")


@pytest.mark.parametrize("name", ["U999999999", "S0", "U0", "f3"])
def test_types_that_numpy_does_not_have_are_refused(tmp_path: Path, name: str) -> None:
    content = b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'%s'\ntRS'abcdefgh'\ntR." % name.encode()
    (tmp_path / "gnd.pkl").write_bytes(content)
    with pytest.raises(InputError, match=r"is malformed"):
        restricted_load(tmp_path / "gnd.pkl")


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_values_that_are_shared_are_kept(tmp_path: Path, protocol: int) -> None:
    shared = [1, 2]
    content = {"a": shared, "b": [shared, shared], "c": [b"\xff", b""]}
    path = tmp_path / "plain.pkl"
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    assert restricted_load(path) == content


def test_large_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "gnd.pkl").open("wb") as stream:
        stream.truncate(2**22 + 1)
    with pytest.raises(InputError, match=r"4,194,305 bytes, of at most 4,194,304"):
        restricted_load(tmp_path / "gnd.pkl")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.pkl cannot be read: No such file"):
        restricted_load(tmp_path / "no.pkl")
