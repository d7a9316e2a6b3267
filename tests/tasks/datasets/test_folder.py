import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.classes import EVERY, Classification, Unlabelled
from layerboard.tasks.datasets.folder import NO_CLASSES, NO_LABELS, read_folder
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.zoo.errors import InputError
from tests.fakes import write_fake_class_folders
from tests.tasks.datasets.helpers import copy_shuffled, keys


def pictures(folder: Path, count: int, ending: str = "png") -> Path:
    """So many images of one pixel, each of its own colour."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        Image.new("RGB", (1, 1), (index, 0, 0)).save(folder / f"{index}.{ending}")
    return folder


def labelled(folder: Path, labels: Path | None = None) -> Classification:
    """A folder of images with classes."""
    found = read_folder(folder, Labelling(labels))
    assert isinstance(found, Classification)
    return found


def test_unsplit_folder(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path / "birds", classes=3, images=10)
    dataset = labelled(tmp_path / "birds")
    assert dataset.name == "birds"
    assert dataset.val is None
    assert np.bincount(dataset.train.labels).tolist() == [10, 10, 10]
    assert not dataset.coverage.partial
    assert str(dataset.coverage) == f"3 classes, 30 images; classes from folders; {EVERY}"
    copy_shuffled(tmp_path / "birds", tmp_path / "again")
    assert keys(labelled(tmp_path / "again").train.samples) == keys(dataset.train.samples)


def test_val_before_test_which_is_left_out_and_said(tmp_path: Path) -> None:
    for seed, split in enumerate(("train", "val", "test")):
        write_fake_class_folders(tmp_path / split, classes=2, images=2, seed=seed)
    write_fake_class_folders(tmp_path / "more", classes=1, images=3)
    dataset = labelled(tmp_path)
    assert dataset.val is not None
    assert {key.split("/")[0] for key in keys(dataset.val.samples)} == {"val"}
    assert dataset.coverage.notes == ("4 images of further splits left out",)
    assert any("3 images beside train and val ignored" in one for one in dataset.coverage.remarks)


def test_of_train_alone_every_image_is_tested(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path / "a" / "train", images=10)
    alone = labelled(tmp_path / "a")
    assert alone.val is None
    assert EVERY in alone.coverage.remarks
    assert not alone.coverage.partial


def test_a_class_is_the_path_of_its_folder_in_any_depth(tmp_path: Path) -> None:
    for name in ("animal/cat", "animal/dog", "vehicle/road/Kätzchen"):
        pictures(tmp_path / "photos" / name, 5, ending="JPG")
    dataset = labelled(tmp_path / "photos")
    assert dataset.train.classes == ("animal/cat", "animal/dog", "vehicle/road/Kätzchen")
    assert "classes from folders, by their paths" in dataset.coverage.remarks
    assert keys(dataset.train.samples) == sorted(keys(dataset.train.samples))
    assert [dataset.train.classes[label] for label in dataset.train.labels] == [
        key.rpartition("/")[0] for key in keys(dataset.train.samples)
    ]
    for split in ("train", "val"):
        shutil.copytree(tmp_path / "photos", tmp_path / "both" / split)
    nested = labelled(tmp_path / "both")
    assert nested.val is not None
    assert nested.val.classes == dataset.train.classes
    assert len(nested.val.samples) == 15


def test_images_without_classes(tmp_path: Path) -> None:
    pictures(tmp_path / "flat", 4)
    (tmp_path / "flat" / ".hidden.jpg").write_bytes(b"")
    (tmp_path / "flat" / "notes.TXT").write_text("")
    data = read_folder(tmp_path / "flat")
    assert isinstance(data, Unlabelled)
    assert keys(data.samples) == [f"{index}.png" for index in range(4)]
    assert str(data.coverage) == f"4 images; {NO_CLASSES}; 1 other file ignored (1 .txt)"
    assert not data.coverage.partial
    (tmp_path / "flat" / "mine.csv").write_text("file,label\n0,cat\n")
    assert "flat/mine.csv would take classes from that file" in str(read_folder(tmp_path / "flat").coverage)
    pictures(tmp_path / "years" / "2023", 3)
    pictures(tmp_path / "years" / "2024", 3)
    assert isinstance(read_folder(tmp_path / "years"), Classification)
    without = read_folder(tmp_path / "years", Labelling(NO_LABELS))
    assert isinstance(without, Unlabelled)
    assert keys(without.samples) == [f"{year}/{i}.png" for year in (2023, 2024) for i in range(3)]


@pytest.mark.usefixtures("without_heic")
def test_no_image_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected images \(.jpg, .*\) below .*, found none$"):
        read_folder(tmp_path)
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.heic").write_text("")
    with pytest.raises(
        InputError, match=r"found none but 1 image left out \(1 \.heic\): to have them read, pip install"
    ):
        read_folder(tmp_path)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path, classes=2)
    (tmp_path / "n00000002").rename(tmp_path / "train")
    assert labelled(tmp_path).train.classes == ("n00000001", "train")


def test_a_class_with_two_images_cannot_be_tested(tmp_path: Path) -> None:
    write_fake_class_folders(tmp_path, images=3)
    (tmp_path / "n00000002/n00000002_0.JPEG").unlink()
    assert "has 2 in n00000002; add images" in labelled(tmp_path).untestable
    assert "no image can be tested, which needs at least 3 images" in str(labelled(tmp_path).coverage)
    assert EVERY not in str(labelled(tmp_path).coverage)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere, which does not exist"):
        read_folder(tmp_path / "nowhere")


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
