"""Packs are written reproducibly, never over anything, and go on where they were interrupted."""

import os
from pathlib import Path

import datasets
import pytest

from layerboard.tasks.datasets import write_packs as writing
from layerboard.tasks.datasets.catalogue import DATASETS
from layerboard.tasks.datasets.davis import DAVIS_2017_VAL
from layerboard.tasks.datasets.imagenet import IMAGENET
from layerboard.tasks.datasets.packs import shards
from layerboard.tasks.datasets.packs.manifest import CARD, MANIFEST, read_pack_manifest
from layerboard.tasks.datasets.packs.shards import PackedFile, read_shard, write_shard
from layerboard.tasks.datasets.write_packs import DatasetPlan, plan_dataset, require_room, write_dataset
from layerboard.zoo.atomic import file_sha256
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.tasks.datasets.conftest import NAMES, SMALL, Packed, pack
from tests.tasks.datasets.helpers import copy_shuffled


def _files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): file_sha256(path) for path in root.rglob("*") if path.is_file()}


def test_equal_files_give_an_equal_pack(packed: Packed, tmp_path: Path) -> None:
    data = copy_shuffled(packed.data, tmp_path / "data")
    for path in data.rglob("*"):
        os.utime(path, (1, 1))
    assert _files(pack(data, tmp_path / "pack", *NAMES)) == _files(packed.pack)


def test_the_manifest_counts_what_is_there(packed: Packed, tmp_path: Path) -> None:
    manifest = read_pack_manifest(packed.pack)
    assert tuple(manifest) == tuple(sorted(NAMES))
    for name, dataset in manifest.items():
        stored = [read_shard(packed.pack / shard.name) for shard in dataset.shards]
        paths = [path for shard in stored for path in shard.paths]
        assert dataset.files == len(paths)
        assert dataset.bytes == sum((packed.data / path).stat().st_size for path in paths)
        assert [one.bytes for one in dataset.shards] == [one.file.stat().st_size for one in stored], name
    davis = pack(packed.data, tmp_path / "whole", "davis-2017-val", largest=10**9)
    (one,) = read_pack_manifest(davis).values()
    assert len(one.shards) == 1 < len(manifest["davis-2017-val"].shards)
    assert one.digest == manifest["davis-2017-val"].digest  # whatever the shards


def test_groups_are_small_and_each_row_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "GROUP_ROWS", 3)
    monkeypatch.setattr(shards, "GROUP_BYTES", 1000)
    sizes = [0, 1, 2000, 5, 999, 3, 4, 70_000, 0, 1]
    rows = []
    for number, size in enumerate(sizes):
        (tmp_path / str(number)).write_bytes(os.urandom(size))
        rows.append(PackedFile(str(number), size))
    write_shard(tmp_path / "s.arrow", tmp_path, rows)
    shard = read_shard(tmp_path / "s.arrow")
    assert shard.contents.num_chunks == 4
    assert shard.sizes == sizes
    for number, content in enumerate(shard.contents):
        assert content.as_py() == (tmp_path / str(number)).read_bytes()


def test_datasets_reads_a_pack_by_its_card(packed: Packed) -> None:
    images = datasets.load_dataset(str(packed.pack), "imagenet")
    assert {split: table.num_rows for split, table in images.items()} == {"train": 12, "validation": 6}
    row = images["validation"][0]
    assert row["image"].size == (40, 32)
    assert images["validation"].features["label"].int2str(row["label"]) == "n00000001"
    lists = datasets.load_dataset(str(packed.pack), "davis-2017-val", split="files")
    assert "DAVIS/ImageSets/2017/val.txt" in [file["path"] for file in lists["file"]]


