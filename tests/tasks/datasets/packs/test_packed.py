"""Packs give what folders give, and say in one sentence what is wrong with them."""

import pickle
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from layerboard.tasks.datasets.base import FileSample, Sample, images_of
from layerboard.tasks.datasets.catalogue import DATASETS, State, inspect
from layerboard.tasks.datasets.imagenet import IMAGENET
from layerboard.tasks.datasets.packs.pack import END, Pack, read_shard
from layerboard.tasks.datasets.reading import files as storage
from layerboard.tasks.datasets.reading.files import data_root
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.datasets.spair import SPAIR_71K_TEST
from layerboard.zoo.errors import InputError, MissingDataError, UnreadableImageError
from tests.tasks.datasets.cases import told
from tests.tasks.datasets.conftest import NAMES, Packed


def _said(data: Path) -> dict[str, object]:
    """All that readers say of a data folder, without its place, with the pixels of images and masks."""
    read = {entry.name: entry.read(data) for entry in DATASETS if entry.name in NAMES}
    return {
        name: (
            told(each, data),
            [sample.open().tobytes() for sample in images_of(each)],
            [read_mask(Path(mask)).tobytes() for mask in re.findall(r"PosixPath\('(.*?)'\)", repr(each))],
        )
        for name, each in read.items()
    }


def test_readers_give_the_same_from_a_pack_as_from_a_folder(packed: Packed) -> None:
    found, expected = _said(data_root(packed.name)), _said(packed.data)
    for what, said in expected.items():
        assert found[what] == said, what
    facts = {pair.category: pair.facts for pair in SPAIR_71K_TEST.read(data_root(packed.name)).pairs}
    cat, dog = facts["cat"], facts["dog"]
    assert cat is not None
    assert dog is not None
    assert (cat.mistakable is None, dog.mistakable is None) == (False, True)


def test_check_says_the_same_of_both(packed: Packed) -> None:
    root = data_root(packed.name)
    for entry in DATASETS:
        found, expected = inspect(root, entry), inspect(packed.data, entry)
        assert found.state is expected.state
        assert (found.state is State.MISSING) == (entry.name not in NAMES)
        assert found.text == expected.text or found.state is State.MISSING  # which names the folder


def test_a_sample_alone_is_found_again_in_a_process_that_has_opened_nothing(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample: Sample = IMAGENET.read(data_root(packed.name)).val.samples[0]
    sent = pickle.dumps(sample)
    monkeypatch.setattr(storage, "_packs", {})
    again = pickle.loads(sent)
    assert len(sent) < 400
    assert again.open().tobytes() == sample.open().tobytes()
    assert again.signature() == sample.signature()


def test_threads_read_any_rows_at_once(packed: Packed) -> None:
    root = data_root(packed.name)
    files = [path.relative_to(packed.data) for path in packed.data.rglob("*") if path.is_file()]
    there = [path for path in files if storage.is_file(root / path)] * 3
    order = np.random.default_rng(0).permutation(len(there))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda index: storage.read_bytes(root / there[index]), order))
    assert len(there) > 150
    assert found == [(packed.data / there[index]).read_bytes() for index in order]
    assert not storage.is_file(root / "VOCdevkit/VOC2012/JPEGImages/none.jpg")


def test_a_signature_is_that_of_the_bytes(packed: Packed, own: Packed, tmp_path: Path) -> None:
    first, second = (IMAGENET.read(data_root(one.name)).val.samples[0] for one in (packed, own))
    assert first.signature() == second.signature()
    assert first.signature() != IMAGENET.read(packed.data).val.samples[0].signature()  # with the file's time


def _shard(packed: Packed, number: int = 0) -> Path:
    return sorted((packed.pack / "imagenet").glob("train-*"))[number]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda own: _shard(own).unlink(), r"\d+ shards .*/imagenet/train-\*.arrow, found \d+; fetch"),
        (lambda own: [each.unlink() for each in (own.pack / "imagenet").iterdir()], "shards in .*/imagenet"),
        (lambda own: _cut(own, b""), "train-00000-of-.*.arrow, which is damaged.*; fetch it again"),
        (lambda own: _cut(own, bytes(100)), "train-00000-of-.*.arrow, which is damaged: it is cut off"),
    ],
)
def test_a_pack_that_is_not_whole(own: Packed, change: Callable[[Packed], object], said: str) -> None:
    change(own)
    with pytest.raises(InputError, match=said):
        data_root(own.name)


