import shutil
from pathlib import Path

import numpy as np
import pytest

from layerboard.tasks.datasets.classes import ProbeSubset
from layerboard.tasks.datasets.imagenet import IMAGENET, IMAGENET_50, ImageNetEntry
from layerboard.tasks.framework.sources import probe_subset
from layerboard.zoo.errors import InputError
from tests.fakes import write_fake_class_folders, write_fake_imagenet
from tests.tasks.datasets.helpers import copy_shuffled, keys

MINI = ImageNetEntry(classes=3, train=12, val=6, probe=ProbeSubset(None, per_class=2))


def test_layout_labels_and_counts(tmp_path: Path) -> None:
    write_fake_imagenet(tmp_path)
    dataset = MINI.read(tmp_path)
    assert dataset.train.classes == dataset.val.classes == ("n00000001", "n00000002", "n00000003")
    assert dataset.train.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert dataset.train.labels.dtype == np.int64
    assert keys(dataset.val.samples)[0] == "val/n00000001/n00000001_val_0.JPEG"
    assert dataset.val.samples[0].open().size == (40, 32)
    assert not dataset.coverage.partial
    assert str(dataset.coverage) == "3 of 3 classes, 12 of 12 train images, 6 of 6 val images"


def test_official_counts_make_it_partial(tmp_path: Path) -> None:
    write_fake_imagenet(tmp_path)
    coverage = IMAGENET.read(tmp_path).coverage
    assert coverage.partial
    assert "12 of 1,281,167 train images" in str(coverage)


def test_order_of_creation_does_not_matter(tmp_path: Path) -> None:
    write_fake_imagenet(tmp_path / "a", classes=5, train=7)
    copy_shuffled(tmp_path / "a", tmp_path / "b")
    first, second = (MINI.read(tmp_path / name) for name in "ab")
    assert keys(first.train.samples) == keys(second.train.samples) == sorted(keys(first.train.samples))
    np.testing.assert_array_equal(first.train.labels, second.train.labels)


def test_hidden_and_other_files_are_ignored(tmp_path: Path) -> None:
    folder = write_fake_imagenet(tmp_path) / "train/n00000001"
    shutil.copy(folder / "n00000001_0.JPEG", folder / "._n00000001_0.JPEG")
    shutil.copy(folder / "n00000001_0.JPEG", folder / "other.PNG")
    (folder / "boxes.txt").write_text("")
    (folder.parent / ".cache").mkdir()
    train = MINI.read(tmp_path).train
    assert len(train.samples) == 13
    assert "train/n00000001/other.PNG" in keys(train.samples)


def test_missing_root(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected imagenet \(imagenet/train/<wnid>.*does not exist"):
        MINI.read(tmp_path)


def test_unsorted_val_is_explained(tmp_path: Path) -> None:
    val = write_fake_imagenet(tmp_path) / "val"
    for path in list(val.rglob("*.JPEG")):
        path.rename(val / path.name)
    shutil.rmtree(val / "n00000001")
    with pytest.raises(
        InputError, match=r"found 6 images directly in it .*official validation archive is one flat"
    ):
        MINI.read(tmp_path)


def test_no_and_empty_classes(tmp_path: Path) -> None:
    train = write_fake_imagenet(tmp_path) / "train"
    (train / "n00000009").mkdir()
    with pytest.raises(InputError, match=r"in every class folder of .*train, found none in n00000009"):
        MINI.read(tmp_path)
    shutil.rmtree(train)
    with pytest.raises(InputError, match=r"a folder of class folders at .*train, which does not exist"):
        MINI.read(tmp_path)
    train.mkdir()
    with pytest.raises(InputError, match=r"expected one folder per class in .*train, found none"):
        MINI.read(tmp_path)


def test_class_only_in_val(tmp_path: Path) -> None:
    folder = write_fake_imagenet(tmp_path)
    shutil.rmtree(folder / "train/n00000002")
    with pytest.raises(InputError, match=r"classes of .*val to be among those of train, found n00000002"):
        MINI.read(tmp_path)


def test_list_of_imagenet_50() -> None:
    classes = IMAGENET_50.classes or ()
    assert len(set(classes)) == 50
    assert list(classes) == sorted(classes)


def test_probe_of_all_classes_has_no_note(tmp_path: Path) -> None:
    write_fake_imagenet(tmp_path)
    dataset = MINI.read(tmp_path)
    indices, coverage = probe_subset(dataset, MINI.probe)
    assert indices.tolist() == [0, 1, 4, 5, 8, 9]
    assert dataset.train.labels[indices].tolist() == [0, 0, 1, 1, 2, 2]
    assert not coverage.partial


def test_probe_of_listed_classes(tmp_path: Path) -> None:
    write_fake_imagenet(tmp_path)
    indices, coverage = probe_subset(MINI.read(tmp_path), ProbeSubset(("n00000003", "n00000001"), 3))
    assert indices.tolist() == [0, 1, 2, 8, 9, 10]
    assert not coverage.partial


def test_probe_replaces_missing_classes_and_says_so(tmp_path: Path) -> None:
    write_fake_imagenet(tmp_path)
    dataset = MINI.read(tmp_path)
    indices, coverage = probe_subset(dataset, ProbeSubset(("n00000003", "n09999999"), 2))
    assert dataset.train.labels[indices].tolist() == [0, 0, 1, 1]
    assert coverage.partial
    assert "1 of the 2 classes of the probe subset are missing: the first 2 classes" in str(coverage)


def test_keys_are_sorted_for_names_that_begin_alike(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write_fake_class_folders(tmp_path / "imagenet" / split, classes=2)
        (tmp_path / "imagenet" / split / "n00000002").rename(tmp_path / "imagenet" / split / "n00000001 b")
    train = MINI.read(tmp_path).train
    assert keys(train.samples) == sorted(keys(train.samples))
    assert train.classes == ("n00000001", "n00000001 b")
    assert [train.classes[label] in key for label, key in zip(train.labels, keys(train.samples), strict=True)]
    assert train.labels.tolist() == [1] * 4 + [0] * 4