def test_an_interrupted_writing_goes_on(
    packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, plan = tmp_path / "pack", plan_dataset(packed.data, DAVIS_2017_VAL, SMALL)
    done = 0

    def stop(amount: float) -> None:
        nonlocal done
        done += 1
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_dataset(packed.data, target, plan, stop)
    assert len(list(target.rglob("*.arrow"))) == 2
    assert not (target / MANIFEST).exists()
    require_room(target, ["davis-2017-val"])
    written = []

    def count(file: Path, *rest: object) -> None:
        written.append(file)
        write_shard(file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(writing, "write_shard", count)
    write_dataset(packed.data, target, plan, lambda amount: None)
    assert len(written) == len(plan.shards) - 2
    first = next(iter(plan.shards))
    assert _files(target)[first] == _files(packed.pack)[first]


def test_a_shard_of_files_that_changed_since_is_written_again(tmp_path: Path) -> None:
    fakes.write_fake_imagenet(tmp_path / "data")
    plan = plan_dataset(tmp_path / "data", IMAGENET, SMALL)
    name, files = next(iter(plan.shards.items()))
    write_shard(tmp_path / "pack" / name, tmp_path / "data", files, plan.classes)
    image = tmp_path / "data" / files[0].path
    content = image.read_bytes()
    image.write_bytes(content[:-1] + b"?")
    later = (tmp_path / "pack" / name).stat().st_mtime_ns + 10**9
    os.utime(image, ns=(later, later))
    write_dataset(tmp_path / "data", tmp_path / "pack", plan, lambda amount: None)
    digests = read_shard(tmp_path / "pack" / name).digests
    assert digests[0].as_py() == shards.content_digest(content[:-1] + b"?")


def test_what_an_interrupted_writing_of_other_shards_left_is_named(packed: Packed, tmp_path: Path) -> None:
    plan = plan_dataset(packed.data, DAVIS_2017_VAL, SMALL)
    ((name, files),) = plan_dataset(packed.data, DAVIS_2017_VAL, 10**9).shards.items()
    write_shard(tmp_path / name, packed.data, files)
    with pytest.raises(
        InputError, match=r"expected the \d+ shards of davis-2017-val in .*, found files-00000-of-00001"
    ):
        write_dataset(packed.data, tmp_path, plan, lambda amount: None)


def test_nothing_is_written_over(packed: Packed, tmp_path: Path) -> None:
    require_room(packed.pack, ["voc-2012-aug-val"])
    assert tuple(read_pack_manifest(packed.pack)) == tuple(sorted(NAMES))
    for other in (plan_dataset(packed.data, DAVIS_2017_VAL, 10**9), _changed(tmp_path / "empty" / "data")):
        with pytest.raises(
            InputError, match=r"has davis-2017-val already, of other files .*, which is not written over; "
        ):
            write_dataset(packed.data, packed.pack, other, lambda amount: None)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"expected a new folder, or a pack, at .*, found empty in it"):
        require_room(tmp_path, ["davis-2017-val"])
    with pytest.raises(InputError, match=r"expected a folder for the pack at .*, found a file"):
        require_room(tmp_path / "file", ["davis-2017-val"])


def _changed(data: Path) -> DatasetPlan:
    """Videos that are no longer those of the pack."""
    fakes.write_fake_davis(data)
    image = next(data.rglob("*.jpg"))
    image.write_bytes(image.read_bytes() + b"?")
    return plan_dataset(data, DAVIS_2017_VAL, SMALL)


def test_a_card_of_ones_own_stays(packed: Packed, tmp_path: Path) -> None:
    pack(packed.data, tmp_path, "davis-2017-val")
    assert "config_name: davis-2017-val" in (tmp_path / CARD).read_text()
    pack(packed.data, tmp_path, "spair-71k-test")
    assert "config_name: spair-71k-test" in (tmp_path / CARD).read_text()
    (tmp_path / CARD).write_text("mine")
    pack(packed.data, tmp_path, "coco-val2017")
    assert (tmp_path / CARD).read_text() == "mine"
    assert len(read_pack_manifest(tmp_path)) == 3


def test_a_dataset_that_changes_while_it_is_packed_is_not_in_the_pack(tmp_path: Path) -> None:
    fakes.write_fake_imagenet(tmp_path / "data")
    entry = next(one for one in DATASETS if one.name == "imagenet")
    plan = plan_dataset(tmp_path / "data", entry, SMALL)
    image = tmp_path / "data" / [*plan.shards.values()][-1][-1].path
    image.write_bytes(image.read_bytes() + b"?")
    with pytest.raises(InputError, match=r"changed from [\d,]+ to [\d,]+ bytes; pack again"):
        write_dataset(tmp_path / "data", tmp_path / "pack", plan, lambda amount: None)
    image.unlink()
    with pytest.raises(InputError, match=r"cannot read .*JPEG: No such file"):
        write_dataset(tmp_path / "data", tmp_path / "pack", plan, lambda amount: None)
    assert read_pack_manifest(tmp_path / "pack") == {}
