import re
import stat
import zipfile
from pathlib import Path

import pytest

from layerboard.tasks.datasets.catalogue import State, inspect_images
from layerboard.tasks.datasets.hub_spec import require_local
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.zoo.errors import InputError, MissingDataError
from tests.tasks.datasets.test_folder import pictures

CLASSES = ("cat", "dög")


def packed(path: Path, *, below: str = "") -> Path:
    """A .zip with three images in each of two class folders."""
    for name in CLASSES:
        pictures(path.parent / "source" / name, 3)
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((path.parent / "source").rglob("*.png")):
            archive.write(file, below + file.relative_to(path.parent / "source").as_posix())
        archive.writestr("__MACOSX/cat/._0.png", b"")
        archive.writestr(".DS_Store", b"")
    return path


@pytest.mark.parametrize("below", ["", "photos/", "a/photos/"])
def test_a_zip_is_read_as_its_folder(tmp_path: Path, below: str) -> None:
    path = packed(tmp_path / "photos.zip", below=below)
    cache = tmp_path / "cache"
    found = inspect_images(str(path), cache=cache)
    assert (found.name, found.state) == ("photos", State.COMPLETE)
    assert found.text.startswith("2 classes, 6 images; classes from folders; every")
    folder = Path(unpacked(str(path), cache))
    (folder / "cat" / "0.png").write_bytes(b"mark")
    assert unpacked(str(path), cache) == str(folder)
    assert (folder / "cat" / "0.png").read_bytes() == b"mark"
    assert folder.is_relative_to(cache)
    assert {each.name for each in tmp_path.iterdir()} == {"photos.zip", "source", "cache"}
    (tmp_path / "source" / "cat" / "9.png").write_bytes((tmp_path / "source" / "cat" / "1.png").read_bytes())
    assert unpacked(str(packed(path, below=below)), cache) != str(folder)


def written(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("../evil.png", b"")], "expected the name of a file below the dataset's folder"),
        ([("a/../../evil.png", b"")], "expected the name of a file below the dataset's folder"),
        ([("/evil.png", b"")], "expected the name of a file below the dataset's folder"),
        ([("a\\..\\evil.png", b"")], "expected the name of a file below the dataset's folder"),
        ([(link("a/b.png"), b"/etc/passwd")], "found the link or device 'a/b.png'; leave it out"),
        ([("a" * 300, b"")], "names of files of at most 255 bytes"),
        ([("a.png", b""), ("a.png/b.png", b"")], "cannot unpack"),
        ([(".hidden", b"")], "found no file"),
        ([("zeros.bmp", bytes(2**22))], "unpacks to 1 files of 0.0 GB, too much for images in 0.0 MB"),
    ],
)
def test_unsafe_archives_are_refused_and_write_nothing(
    tmp_path: Path,
    members: list[tuple[str | zipfile.ZipInfo, bytes]],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "in").mkdir()
    refuse_and_write_nothing(written(tmp_path / "in" / "x.zip", *members), words, monkeypatch)


def refuse_and_write_nothing(path: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive, alone in its folder, of which nothing may be unpacked."""
    monkeypatch.setattr("layerboard.tasks.datasets.reading.zipped.FREE", 2**21)
    with pytest.raises(InputError, match=words):
        unpacked(str(path), path.parent / "cache")
    assert not [each for each in path.parents[1].rglob("*") if each.is_file() and each != path]


def test_damaged_encrypted_and_other_files_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "photos.zip")
    content = bytearray(path.read_bytes())
    content[60] ^= 255  # within the first image
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot unpack .*photos.zip into .*"):
        unpacked(str(path), tmp_path / "cache")
    assert not [*(tmp_path / "cache").rglob("*.png")]
    encrypted = written(tmp_path / "e.zip", ("a.png", b"x"))
    content = bytearray(encrypted.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + place] |= 1
    encrypted.write_bytes(content)
    with pytest.raises(InputError, match="is encrypted; unpack it"):
        unpacked(str(encrypted), tmp_path / "cache")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (
            "s3://bucket/photos",
            r"found s3://bucket/photos; copy it with `aws s3 sync s3://bucket/photos FOLDER`",
        ),
        ("s3:/bucket/photos", r"aws s3 sync s3://bucket/photos FOLDER"),
        ("gs://bucket/photos", r"gcloud storage rsync -r gs://bucket/photos FOLDER"),
        (
            "https://host/photos.zip",
            r"download https://host/photos.zip and unpack it into FOLDER, and give --images",
        ),
        ("file:///photos", r"leave file:// out, and give"),
        ("memory://a/{000..003}.tar", r"download memory://a/\{000..003\}.tar and unpack it"),
        ("https://me:secret@host/photos", r"found https://host/photos; download"),
        ("https:/me:se/cr@et@host/photos", r"found https://host/photos; download"),
        ("https://token@host:80/photos@2?key=secret", r"found https://host:80/photos@2; download"),
        (f"https://host/a.zip?secret={'x' * 300}", r"found https://host/a.zip; download"),
        ("simplecache::ftp://me:secret@host/a.zip", r"found simplecache::ftp://host/a.zip; download"),
    ],
)
def test_addresses_of_other_machines_say_what_to_do(address: str, words: str) -> None:
    with pytest.raises(MissingDataError, match=words) as error:
        require_local(address, "--images")
    said = str(error.value)
    assert not {"secret", "token", "cr@et"} & {*re.split(r"[:/@?=]", said)}
    assert "cr@et" not in said
