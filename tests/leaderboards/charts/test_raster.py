import base64
import io

import numpy as np
import pytest
from PIL import Image

from layerboard.leaderboards.charts.raster import (
    FEW_LEVELS,
    GAP,
    LEVELS,
    Sheet,
    colour_levels,
    colour_steps,
    map_png,
    own_span,
    smaller,
)
from tests.leaderboards.colours import VISIONS, lab

NAN = float("nan")


def opened(address):
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGBA"))


def test_small_maps_have_fewer_levels_with_the_same_ends():
    ramp = np.linspace(0, 1, LEVELS)[None]
    halves = {(0, 0): ramp[:, : LEVELS // 2], (0, 1): ramp[:, LEVELS // 2 :]}  # wider ones are averaged
    drawn = opened(Sheet(1, 2, (1, LEVELS // 2)).maps(halves, (0, 1)))[0, :, :3]
    pixels = np.delete(drawn, slice(LEVELS // 2, LEVELS // 2 + GAP), axis=0)
    few = np.unique(pixels, axis=0)
    assert len(few) == FEW_LEVELS
    assert pixels[0].tolist() == colour_steps()[0].tolist()
    assert pixels[-1].tolist() == colour_steps()[-1].tolist()
    assert {tuple(colour) for colour in few.tolist()} <= {tuple(colour) for colour in colour_steps().tolist()}
    levels = [colour_steps().tolist().index(pixel) for pixel in pixels.tolist()]
    assert np.abs(np.array(levels) - np.arange(LEVELS)).max() <= 1


def test_frames_lie_around_their_cells_and_touch_no_other():
    sheet = Sheet(2, 2, (8, 8), framed=True)
    pixels = opened(sheet.frames({(0, 0): "#d55e00", (1, 1): "#888888"}))
    assert pixels.shape[:2] == sheet.shape
    assert pixels[0, 0].tolist() == [213, 94, 0, 255]
    assert pixels[-1, -1].tolist() == [136, 136, 136, 255]
    ink = pixels[:, :, 3] > 0
    assert ink.sum() == 2 * (12 * 12 - 8 * 8)
    assert not ink[2:10, 2:10].any()
    maps = opened(sheet.maps({(0, 0): np.ones((2, 2)), (1, 1): np.ones((2, 2))}, None))[:, :, 3] > 0
    assert maps.sum() == 2 * 8 * 8
    assert not (maps & ink).any()


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_go_up_in_lightness_for_all_readers(vision):
    steps = np.diff(lab(colour_steps(), vision)[:, 0])
    assert steps.min() > 0
    if vision == "usual":
        assert steps == pytest.approx(steps.mean(), rel=0.35)
        assert steps.sum() > 60


def test_levels_span_the_colours_and_leave_holes():
    values = np.array([[0.0, 0.5, 1.0, NAN, np.inf]])
    assert colour_levels(values, None).tolist() == [[1, LEVELS // 2 + 1, LEVELS, 0, 0]]
    assert colour_levels(values, (0.5, 0.75)).tolist() == [[1, 1, LEVELS, 0, 0]]
    assert set(colour_levels(np.full((2, 2), 7.0), None).flatten()) == {LEVELS // 2 + 1}
    assert not colour_levels(np.full((2, 2), NAN), None).any()


def test_the_span_of_several_maps():
    assert own_span([np.array([1.0, NAN]), np.array([-2.0, 3.0]), np.array([NAN])]) == (-2.0, 3.0)
    assert own_span([np.array([NAN])]) is None


def test_a_map_has_a_pixel_a_cell_in_its_colour():
    pixels = opened(map_png(np.array([[0.0, 1.0], [NAN, 0.5]]), None, 32))
    assert pixels.shape == (2, 2, 4)
    assert pixels[0, 0, :3].tolist() == colour_steps()[0].tolist()
    assert pixels[0, 1, :3].tolist() == colour_steps()[-1].tolist()
    assert pixels[..., 3].tolist() == [[255, 255], [0, 255]]


def test_large_maps_are_averaged_without_their_holes():
    values = np.arange(12.0).reshape(3, 4)
    values[0, 0] = NAN
    assert smaller(values, 4) is values
    assert smaller(values, 2).tolist() == [[pytest.approx(10 / 3), 4.5], [8.5, 10.5]]
    assert smaller(np.full((4, 4), NAN), 2).tolist() == [[pytest.approx(NAN, nan_ok=True)] * 2] * 2
    assert opened(map_png(np.zeros((100, 3)), None, 32)).shape[:2] == (25, 3)


def test_a_sheet_stretches_maps_into_their_cells():
    sheet = Sheet(1, 2, (4, 4))
    pixels = opened(sheet.maps({(0, 0): np.eye(2), (0, 1): np.array([[NAN]])}, None))
    assert pixels.shape[:2] == sheet.shape == (4, 8 + GAP)
    low, high = colour_steps()[0].tolist(), colour_steps()[-1].tolist()
    assert pixels[:2, :2, :3].tolist() == [[high] * 2] * 2
    assert pixels[:2, 2:4, :3].tolist() == [[low] * 2] * 2
    assert not pixels[:, 4:, 3].any()


def test_a_veil_is_thick_where_a_map_is_low():
    pixels = opened(Sheet(1, 1, (1, 2)).veils({(0, 0): np.array([[0.0, 1.0]])}))
    assert not pixels[..., :3].any()
    assert pixels[0, 0, 3] > 200
    assert pixels[0, 1, 3] == 0
    middle = opened(Sheet(1, 1, (1, 3)).veils({(0, 0): np.array([[0.0, 0.25, 1.0]])}))
    assert middle[0, 1, 3] == pytest.approx(middle[0, 0, 3] / 2, abs=4)  # the root of a quarter


def test_colours_stay_what_they_are():
    image = np.zeros((2, 2, 3), np.uint8)
    image[0] = (255, 0, 0)
    pixels = opened(Sheet(1, 2, (2, 2)).images({(0, 0): image}))
    assert pixels[:2, :2, :3].tolist() == image.tolist()
    assert not pixels[:, 2:, 3].any()


def test_images_are_stretched_to_their_cells_and_shrink_by_means():
    image = np.zeros((4, 8, 3), np.uint8)
    image[::2] = 200
    pixels = opened(Sheet(1, 1, (2, 4)).images({(0, 0): image}))
    assert pixels.shape[:2] == (2, 4)
    assert (pixels[..., :3] == 100).all()
