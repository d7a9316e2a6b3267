"""Shards of WebDataset, and folders in .tar files."""

import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from layerboard.benchmark.forms.parsers import images
from layerboard.tasks.datasets.base import Data
from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.classes import Unlabelled
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.tasks.datasets.reading.labels import AS_IT_IS, Labelling
from layerboard.tasks.datasets.reading.webdataset import expanded
from layerboard.zoo.errors import InputError
from tests.tasks.datasets.reading.test_zipped import refuse_and_write_nothing

Files = Mapping[str, bytes | str]


def png(shade: int) -> bytes:
    buffer = BytesIO()
    Image.new("RGB", (6, 5), (shade, 0, 0)).save(buffer, "png")
    return buffer.getvalue()


def tar(path: Path, files: Files, **changes: object) -> Path:
    """A .tar with files; ``changes`` are attributes of the last one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for number, (name, content) in enumerate(files.items()):
            content = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in changes.items() if number == len(files) - 1 else ():
                setattr(info, key, value)
            archive.addfile(info, BytesIO(content))
    return path


def samples(first: int, ending: str = "cls", content: str = "{}") -> dict[str, bytes | str]:
    """Three images of each of two classes, and files that say the class."""
    files: dict[str, bytes | str] = {}
    for number in range(first, first + 6):
        files[f"{number:05d}.png"] = png(3 * number)
        files[f"{number:05d}.{ending}"] = content.replace("{}", "oak" if number % 2 else "elm")
    return files


def read(location: object, cache: Path, labelling: Labelling = AS_IT_IS) -> Data:
    (text,) = images(location)
    return read_own(unpacked(text, cache), labelling)


def said(data: Data) -> dict[str, str]:
    return {key: f"{split} {label}".strip() for key, label, _, split in data.described()}


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("cls", "{}\n"),
        ("txt", "{}"),
        ("json", '{"label": "{}", "file_name": "elsewhere.jpg", "nested": {"a": [1]}}'),
        ("json", '"{}"'),
        ("json", '{"class_id": "{}"}'),
        ("cls.txt", "{}\n"),
    ],
)
def test_shards_are_one_dataset_with_the_classes_that_their_samples_say(
    tmp_path: Path, ending: str, content: str
) -> None:
    for number in range(2):
        tar(tmp_path / f"in/photos-{number:03d}.tar", samples(10 * number, ending, content))
    shards = [str(path) for path in sorted((tmp_path / "in").glob("*.tar"))]
    pattern = f"{tmp_path}/in/photos-{{000..001}}.tar"
    every = [read(each, tmp_path / "cache") for each in (pattern, shards, f"{tmp_path}/in/photos-*.tar")]
    every.append(read(tmp_path / "in", tmp_path / "cache"))
    assert [data.name for data in every] == ["photos"] * 3 + ["in"]
    for data in every:
        labels = said(data)
        assert {*labels} == {f"{number:05d}.png" for number in (*range(6), *range(10, 16))}
        assert (labels["00001.png"], labels["00012.png"]) == ("oak", "elm")
    folder = Path(unpacked(pattern, tmp_path / "cache"))
    assert {*(tmp_path / "cache").iterdir()} == {tmp_path / "cache" / "images"}
    assert {path.suffix for path in folder.iterdir()} == {".png", ".jsonl"}
    (folder / "00001.png").write_bytes(b"mark")
    assert (Path(unpacked(pattern, tmp_path / "cache")) / "00001.png").read_bytes() == b"mark"
    tar(tmp_path / "in/photos-001.tar", samples(20, ending, content))
    assert "00020.png" in {path.name for path in Path(unpacked(pattern, tmp_path / "cache")).iterdir()}


def test_splits_are_said_by_shards_or_by_folders_in_them(tmp_path: Path) -> None:
    tar(tmp_path / "a/set-train-0.tar", samples(0))
    tar(tmp_path / "a/set-train-1.tar", samples(0))  # names that each shard begins anew
    tar(tmp_path / "a/set-val-0.tar", samples(0))
    data = read([f"{tmp_path}/a/set-{name}.tar" for name in ("train-0", "train-1", "val-0")], tmp_path / "c")
    assert data.name == "set"
    assert len(said(data)) == 18
    assert said(data)["train/set-train-1/00001.png"] == "train oak"
    assert said(data)["val/set-val-0/00000.png"] == "val elm"
    folders = {
        f"./{split}/{name}": content for split in ("train", "val") for name, content in samples(0).items()
    }
    data = read(tar(tmp_path / "whole.tar", folders), tmp_path / "c")
    assert (data.name, said(data)["val/00003.png"]) == ("whole", "val oak")
    assert said(read(tmp_path / "a/set-val-0.tar", tmp_path / "c"))["00000.png"] == "elm"
    tar(tmp_path / "a/further.tar", samples(0))
    with pytest.raises(
        InputError, match=r"to say train or val, as set-train-0.tar does, found .*further.tar"
    ):
        read(tmp_path / "a", tmp_path / "c")


def test_files_that_come_late_or_apart_are_read(tmp_path: Path) -> None:
    images = {"00006.PNG": png(6), "00007.Png": png(7), "__8.png": png(8)}
    late = {**images, "00006.json": '{"Label": 3}', "00007.txt": "oak", "__8.cls": "elm"}
    labels = said(read(tar(tmp_path / "late.tar", samples(0) | late), tmp_path / "c"))
    assert [labels[name] for name in ("00005.png", *[*images][:3])] == ["oak", "3", "oak", "elm"]


def test_shards_of_one_name_in_two_folders(tmp_path: Path) -> None:
    for part in "ab":
        tar(tmp_path / f"in/{part}/0.tar", samples(0))
    labels = said(read(tmp_path / "in", tmp_path / "c"))
    assert len(labels) == 12
    assert sorted(labels.values()) == ["elm"] * 6 + ["oak"] * 6


def test_a_tar_of_folders_numbers_and_captions(tmp_path: Path) -> None:
    folders = {f"photos/{name}/{number}.v2.png": png(9 * number) for name in "ab" for number in range(3)}
    data = read(tar(tmp_path / "x.tar", {**folders, "photos/._a": b""}), tmp_path / "c")
    assert (data.name, said(data)["b/2.v2.png"]) == ("photos", "b")
    first = {"00000.txt": "a cat", "00000.seg.npy": b"0"}
    aged = first | samples(0, "json", '{"age": 3.5, "url": "{}"}')
    path = tar(tmp_path / "aged.tar", aged)
    assert isinstance(read(path, tmp_path / "c"), Unlabelled)
    assert "1 other files" not in str(read(path, tmp_path / "c").coverage)
    assert read(path, tmp_path / "c", Labelling(target="number")).role == "numbers"


@pytest.mark.parametrize(
    ("files", "changes", "words"),
    [
        ({"../evil.png": b""}, {}, "expected the name of a file below the dataset's folder"),
        ({"/evil.png": b""}, {}, "expected the name of a file below the dataset's folder"),
        ({"a/b.png": b""}, {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "found the link or device"),
        ({"a/b.png": b""}, {"type": tarfile.LNKTYPE, "linkname": "a.png"}, "found the link or device"),
        ({"a/b.png": b""}, {"type": tarfile.CHRTYPE}, "found the link or device"),
        ({"a.png": b"", "./a.png": b""}, {}, "each file once in .*x.tar, found 'a.png' twice"),
        (
            {"a.png": png(1), "a.mask.png": png(2), "a.cls": "1"},
            {},
            "one image a sample in .*a.png and a.mask.png",
        ),
        ({"a.npy": b"", "a.cls": "1"}, {}, "expected images in .*x.tar, found a.cls, a.npy; give another"),
        ({".hidden.png": b""}, {}, "expected images in .*x.tar, found no file"),
        ({"a.png": png(1), "a.cls": b"\xff"}, {}, "cannot read a.cls in .*x.tar"),
        ({"a.png": png(1), "a.json": "[" * 99_999}, {}, "cannot read a.json in .*x.tar"),
        (
            {"a.png": png(1), "a.cls": bytes(2**20 + 1)},
            {},
            "images and short texts in .*, found a.cls of 1,048,577 ",
        ),
        ({"a.png": png(1), "a.npy.gz": b""}, {}, "images and short texts in .*, found a.npy.gz of 0 bytes"),
        ({"a.1.png": png(1), "a.2.png": png(2)}, {}, "one image a sample .*a.1.png and a.2.png.* take a dot"),
        ({"a.png": png(1), "a.png/b.png": png(1)}, {}, "cannot unpack .*x.tar into"),
        ({"zeros.bmp": bytes(2**22)}, {}, "unpacks to 1 files of 0.0 GB, too much for images in"),
    ],
)
def test_unsafe_and_mixed_archives_are_refused_and_write_nothing(
    tmp_path: Path, files: Files, changes: dict[str, object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layerboard.tasks.datasets.reading.zipped.RATIO", 0.5)
    refuse_and_write_nothing(tar(tmp_path / "in/x.tar", files, **changes), words, monkeypatch)


def test_damaged_archives_and_wrong_patterns_are_refused(tmp_path: Path) -> None:
    whole = tar(tmp_path / "whole.tar", samples(0)).read_bytes()
    path = tmp_path / "x.tar"
    huge = tarfile.TarInfo("x")
    huge.type, huge.size = tarfile.XHDTYPE, 2**40
    for content, words in (
        (b"", "empty file"),
        (b"no tar" * 200, "invalid header"),
        (whole[:700], "unexpected end of data"),
        (whole[:3072], "damaged or cut off after 3 files"),
        (whole[:1024] + b"x" + whole[1025:], "damaged or cut off after 1 files"),
        (whole + whole, "another archive follows"),
        (huge.tobuf(tarfile.GNU_FORMAT) + whole, "memory error"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"cannot unpack .*x.tar into .*: .*{words}"):
            unpacked(str(path), tmp_path / "cache")
    assert not [*(tmp_path / "cache").rglob("*.png")]
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8b")
    for location, words in (
        ("whole-{0..2}.tar", r"expected the file .*whole-0.tar, which does not exist"),
        ("whole-{2..0}.tar", "found none; in braces is first..last"),
        ("wholes-*.tar", "expected .tar files of .*, found none"),
        ("{0..999}-{0..999}.tar", "expected at most 100,000 shards"),
        ("{0..99999999999}.tar", "expected at most 100,000 shards"),
        ("x.tar.gz", "a folder, a .zip or a .tar for --images, found the file .*; unpack"),
    ):
        with pytest.raises(InputError, match=words):
            unpacked(f"{tmp_path}/{location}", tmp_path / "cache")
    for number in range(2):
        tar(tmp_path / f"two/{number}.tar", {"1.png": png(1)})
    with pytest.raises(InputError, match=r"found 1.png in several shards; rename it"):
        unpacked(f"{tmp_path}/two", tmp_path / "cache")


def test_which_archives_are_one_dataset() -> None:
    assert images(["a/s-00.tar", "photos", "a/s-01.tar"]) == ("a/s-0{0,1}.tar", "photos")
    assert expanded("a/s-0{0,1}.tar") == ["a/s-00.tar", "a/s-01.tar"]
    assert expanded("s-{08..10}-{a,b}.tar")[1:3] == ["s-08-b.tar", "s-09-a.tar"]
    apart = ("a/cats.tar", "a/dogs.tar", "b/cats.tar", "a/1.zip", "a/2.zip")
    assert images(list(apart)) == apart
