"""CIFAR-10 and CIFAR-100: from tables of the Hub, beside other datasets or alone, and from folders."""

from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.cifar import CIFAR_10, CIFAR_100, CIFAR_RAGHU
from layerboard.tasks.datasets.packs.hub_tables import tables_of
from layerboard.tasks.datasets.reading.files import data_root
from layerboard.zoo.errors import InputError

CLASSES = ["apple", "aquarium_fish", "baby"]
LABELS = {"train": [2, 0, 1, 0, 2, 1], "test": [1, 2]}
SPLIT = replace(CIFAR_RAGHU[1], classes=3, train=4, val=2, first_tested=4)


def write_tables(folder: Path, label: str = "fine_label") -> Path:
    """``cifar100/{train,test}-*.parquet`` as the Hub has them: rows in the authors' order, without names."""
    (folder / "cifar100").mkdir(parents=True)
    features = {"img": datasets.Image(), label: datasets.ClassLabel(names=CLASSES)}
    for split, labels in LABELS.items():
        images = [Image.new("RGB", (32, 32), (10 * row, len(split), 0)) for row in range(len(labels))]
        table = datasets.Dataset.from_dict({"img": images, label: labels}, datasets.Features(features))
        table.to_parquet(folder / "cifar100" / f"{split}-00000-of-00001.parquet")
    return folder


@pytest.mark.parametrize("beside", [True, False])
def test_tables_of_the_hub_beside_other_datasets_and_alone(tmp_path: Path, beside: bool) -> None:
    folder = write_tables(tmp_path / "snapshot")
    if beside:
        folder = folder.rename(tmp_path / "data")
        root = folder
    else:
        root = data_root(Path(f"hf:{folder}"))
    data = replace(CIFAR_100, classes=3, train=6, val=2).read(root)
    assert not data.coverage.partial
    assert data.train.classes == tuple(CLASSES)
    assert [data.train.classes[label] for label in data.train.labels] == sorted(CLASSES * 2)
    keys = [key.removeprefix("train/") for key in data.train.keys]
    assert keys[:2] == ["apple/00001.png", "apple/00003.png"]
    assert [np.asarray(one.open())[0, 0].tolist() for one in data.train.samples[:2]] == [
        [10, 5, 0],
        [30, 5, 0],
    ]
    assert data.val is not None
    assert data.val.keys == ("test/aquarium_fish/00000.png", "test/baby/00001.png")


def test_the_last_training_images_by_their_rows_are_tested(tmp_path: Path) -> None:
    data = SPLIT.read(write_tables(tmp_path))
    assert not data.coverage.partial
    assert data.val is not None
    assert data.train.keys == (
        *("train/apple/00001.png", "train/apple/00003.png", "train/aquarium_fish/00002.png"),
        "train/baby/00000.png",
    )
    assert data.val.keys == ("train/aquarium_fish/00005.png", "train/baby/00004.png")


def test_other_columns_are_refused(tmp_path: Path) -> None:
    write_tables(tmp_path, "colour")
    with pytest.raises(
        InputError, match="expected the columns image and label or img and label or img and fine_"
    ):
        data_root(Path(f"hf:{tmp_path}"))


def test_entries_are_pinned() -> None:
    for entry in (CIFAR_10, CIFAR_100):
        tables = tables_of(entry.source.removeprefix("hf:"))
        assert (entry.folder, entry.revision) == (tables.folder, tables.revision)
        assert len(entry.revision) == 40
