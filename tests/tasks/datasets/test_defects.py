"""Layouts of defects: MVTec AD's and VisA's, official and of the user's own."""

from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.classes import Classification, Unlabelled
from layerboard.tasks.datasets.defects import VISA, Defects, read_defect
from layerboard.tasks.datasets.reading.labels import Labelling
from tests import fakes


def save(path: Path, size: tuple[int, int] = (12, 8), colour: str = "black", mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)
    return path


def product(folder: Path) -> Path:
    """A product with three references and four test images, three of them with defects."""
    for number in (0, 2, 10):
        save(folder / "train" / "good" / f"{number}.png")
    for name in ("good/0.png", "crack/0.png", "crack/1.png", "dent/0.png"):
        save(folder / "test" / name, colour="grey")
    for name in ("crack/0_mask.png", "crack/1_mask.png", "dent/0_mask.png"):
        save(folder / "ground_truth" / name, colour="white", mode="L")
    return folder


def own(folder: Path) -> Defects:
    data = read_own(str(folder))
    assert isinstance(data, Defects)
    return data


def test_products_are_read_with_masks_and_references_by_name(tmp_path: Path) -> None:
    product(tmp_path / "parts" / "nut")
    product(tmp_path / "parts" / "bolt")
    data = own(tmp_path / "parts")
    assert data.name == "parts"
    assert [each.name for each in data.products] == ["bolt", "nut"]
    bolt = data.products[0]
    keys = [sample.key for sample in bolt.references]
    assert keys == [f"bolt/train/good/{number}.png" for number in (0, 10, 2)]
    assert [image.kind for image in bolt.images] == ["crack", "crack", "dent", "good"]
    assert bolt.masked
    assert [bool(read_defect(image).all()) for image in bolt.images] == [True, True, True, False]
    assert str(data.coverage).startswith(
        "2 products, 6 reference images, 8 test images; 6 test images with a defect, 6 of them with a mask"
        "; 6 masks of the whole image (bolt/test/crack/0.png, bolt/test/crack/1.png and 4 more)"
    )


def test_a_folder_may_be_one_product_without_masks(tmp_path: Path) -> None:
    folder = product(tmp_path / "nut")
    for mask in folder.rglob("*_mask.png"):
        mask.unlink()
    data = own(folder)
    assert [each.name for each in data.products] == ["nut"]
    assert not data.products[0].masked
    assert not data.coverage.partial


def test_classes_and_images_without_any_stay_what_they_are(tmp_path: Path) -> None:
    for name in ("train/good", "train/bad", "test/good", "test/bad"):
        for number in range(3):
            save(tmp_path / "sorted" / name / f"{number}.png")
    assert isinstance(read_own(str(tmp_path / "sorted")), Classification)
    assert isinstance(read_own(str(product(tmp_path / "nut")), Labelling(Path("none"))), Unlabelled)


def test_a_photo_that_is_turned_fits_its_mask(tmp_path: Path) -> None:
    folder = product(tmp_path / "nut")
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    Image.new("RGB", (8, 12)).save(folder / "test" / "dent" / "0.png", exif=exif)
    (dent,) = (image for image in own(folder).products[0].images if image.kind == "dent")
    assert dent.size == (12, 8)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
def test_masks_of_any_kind_are_white_where_the_defect_is(tmp_path: Path, mode: str) -> None:
    folder = product(tmp_path / "nut")
    values = np.zeros((8, 12), np.uint8)
    values[2:4, 3:7] = 255
    image = Image.fromarray(values).convert(mode)
    image.save(folder / "ground_truth" / "dent" / "0_mask.png")
    (dent,) = (image for image in own(folder).products[0].images if image.kind == "dent")
    assert (read_defect(dent) == (values > 0)).all()


def test_the_table_of_visa_says_what_is_what(tmp_path: Path) -> None:
    root = fakes.write_fake_visa(tmp_path)
    (candle,) = VISA.read(tmp_path).products
    assert [sample.key[-12:] for sample in candle.references] == ["Normal/0.png", "Normal/1.png"]
    found = [(image.kind, image.mask is None) for image in candle.images]
    assert found == [("good", True), ("anomaly", False)]
    assert own(root).products[0].name == "candle"


def test_defects_are_counted_by_masks_as_they_are_scored(tmp_path: Path) -> None:
    """Without test/good, an image with a black mask is the only good one."""
    folder = product(tmp_path / "nut")
    (folder / "test" / "good" / "0.png").unlink()
    save(folder / "ground_truth" / "crack" / "1_mask.png", mode="L")
    data = own(folder)
    assert data.products[0].defect == (True, False, True)
    assert not data.coverage.notes
    assert (
        "2 test images with a defect, 2 of them with a mask; "
        "2 masks of the whole image (test/crack/0.png, test/dent/0.png); "
        "1 mask all black, so without a defect (test/crack/1.png)"
    ) in str(data.coverage)
    (folder / "test" / "crack" / "1.png").unlink()
    (folder / "ground_truth" / "crack" / "1_mask.png").unlink()
    assert "without a defect (in test/good): AUROC is not defined" in str(own(folder).coverage)
    save(folder / "test" / "good" / "0.png")
    save(folder / "ground_truth" / "good" / "0_mask.png", colour="white", mode="L")
    said = str(own(folder).coverage)
    assert "1 good image with a defect by the mask (test/good/0.png)" in said
    assert "AUROC is not defined" in said


def test_what_will_not_be_scored_is_said_before(tmp_path: Path) -> None:
    folder = product(tmp_path / "nut")
    (folder / "ground_truth" / "dent" / "0_mask.png").rename(folder / "ground_truth" / "dent" / "0.png")
    said = "1 mask of no image, expected NAME_mask.png (ground_truth/dent/0.png)"
    assert said in own(folder).coverage.notes
    (folder / "test" / "good" / "0.png").unlink()
    assert (
        "no test image of nut without a defect (in test/good): AUROC is not defined"
        in own(folder).coverage.notes
    )
