import shutil
from pathlib import Path

import numpy as np
import pytest

from layerboard.tasks.datasets.classes import ProbeSubset
from layerboard.tasks.datasets.imagenet import IMAGENET_50, ImageNetEntry
from layerboard.tasks.framework.sources import probe_subset
from tests.fakes import write_fake_class_folders, write_fake_imagenet
from tests.tasks.datasets.helpers import keys

MINI = ImageNetEntry(classes=3, train=12, val=6, probe=ProbeSubset(None, per_class=2))


def test_hidden_and_other_files_are_ignored(tmp_path: Path) -> None:
    folder = write_fake_imagenet(tmp_path) / "train/n00000001"
    shutil.copy(folder / "n00000001_0.JPEG", folder / "._n00000001_0.JPEG")
    shutil.copy(folder / "n00000001_0.JPEG", folder / "other.PNG")
    (folder / "boxes.txt").write_text("")
    (folder.parent / ".cache").mkdir()
    train = MINI.read(tmp_path).train
    assert len(train.samples) == 13
    assert "train/n00000001/other.PNG" in keys(train.samples)


def test_list_of_imagenet_50() -> None:
    classes = IMAGENET_50.classes or ()
    assert len(set(classes)) == 50
    assert list(classes) == sorted(classes)


@pytest.mark.parametrize(
    ("probe", "indices", "note"),
    [
        (MINI.probe, [0, 1, 4, 5, 8, 9], ""),
        (ProbeSubset(("n00000003", "n00000001"), 3), [0, 1, 2, 8, 9, 10], ""),
        (
            ProbeSubset(("n00000003", "n09999999"), 2),
            [0, 1, 4, 5],
            "1 of the 2 classes of the probe subset are missing: the first 2 classes",
        ),
    ],
)
def test_probes_are_the_first_images_of_their_classes(
    tmp_path: Path, probe: ProbeSubset, indices: list[int], note: str
) -> None:
    write_fake_imagenet(tmp_path)
    found, coverage = probe_subset(MINI.read(tmp_path), probe)
    assert found.tolist() == indices
    assert coverage.partial == bool(note)
    assert note in str(coverage)


def test_keys_are_sorted_for_names_that_begin_alike(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write_fake_class_folders(tmp_path / "imagenet" / split, classes=2)
        (tmp_path / "imagenet" / split / "n00000002").rename(tmp_path / "imagenet" / split / "n00000001 b")
    train = MINI.read(tmp_path).train
    assert keys(train.samples) == sorted(keys(train.samples))
    assert train.classes == ("n00000001", "n00000001 b")
    assert [train.classes[label] in key for label, key in zip(train.labels, keys(train.samples), strict=True)]
    assert train.labels.tolist() == [1] * 4 + [0] * 4
    assert train.labels.dtype == np.int64
