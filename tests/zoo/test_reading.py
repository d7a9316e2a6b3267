"""Only regular files of a bounded size are read, whoever reads them: a pipe would be waited for."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from layerboard.benchmark.exported.arrays import read_archive, read_array
from layerboard.leaderboards.published.literature import read_published
from layerboard.leaderboards.records.checksum import file_digest, read_checked
from layerboard.leaderboards.records.items import read_items
from layerboard.tasks.datasets.reading.files import image_size, read_bytes
from layerboard.tasks.datasets.reading.labels import read_groups, read_label_table
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.zoo.errors import InputError
from layerboard.zoo.load import checkpoint
from layerboard.zoo.load.checkpoint import files_digest, read_weights
from layerboard.zoo.online import without_secrets
from layerboard.zoo.own.onnx_file import onnx_network
from layerboard.zoo.reading import read_as, read_regular
from layerboard.zoo.view.frames import frames_of

READERS: dict[str, Callable[[Path], object]] = {
    "labels": read_label_table,
    "groups": read_groups,
    "published": read_published,
    "JSON": lambda path: read_as(dict[str, object], path, read=read_bytes),
    "any file of a dataset": read_bytes,
    "header of an image": image_size,
    "mask": read_mask,
    "pictures": lambda path: frames_of(path, 3),
    "archive": lambda path: read_archive(path, ["features"]),
    "array": read_array,
    "mapped array": lambda path: read_array(path, mapped=True),
    "digest of weights": lambda path: files_digest([path]),
    "weights": lambda path: read_weights([path]),
    "JSON of a network": lambda path: checkpoint.read_network_json(path, dict[str, Any]),
    "ONNX": lambda path: onnx_network(f"onnx:{path}"),
    "records": read_checked,
    "digest": file_digest,
    "items": read_items,
}
OF_RECORDS = ("any file of a dataset", "records", "checksum", "digest")  # whose callers say more


@pytest.fixture(params=["pipe", "link to a pipe", "device", "video"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A path that would be waited for, or read for ever."""
    if request.param == "device":
        return Path("/dev/zero")
    pipe = tmp_path / ("a.mp4" if request.param == "video" else "a.csv")
    os.mkfifo(pipe)
    if request.param != "link to a pipe":
        return pipe
    (tmp_path / "link.csv").symlink_to(pipe)
    return tmp_path / "link.csv"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system")
@pytest.mark.parametrize("name", READERS)
def test_only_regular_files_are_read(name: str, endless: Path) -> None:
    error = OSError if name in OF_RECORDS else InputError
    with pytest.raises(error, match="it is a pipe, a device or a socket; save it as a regular file"):
        READERS[name](endless)


@dataclass(frozen=True)
class Pair:
    """What the tests ask of a file."""

    name: str
    count: int = 0


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b'{"name": "a", "more": {"b": [1]}}', Pair("a")),
        ('\ufeff{"name": "a", "count": 3}'.encode(), Pair("a", 3)),
        ('{"name": "\u00e4"}'.encode("utf-16"), Pair("\u00e4")),
        (b'{"count": 3}', "object missing required field name"),
        (b'{"name": 3}', "expected str, got int, at name"),
        (b'{"name": "a", "count": true}', "expected int, got bool, at count"),
        (b'["a", 3]', "expected object, got list"),
        (b"null", "expected object, got null"),
        (b"", "Expecting value: line 1"),
        (b'{"name": "a", "name": "b"}', "the key 'name' comes twice"),
        (b'{"name": "a", "more": ' + b"[" * 70 + b"]" * 70 + b"}", "it is nested too deeply"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"name": "a", "count": 1' + b"0" * 5000 + b"}", "Exceeds the limit"),
        (b'{"name": "\xff"}', "'utf-8' codec can't decode"),
    ],
)
def test_what_others_wrote_fits_a_schema_or_is_one_sentence(
    content: bytes, found: object, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_bytes(content)
    if isinstance(found, Pair):
        assert read_as(Pair, tmp_path / "a.json") == found
        return
    with pytest.raises(InputError) as caught:
        read_as(Pair, tmp_path / "a.json", "write it anew")
    assert f"a.json, which is malformed ({found}" in str(caught.value)
    assert str(caught.value).endswith("; write it anew")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("403 for https://me:secret@host/a?token=abcdefg (id 3)", "403 for https://host/a (id 3)"),
        ("Authorization: Bearer hf_abcdefgh", "Authorization: Bearer ..."),
        ("password=abcdefgh is wrong", "password=... is wrong"),
        ("the token hf_abcdefgh\n expired", "the token ... expired"),
    ],
)
def test_no_message_of_a_server_shows_secrets(message: str, shown: str) -> None:
    assert without_secrets(message) == shown


def test_a_file_that_memory_could_not_hold_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "labels.csv").open("wb") as file:
        file.truncate(2**40)  # which takes no room on the disk
    with pytest.raises(InputError, match="it has 1,099,511,627,776 bytes, of at most 2,147,483,648"):
        read_label_table(tmp_path / "labels.csv")
    (tmp_path / "few.csv").write_bytes(b"words")
    assert read_regular(tmp_path / "few.csv") == b"words"
