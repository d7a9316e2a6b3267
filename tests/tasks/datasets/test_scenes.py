import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from layerboard.tasks.datasets.reading.masks import write_mask
from layerboard.tasks.datasets.scenes import VOC_2012_AUG, AdeEntry, VocEntry, read_classes
from layerboard.zoo.errors import InputError, MissingDataError, UnreadableImageError
from tests.fakes import write_fake_ade, write_fake_voc

VOC = VocEntry(train_images=4, val_images=3)
ADE = AdeEntry(train_images=4, val_images=3)


def test_voc(tmp_path: Path) -> None:
    write_fake_voc(tmp_path)
    data = VOC.read(tmp_path)
    assert str(data.coverage) == "4 of 4 training images, 3 of 3 validation images"
    assert [scene.sample.key for scene in data.val] == [f"2008_{number:06d}" for number in range(3)]
    assert {scene.size for scene in (*data.train, *data.val)} == {(48, 40)}
    assert len(data.classes) == len(VocEntry.classes) == 21
    assert set(np.unique(read_classes(data, data.train[1]))) == {0, 2, 255}


def test_voc_with_augmented_masks(tmp_path: Path) -> None:
    write_fake_voc(tmp_path, augmented=True)
    data = VOC_2012_AUG.read(tmp_path)
    assert str(data.coverage) == "4 of 10,582 training images, 3 of 1,449 validation images"
    assert {scene.mask.parent.name for scene in data.train} == {"SegmentationClassAug"}
    assert {scene.mask.parent.name for scene in data.val} == {"SegmentationClass"}
    with pytest.raises(MissingDataError, match=r"list of image ids at .*train\.txt"):
        VOC.read(tmp_path)


def test_ade20k(tmp_path: Path) -> None:
    write_fake_ade(tmp_path)
    data = ADE.read(tmp_path)
    assert str(data.coverage) == "4 of 4 training images, 3 of 3 validation images"
    assert data.train[0].sample.key == "training/ADE_train_00000001"
    assert len(data.classes) == 150
    # 0 is no class, 1 is class 0
    assert set(np.unique(read_classes(data, data.train[2]))) == {2, 255}


def test_what_is_not_there_makes_it_partial(tmp_path: Path) -> None:
    folder = write_fake_voc(tmp_path)
    (folder / "JPEGImages/2007_000000.jpg").unlink()
    (folder / "SegmentationClass/2008_000001.png").unlink()
    for name in ("JPEGImages/2007_000003.jpg", "SegmentationClass/2007_000003.png"):
        (folder / name).unlink()
    coverage = VOC.read(tmp_path).coverage
    assert coverage.partial
    assert str(coverage) == (
        "2 of 4 training images, 2 of 3 validation images; 1 masks of train of voc-2012-val have no image "
        "(2007_000000); 1 images of val of voc-2012-val have no mask (2008_000001)"
    )
    shutil.rmtree(folder / "JPEGImages")
    with pytest.raises(InputError, match="images with masks of train of voc-2012-val, found none"):
        VOC.read(tmp_path)


def test_missing_folders(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="voc-2012-val"):
        VOC.read(tmp_path)
    with pytest.raises(MissingDataError, match="ade20k-val"):
        ADE.read(tmp_path)
    folder = write_fake_ade(tmp_path)
    shutil.rmtree(folder / "annotations/validation")
    with pytest.raises(MissingDataError, match="masks of ade20k-val"):
        ADE.read(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found none"),
        ("2007_000000\n2007_000000", "each once"),
        ("../2007_000000", "below the dataset's folder"),
        ("2008_000001", "no image in both splits of voc-2012-val, found 2008_000001"),
    ],
)
def test_wrong_lists(tmp_path: Path, content: str, message: str) -> None:
    folder = write_fake_voc(tmp_path)
    (folder / "ImageSets/Segmentation/train.txt").write_text(content)
    with pytest.raises(InputError, match=message):
        VOC.read(tmp_path)


def test_an_image_of_one_name_in_both_splits(tmp_path: Path) -> None:
    folder = write_fake_ade(tmp_path)
    for kind, ending in (("images", "jpg"), ("annotations", "png")):
        name = f"ADE_train_00000001.{ending}"
        shutil.copy(folder / kind / "training" / name, folder / kind / "validation" / name)
    with pytest.raises(InputError, match="both splits of ade20k-val, found ADE_train_00000001"):
        ADE.read(tmp_path)


def test_wrong_masks(tmp_path: Path) -> None:
    folder = write_fake_voc(tmp_path)
    mask = folder / "SegmentationClass/2007_000000.png"
    write_mask(mask, np.zeros((3, 4), np.uint8))
    with pytest.raises(InputError, match=r"one size, found 48 x 40 in .* and 4 x 3 in"):
        VOC.read(tmp_path)
    write_mask(mask, np.full((40, 48), 21, np.uint8))
    data = VOC.read(tmp_path)
    with pytest.raises(InputError, match=r"pixel values up to 20, and 255 for none, in .*, found 21"):
        read_classes(data, data.train[0])
    Image.new("RGB", (48, 40)).save(mask)
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
