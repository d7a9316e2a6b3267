from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.scenes import AdeEntry, VocEntry, read_classes
from layerboard.zoo.errors import InputError, UnreadableImageError
from tests.fakes import write_fake_ade, write_fake_voc
from workshop.render.masks import write_mask

VOC = VocEntry(train_images=4, val_images=3)
ADE = AdeEntry(train_images=4, val_images=3)


def test_voc(tmp_path: Path) -> None:
    write_fake_voc(tmp_path)
    data = VOC.read(tmp_path)
    assert [scene.sample.key for scene in data.val] == [f"2008_{number:06d}" for number in range(3)]
    assert {scene.size for scene in (*data.train, *data.val)} == {(48, 40)}
    assert len(data.classes) == len(VocEntry.classes) == 21
    assert set(np.unique(read_classes(data, data.train[1]))) == {0, 2, 255}


def test_ade20k(tmp_path: Path) -> None:
    write_fake_ade(tmp_path)
    data = ADE.read(tmp_path)
    assert len(data.classes) == 150
    # 0 is no class, 1 is class 0
    assert set(np.unique(read_classes(data, data.train[2]))) == {2, 255}


def test_wrong_masks(tmp_path: Path) -> None:
    folder = write_fake_voc(tmp_path)
    mask = folder / "SegmentationClass/2007_000000.png"
    write_mask(mask, np.full((40, 48), 21, np.uint8))
    data = VOC.read(tmp_path)
    with pytest.raises(InputError, match=r"pixel values up to 20, and 255 for none, in .*, found 21"):
        read_classes(data, data.train[0])
    Image.new("RGB", (48, 40), "red").save(mask)
    with pytest.raises(InputError, match=r"pixel values are classes at .*found mode RGB"):
        read_classes(data, data.train[0])
    mask.write_bytes(b"no image")
    with pytest.raises(UnreadableImageError, match="cannot decode mask"):
        read_classes(data, data.train[0])


def test_a_value_above_the_classes_of_ade20k(tmp_path: Path) -> None:
    folder = write_fake_ade(tmp_path)
    data = ADE.read(tmp_path)
    path = folder / "annotations/validation/ADE_val_00000001.png"
    Image.fromarray(np.full((40, 48), 150, np.uint8)).save(path)
    assert np.unique(read_classes(data, data.val[0])).tolist() == [149]
    Image.fromarray(np.full((40, 48), 151, np.uint8)).save(path)
    with pytest.raises(InputError, match=r"up to 150, .* found 151"):
        read_classes(data, data.val[0])
