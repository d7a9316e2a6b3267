import shutil
from pathlib import Path

import numpy as np
from PIL import Image

from layerboard.tasks.datasets.base import PhotoSample
from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.tasks.datasets.same_files import PART, on_both_sides
from tests.fakes import write_fake_class_folders, write_fake_defects


def test_files_of_train_in_val_are_said(tmp_path: Path) -> None:
    for seed, split in enumerate(("train", "val")):
        write_fake_class_folders(tmp_path / "in" / split, classes=2, images=3, seed=seed)
    assert not read_own(str(tmp_path / "in")).coverage.partial
    source = tmp_path / "in/train/n00000001/n00000001_2.JPEG"
    shutil.copy(source, tmp_path / "in/val/n00000002/other.jpg")
    (note,) = read_own(str(tmp_path / "in")).coverage.notes
    pair = "val/n00000002/other.jpg and train/n00000001/n00000001_2.JPEG"
    assert note == f"files of 1 of 7 val images are in train, too ({pair})"
    shutil.rmtree(tmp_path / "in/val")
    shutil.copytree(tmp_path / "in/train", tmp_path / "in/val")
    (note,) = read_own(str(tmp_path / "in")).coverage.notes
    assert note.startswith("files of 6 of 6 val images are in train, too (")
    assert note.endswith(" and 4 more)")
    rows = [
        f"{split}/n0000000{n}/n0000000{n}_{i}" for split in ("train", "val") for n in (1, 2) for i in range(3)
    ]
    table = tmp_path / "ages.csv"
    table.write_text("file,age\n" + "".join(f"{row},{n + 1000.5 * n}\n" for n, row in enumerate(rows)))
    numbers = read_own(str(tmp_path / "in"), Labelling(table, target="number"))
    assert note in numbers.coverage.notes


def test_files_of_other_layouts_are_said(tmp_path: Path) -> None:
    nut = write_fake_defects(tmp_path) / "nut"
    assert not read_own(str(nut)).coverage.partial
    shutil.copy(nut / "train/good/1.png", nut / "test/good/9.png")
    (note,) = read_own(str(nut)).coverage.notes
    assert (
        note == "files of 1 of 7 test images are in train of nut, too (test/good/9.png and train/good/1.png)"
    )
    for name in ("query/mug/1.png", "database/mug/2.png", "database/cup/1.png"):
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(nut / "train/good" / f"{name[-5]}.png", tmp_path / "shop" / name)
    (note,) = read_own(str(tmp_path / "shop")).coverage.notes
    assert note.startswith("files of 1 of 1 query image are in database, too (")


def test_large_files_that_differ_outside_of_the_sampled_parts_are_not_the_same(tmp_path: Path) -> None:
    pixels = np.zeros((300, 300, 3), np.uint8)
    for name, value in (("a", 0), ("b", 1), ("c", 0)):
        pixels.reshape(-1)[2 * PART] = value
        Image.fromarray(pixels).save(tmp_path / f"{name}.bmp")
    a, b, c = (PhotoSample(name, str(tmp_path / f"{name}.bmp")) for name in "abc")
    assert on_both_sides([a], [b]) == []
    assert len(on_both_sides([a], [c])) == 1
    assert on_both_sides([a], [PhotoSample("gone", str(tmp_path / "gone.png"))]) == []
