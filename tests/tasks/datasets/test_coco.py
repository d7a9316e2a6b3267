import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO

from layerboard.tasks.datasets.coco import CocoEntry, CocoRegion, read_polygons, read_run_lengths
from layerboard.zoo.errors import InputError
from tests.fakes import write_fake_coco
from tests.tasks.datasets.cases import fields, last

pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)
"""pycocotools 2.0.11 with numpy 2."""
MINI = CocoEntry(images=4, first=4)
JSON = "annotations/instances_val2017.json"


def test_regions_have_keys_and_categories(tmp_path: Path) -> None:
    write_fake_coco(tmp_path)
    dataset = MINI.read(tmp_path)
    assert dataset.categories == {1: "person", 2: "cat"}
    assert [image.sample.key for image in dataset.images] == [
        f"{identity:012d}.jpg" for identity in (1, 2, 3)
    ]
    image = dataset.images[0]
    assert [region.key for region in image.regions] == ["000000000001.jpg/10", "000000000001.jpg/11"]
    assert [region.label for region in image.regions] == [2, 2]
    assert image.regions[0].mask().shape == (44, 60)
    assert image.regions[0].mask().dtype == np.uint8


def test_masks_equal_pycocotools(tmp_path: Path) -> None:
    path = write_fake_coco(tmp_path) / JSON
    with contextlib.redirect_stdout(io.StringIO()):
        oracle = COCO(str(path))
    regions = [region for image in MINI.read(tmp_path).images for region in image.regions]
    for region in regions:
        expected = oracle.annToMask(oracle.anns[int(region.key.split("/")[1])])
        np.testing.assert_array_equal(region.mask(), expected)
        assert 0 < expected.sum() < expected.size


def test_damaged_run_lengths_name_the_region() -> None:
    region = CocoRegion("image/7", 1, (17, 12), {"size": [12, 17], "counts": "a"})
    with pytest.raises(InputError, match="segmentation that pycocotools reads in image/7"):
        region.mask()


def test_first_images_count_even_without_annotations(tmp_path: Path) -> None:
    path = write_fake_coco(tmp_path) / JSON
    annotations = json.loads(path.read_text())["annotations"]
    fields(annotations=[each for each in annotations if each["image_id"] != 1])(path)
    dataset = CocoEntry(images=4, first=2).read(tmp_path)
    assert [image.sample.key for image in dataset.images] == ["000000000002.jpg"]
    assert not dataset.coverage.partial


def test_other_place_of_images(tmp_path: Path) -> None:
    folder = write_fake_coco(tmp_path)
    (folder / "images/val2017").rename(folder / "val2017")
    assert len(MINI.read(tmp_path).images) == 3


@pytest.mark.parametrize("shape", [[[1, 2, 3, 4]], []])
def test_objects_that_are_a_line_are_left_out(tmp_path: Path, shape: list[list[int]]) -> None:
    last(segmentation=shape)(write_fake_coco(tmp_path) / JSON)
    assert sum(len(image.regions) for image in MINI.read(tmp_path).images) == 5


def test_annotations_of_unlisted_images_are_noted(tmp_path: Path) -> None:
    last(image_id=99)(write_fake_coco(tmp_path) / JSON)
    coverage = MINI.read(tmp_path).coverage
    assert coverage.partial
    assert "1 annotations of instances_val2017.json belong to images that it does not list" in str(coverage)


SIZE = (17, 12)


def draw(seed: int) -> np.ndarray:
    draws = np.random.default_rng(seed)
    return (draws.random(SIZE[::-1]) < draws.random()).astype(np.uint8)


@pytest.mark.parametrize("seed", range(3))
def test_run_lengths_in_both_forms_give_the_mask(seed: int) -> None:
    mask = draw(seed)
    text = coco_mask.encode(np.asfortranarray(mask))["counts"].decode()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.T.ravel()]))).tolist()
    listed = np.diff([0, *edges, mask.size]).tolist()
    for counts in (text, listed, [float(run) for run in listed]):
        shape = read_run_lengths({"size": [12, 17], "counts": counts}, SIZE, "here")
        np.testing.assert_array_equal(CocoRegion("a", 1, SIZE, shape).mask(), mask)


def test_long_runs_and_an_empty_mask() -> None:
    mask = np.zeros((1500, 2000), np.uint8)
    for filled in (0, 1):
        mask[700:, 300:1900] = filled
        text = coco_mask.encode(np.asfortranarray(mask))["counts"].decode()
        read_run_lengths({"size": [1500, 2000], "counts": text}, (2000, 1500), "here")


@pytest.mark.parametrize(
    "counts",
    [
        "11",  # one and one: shorter than the image, whose rest would be whatever memory holds
        "",
        "a",  # says that more follows
        "T6`",
        "\u00e4\u00f6",
        "T6 ",
        "PPPPPPPPPPPP1",
        "oooooooooo0",
        "T6O1",  # 204, then -1 and 1
        [],
        [204, -1, 1],
        [203.5, 0.5],
        [2**40],
        [10**400, 1],
        [float("inf")],
        [True] * 204,
        ["204"],
        204,
        None,
    ],
)
def test_run_lengths_that_are_not_those_of_the_image(counts: object) -> None:
    with pytest.raises(InputError, match="add up to the 204 pixels of the image in here"):
        read_run_lengths({"size": [12, 17], "counts": counts}, SIZE, "here")


@pytest.mark.parametrize("far", [2**31, -(2**31), 1e8, 35, -18, 1e308])
@pytest.mark.parametrize("axis", [0, 1])
def test_polygons_far_outside_the_image(far: float, axis: int) -> None:
    polygon = [1.0, 1.0, 9.0, 1.0, 9.0, 9.0]
    polygon[2 + axis] = far
    with pytest.raises(InputError, match=f"17 x 12 pixels, found the {'xy'[axis]} coordinate"):
        read_polygons([polygon], SIZE, "here")


def test_polygons_a_little_outside_are_cut_off() -> None:
    polygons = read_polygons([[-1.5, -0.01, 17.5, 0, 18, 12.02, -1, 13]], SIZE, "here")
    assert CocoRegion("a", 1, SIZE, polygons).mask().all()


def test_outline_without_end() -> None:
    there_and_back = [0, 0, 2000, 0] * 1500
    with pytest.raises(
        InputError, match=r"at most 4,194,304 pixels of outline in here, found one of 6,000,000"
    ):
        read_polygons([there_and_back], (2000, 1500), "here")
    with pytest.raises(InputError, match="expected polygons"):
        read_polygons([[1, 2, 10**400, 3]], SIZE, "here")
