from pathlib import Path

import pytest

from layerboard.tasks.datasets.classes import EVERY
from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.datasets.reading.labels import Labelling
from tests.tasks.datasets.test_folder import labelled, pictures

CLASSES = ("cat", "dog", "eel")


def classes_below(root: Path, *folders: str, classes: tuple[str, ...] = CLASSES) -> Path:
    """The same class folders in each of some folders."""
    for folder in folders:
        for name in classes:
            pictures(root / folder / name, 3)
    return root


@pytest.mark.parametrize(
    ("train", "val"),
    [
        ("training", "testing"),
        ("Train", "Test"),
        ("train_set", "test_set"),
        ("trainset", "valset"),
        ("TrainImages", "EvalImages"),
        ("train2017", "val2017"),
        ("training", "evaluation"),
        ("train", "dev"),
        ("train", "valid"),
        ("train", "Val"),
        ("trainval", "test"),
        ("images/train", "images/val"),
        ("data/images/Training", "data/images/Validation"),
        ("flowers-train", "flowers-test"),
        ("train_images", "hold_out"),
        ("training_set/training_set", "test_set/test_set"),
        ("seg_train/seg_train", "seg_test/seg_test"),
        ("My Photos/01_TRAIN", "My Photos/02_VALID"),
        ("my-train-v2", "my-eval-v2"),
        ("train split", "development split"),
        ("trainData", "holdoutData"),
    ],
)
def test_folders_with_words_of_splits_are_splits(tmp_path: Path, train: str, val: str) -> None:
    data = labelled(classes_below(tmp_path, train, val))
    assert data.train.classes == CLASSES
    assert data.val is not None
    assert EVERY not in data.coverage.remarks
    assert {key.rsplit("/", 2)[0] for key in data.train.keys} == {train}
    assert {key.rsplit("/", 2)[0] for key in data.val.keys} == {val}


def test_of_three_splits_the_last_is_left_out(tmp_path: Path) -> None:
    data = labelled(classes_below(tmp_path, "x/training", "x/development", "x/testing"))
    assert data.val is not None
    assert all(key.startswith("x/development/") for key in data.val.keys)
    assert "9 images of further splits left out" in data.coverage.notes
    assert "x/development is dev, x/testing is test, x/training is train" in data.coverage.remarks


def test_nested_classes_stay_classes(tmp_path: Path) -> None:
    nested = ("animal/cat", "animal/other", "vehicle/car", "vehicle/other", "training/yoga", "testing")
    for name in (*nested, "b/bazaar/indoor", "b/booth/indoor", "b/bakery", "b/bank", "b/beach"):
        pictures(tmp_path / name, 3)
    data = labelled(tmp_path)
    assert {*nested} <= {*data.train.classes}
    assert data.val is None
    assert not data.coverage.partial
    places = "indoor in b/bazaar and b/booth, other in animal and vehicle"
    said = f"classes of one name in several folders are told apart ({places})"
    assert said in data.coverage.remarks


def test_classes_that_all_say_splits_are_said(tmp_path: Path) -> None:
    for name in ("trainA", "trainB", "testA", "testB"):
        pictures(tmp_path / name, 3)
    said = "every class says a split (testA, testB, trainA, trainB): move them into folders train and val if"
    assert any(remark.startswith(said) for remark in labelled(tmp_path).coverage.remarks)
    pictures(tmp_path / "rainA", 3)
    assert "says a split" not in str(labelled(tmp_path).coverage)


def test_splits_of_a_table(tmp_path: Path) -> None:
    """Said by a column, or by the folders of its images, but never by names of files."""
    pictures(tmp_path / "in" / "images" / "training", 4)
    pictures(tmp_path / "in" / "images" / "testing", 2)
    pictures(tmp_path / "flat", 6).joinpath("0.png").rename(tmp_path / "flat" / "train.png")
    table = tmp_path / "labels.csv"
    names = [
        f"images/{split}/{n}" for split, count in (("training", 4), ("testing", 2)) for n in range(count)
    ]
    table.write_text("file,label\n" + "".join(f"{name},{n % 2}\n" for n, name in enumerate(names)))
    data = labelled(tmp_path / "in", table)
    assert data.val is not None
    assert (len(data.train.samples), len(data.val.samples)) == (4, 2)
    flat = ["train", "1", "2", "3", "4", "5"]
    rows = "".join(f"{name},{n % 2},{'Training' if n < 4 else 'dev-set'}\n" for n, name in enumerate(flat))
    table.write_text(f"file,label,split\n{rows}")
    data = labelled(tmp_path / "flat", table)
    assert data.val is not None
    assert data.val.keys == ("4.png", "5.png")
    table.write_text("file,label\n" + "".join(f"{name},{n % 2}\n" for n, name in enumerate(flat)))
    assert labelled(tmp_path / "flat", table).val is None
    assert read_folder(tmp_path / "flat", Labelling(table)).coverage.notes == ()
