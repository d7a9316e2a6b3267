import numpy as np
import pytest
from pycocotools import mask as coco_mask

from layerboard.tasks.datasets.coco import CocoRegion, read_polygons, read_run_lengths
from layerboard.zoo.errors import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)
"""pycocotools 2.0.11 with numpy 2."""
SIZE = (17, 12)


def draw(seed: int) -> np.ndarray:
    draws = np.random.default_rng(seed)
    return (draws.random(SIZE[::-1]) < draws.random()).astype(np.uint8)


@pytest.mark.parametrize("seed", range(8))
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
