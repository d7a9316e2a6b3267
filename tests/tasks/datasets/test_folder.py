import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.datasets.folder import read_folder, split_names
from tests.fakes import write_fake_class_folders
from tests.tasks.datasets.helpers import copy_shuffled, keys
from zoo.errors import InputError


@given(st.sets(st.text(min_size=1, max_size=8), min_size=2, max_size=40))
def test_split_is_a_partition_with_a_fifth_of_queries(names: set[str]) -> None:
    bank, queries = split_names(sorted(names))
    assert sorted(bank + queries) == sorted(names)
    assert bank
    assert len(queries) == max(1, round(len(names) / 5))
    assert split_names(sorted(names, reverse=True)) == (bank, queries)


def test_split_is_the_same_for_ever() -> None:
    assert split_names([f"{index}.jpg" for index in range(10)])[1] == ["1.jpg", "7.jpg"]


def test_unsplit_folder(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path / "birds", classes=3, images=10)
    dataset = read_folder(tmp_path / "birds")
    assert dataset.name == "birds"
    assert (len(dataset.train.samples), len(dataset.val.samples)) == (24, 6)
    assert sorted(set(dataset.val.labels)) == [0, 1, 2]
    assert not dataset.coverage.partial
    assert str(dataset.coverage) == "3 classes, 24 train images, 6 val images"
    assert not set(keys(dataset.train.samples)) & set(keys(dataset.val.samples))
    copy_shuffled(tmp_path / "birds", tmp_path / "again")
    assert keys(read_folder(tmp_path / "again").val.samples) == keys(dataset.val.samples)


@pytest.mark.parametrize("split", ["val", "test"])
def test_given_split_is_used(tmp_path: Path, split: str) -> None:
    write_fake_class_folders(tmp_path / "train", images=3)
    write_fake_class_folders(tmp_path / split, classes=2, images=1)
    dataset = read_folder(tmp_path)
    assert len(dataset.train.samples) == 9
    assert keys(dataset.val.samples) == [f"{split}/n0000000{i}/n0000000{i}_0.JPEG" for i in (1, 2)]


def test_train_without_queries(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path / "train")
    with pytest.raises(InputError, match="expected a folder val or test beside"):
        read_folder(tmp_path)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path, classes=2)
    (tmp_path / "n00000002").rename(tmp_path / "train")
    assert read_folder(tmp_path).train.classes == ("n00000001", "train")


def test_class_with_one_image(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path, images=2)
    (tmp_path / "n00000002/n00000002_0.JPEG").unlink()
    with pytest.raises(InputError, match=r"at least 2 images in every class .* found 1 in n00000002"):
        read_folder(tmp_path)


def test_one_class(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path, classes=1)
    with pytest.raises(InputError, match="expected at least 2 classes"):
        read_folder(tmp_path)


def test_flat_and_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere, which does not exist"):
        read_folder(tmp_path / "nowhere")
    write_fake_class_folders(tmp_path, images=2)
    shutil.copy(tmp_path / "n00000001/n00000001_0.JPEG", tmp_path / "loose.jpg")
    with pytest.raises(InputError, match=r"found 1 images directly in it \(loose.jpg\); move every image"):
        read_folder(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
@pytest.mark.parametrize("place", ["{}/a/1.png", "data/{}/1.png", "data/a/{}.png"])
def test_names_that_are_no_text(tmp_path: Path, place: str) -> None:
    """Bytes that are no UTF-8: no record and no page could hold them."""
    write_fake_class_folders(tmp_path / "data")
    name = os.fsdecode(b"caf\xe9")
    path = tmp_path / place.format(name)
    folder = path.parents[1] if place.startswith("{}") else tmp_path / "data"
    if place.startswith("{}"):
        (tmp_path / "data").rename(folder)
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    with pytest.raises(InputError, match=r"expected UTF-8 as .*, found 'caf\\udce9") as raised:
        read_folder(folder)
    str(raised.value).encode()  # it can be printed anywhere
