import zipfile

import numpy as np
import pytest

from layerboard.benchmark.exported.arrays import as_floats, read_archive, read_array
from layerboard.leaderboards.records.arrays import read_arrays
from layerboard.zoo.errors import InputError


def test_a_missing_file_and_a_folder(tmp_path):
    for path, words in ((tmp_path / "none.npz", "No such file"), (tmp_path, "Is a directory")):
        for read in (read_array, lambda path: read_archive(path, ["a"])):
            with pytest.raises(InputError, match=words):
                read(path)


def test_an_archive_and_an_array_are_told_apart(tmp_path):
    np.save(tmp_path / "one.npy", np.ones(3))
    np.savez(tmp_path / "many.npz", a=np.ones(3), b=np.ones(2))
    with pytest.raises(InputError, match=r"found a single array; write it with np\.savez"):
        read_archive(tmp_path / "one.npy", ["a"])
    with pytest.raises(InputError, match=r"found an archive of a, b; write it with np\.save"):
        read_array(tmp_path / "many.npz")
    assert list(read_archive(tmp_path / "many.npz", ["b"])["b"]) == [1, 1]


@pytest.mark.parametrize("mapped", [False, True])
def test_objects_are_never_unpickled(tmp_path, mapped):
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="found Python objects"):
        read_array(tmp_path / "objects.npy", mapped=mapped)


@pytest.mark.parametrize("mapped", [False, True])
def test_damaged_files(tmp_path, mapped):
    np.savez(tmp_path / "many.npz", a=np.arange(1000.0))
    content = (tmp_path / "many.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    (tmp_path / "flipped.npz").write_bytes(content[:2000] + b"\x55\xaa" + content[2002:])
    for name in ("cut.npz", "flipped.npz"):
        with pytest.raises(InputError, match="is damaged"):
            read_archive(tmp_path / name, ["a"])
    np.save(tmp_path / "whole.npy", np.arange(1000.0))
    content = (tmp_path / "whole.npy").read_bytes()
    for name, part in (("cut.npy", content[:3000]), ("empty.npy", b""), ("text.npy", b"1, 2, 3")):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(InputError, match="file of numpy"):
            read_array(tmp_path / name, mapped=mapped)


def npy(shape, values=8):
    """An .npy file of a header and so many numbers, whatever its header says."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    padded = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + bytes(8 * values)


SHAPES = (f"({10**14},)", f"({10**30},)", f"({2**62}, 8)", "(-1,)", "('a',)", "(" * 300 + ")" * 300, "((8,)")


@pytest.mark.parametrize("shape", SHAPES)
def test_headers_that_promise_too_much(tmp_path, shape):
    (tmp_path / "one.npy").write_bytes(npy(shape))
    for mapped in (False, True):
        with pytest.raises(InputError, match=r"one\.npy is damaged"):
            read_array(tmp_path / "one.npy", mapped=mapped)
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        archive.writestr("a.npy", npy(shape))
    with pytest.raises(InputError, match=r"array a of .*many\.npz is damaged"):
        read_archive(tmp_path / "many.npz", ["a"])


@pytest.mark.parametrize("name", ["a", "a.npy", "a.txt"])
def test_members_of_another_kind(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        archive.writestr(name, "1, 2, 3")
    with pytest.raises(InputError, match=r"many\.npz is damaged: it is no .npy file; export it again"):
        read_archive(tmp_path / "many.npz", [name.removesuffix(".npy")])


@pytest.mark.parametrize(
    ("offset", "value", "words"), [(8, 1, "encrypted"), (10, 95, "compression method is not supported")]
)
def test_archives_that_zipfile_cannot_read(tmp_path, offset, value, words):
    """Flags and method of the member, in the directory of the archive and before its content."""
    path = tmp_path / "many.npz"
    np.savez(path, a=np.ones(3))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + offset] = value
    content[content.index(b"PK\x03\x04") + offset - 2] = value
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"array a of .*many\.npz is damaged: .*{words}"):
        read_archive(path, ["a"])


def test_numbers_of_all_types_become_native_floats():
    for kind in ("i1", "u2", ">i4", "f2", ">f4", "f4"):
        found = as_floats(np.arange(6).reshape(2, 3).astype(kind), "x", "[n dim]")
        assert found.dtype == np.float32
        assert found.dtype.isnative
        assert found.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert as_floats(np.ones((2, 2)), "x", "[n dim]").dtype == np.float64
    assert as_floats(np.ones((2, 2), np.float32), "x", "[n dim]", wide=True).dtype == np.float64
    with pytest.raises(InputError, match=r"expected x to have the shape \[n \.\.\.\], found \[4\]"):
        as_floats(np.ones(4), "x", "[n ...]")
    with pytest.raises(InputError, match="found the type bool"):
        as_floats(np.ones((2, 2), bool), "x", "[n dim]")


def test_an_array_of_far_more_bytes_than_are_stored_is_refused_unread(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(1000))
    content = bytearray((tmp_path / "bomb.npz").read_bytes())
    said = content.index(b"PK\x01\x02") + 24  # its bytes, in the directory at the end
    content[said : said + 4] = (3 << 30).to_bytes(4, "little")
    (tmp_path / "bomb.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.npy unpacks from .* to 3,221,225,472, more than 100 times"):
        read_archive(tmp_path / "bomb.npz", ["a"])
    with pytest.raises(ValueError, match=r"more than 100 times"):
        read_arrays(tmp_path / "bomb.npz")
    np.savez_compressed(tmp_path / "small.npz", a=np.zeros(1_000_000))
    assert read_archive(tmp_path / "small.npz", ["a"])["a"].size == 1_000_000