def test_a_stream_that_is_cut_off_between_batches(tmp_path: Path) -> None:
    path = _stream(tmp_path / "s.arrow", {"file": STORED, "digest": DIGESTS})
    path.write_bytes(path.read_bytes()[: -len(END)])
    with pytest.raises(InputError, match="it is cut off"):
        read_shard(path)


def _cut(packed: Packed, end: bytes) -> None:
    """The first shard with another end in place of its last hundred bytes."""
    _shard(packed).write_bytes(_shard(packed).read_bytes()[:-100] + end)


def test_bytes_that_changed_are_found_where_they_are_read(own: Packed) -> None:
    root = data_root(own.name)
    sample = IMAGENET.read(root).train.samples[0]
    assert isinstance(sample, FileSample)
    content = bytearray(_shard(own).read_bytes())
    content[content.index((own.data / "imagenet" / sample.key).read_bytes()) + 50] ^= 1
    _shard(own).write_bytes(bytes(content))
    for readers in (root, data_root(own.name)):
        with pytest.raises(
            UnreadableImageError,
            match=r"digest [0-9a-f]{32} in its pack, found other bytes; fetch the pack again",
        ):
            IMAGENET.read(readers).train.samples[0].open()
    assert IMAGENET.read(root).train.samples[-1].open().size == (40, 32)


def test_names_that_are_no_pack(packed: Packed, tmp_path: Path) -> None:
    with pytest.raises(
        MissingDataError, match=rf"expected a folder with tables at {tmp_path}/none, which does"
    ):
        data_root(Path(f"hf:{tmp_path}/none"))
    for name in ("hf:a/b?label=c", f"hf:{tmp_path}!/b"):
        with pytest.raises(
            InputError, match=re.escape(f"--data takes hf:ID, hf:ID@REVISION or hf:FOLDER, found '{name}'")
        ):
            data_root(Path(name))
    with pytest.raises(InputError, match=r"an official layout is given without hf:"):
        data_root(Path(f"hf:{packed.data}"))


STORED = pa.array([{"bytes": b"abc", "path": "a"}, {"bytes": b"d", "path": "b"}])
DIGESTS = ["0" * 32] * 2


def _stream(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    table = pa.table(columns)
    with pa.ipc.new_stream(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"file": STORED}, "found a table of file; --images hf:FOLDER takes what `datasets` saved"),
        ({"file": STORED.field("bytes"), "digest": DIGESTS}, "which is damaged.*struct"),
        ({"file": STORED, "digest": ["0" * 32, None]}, "which is damaged.*its columns are not those"),
        ({"file": STORED, "digest": [1, 2]}, "which is damaged.*its columns are not those"),
    ],
)
def test_a_shard_of_other_columns_is_refused(tmp_path: Path, columns: dict[str, Any], said: str) -> None:
    path = _stream(tmp_path / "s.arrow", columns)
    with pytest.raises(InputError, match=f"expected a shard of a pack at .*{said}"):
        read_shard(path)


def test_a_forged_shard_is_refused_before_its_numbers_are_used(tmp_path: Path) -> None:
    path = _stream(tmp_path / "s.arrow", {"file": STORED, "digest": DIGESTS})
    assert read_shard(path)["bytes"].to_pylist() == [b"abc", b"d"]
    ends, beyond = np.array([0, 3, 4], "<i4").tobytes(), np.array([0, 2**30, 4], "<i4").tobytes()
    assert ends in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(ends, beyond))
    with pytest.raises(InputError, match=r"which is damaged.*offset"):
        read_shard(path)


def test_a_shard_that_unpacks_to_more_than_its_bytes_is_refused(tmp_path: Path) -> None:
    zeros = pa.array([{"bytes": bytes(10**6), "path": "a"}])
    path = _stream(tmp_path / "s.arrow", {"file": zeros, "digest": DIGESTS[:1]}, compression="zstd")
    with pytest.raises(InputError, match="its rows do not fit into it"):
        read_shard(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff" * 100])
def test_a_shard_of_another_format_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.arrow").write_bytes(content)
    with pytest.raises(InputError, match=r"which is damaged: .*; fetch it again"):
        read_shard(tmp_path / "s.arrow")


def test_folders_of_any_depth() -> None:
    deep = "/".join(["d"] * 5000)
    found = Pack({f"{deep}/a": 0, "d/b": 1, "c": 2}, None, None, digests=False)
    assert (found.row(f"{deep}/a"), found.row("d/b"), found.row("c"), found.row("d")) == (0, 1, 2, None)
    assert (found.folder("d"), found.folder("")) == ({"d": None, "b": 1}, {"d": None, "c": 2})
