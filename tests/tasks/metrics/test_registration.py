"""Parts and turned copies of drawn pictures, and pictures that only look alike."""

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter

from layerboard.tasks.metrics.registration import SIDE, Picture, show_the_same

PAIR = np.array([[0, 1]])


def drawn(seed: int, width: int = 192, height: int = 144) -> Image.Image:
    """Shades and details of every size, as photographs have them."""
    random = np.random.default_rng(seed)
    layers = [sigma * gaussian_filter(random.normal(size=(height, width)), sigma) for sigma in (1, 3, 9, 27)]
    values = np.sum(layers, axis=0)
    return Image.fromarray(np.clip(128 + 50 * values / values.std(), 0, 255).astype(np.uint8))


def small(image: Image.Image) -> Picture:
    width, height = (round(SIDE * length / min(image.size)) for length in image.size)
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))


def cropped(image: Image.Image, left: float, top: float, share: float) -> Image.Image:
    width, height = (round(length * share) for length in image.size)
    x, y = round(left * (image.width - width)), round(top * (image.height - height))
    return image.crop((x, y, x + width, y + height))


@pytest.mark.parametrize("share", [0.95, 0.84, 0.72])
@pytest.mark.parametrize("corner", [(0, 0), (1, 1), (0.4, 0.7), (1, 0.1)])
def test_a_crop_is_found_in_either_order(share: float, corner: tuple[float, float]) -> None:
    image = drawn(1)
    pictures = [small(image), small(cropped(image, *corner, share))]
    assert show_the_same(pictures, PAIR).all()
    assert show_the_same(pictures[::-1], PAIR).all()


@pytest.mark.parametrize("angle", [-13, -4, 7, 10])
def test_a_turned_image_is_found_whose_corners_are_black(angle: float) -> None:
    image = drawn(2)
    turned = image.rotate(angle, Image.Resampling.BICUBIC)
    assert show_the_same([small(image), small(turned)], PAIR).all()


def test_a_square_out_of_a_wide_image_is_found() -> None:
    image = drawn(3, 288)
    assert show_the_same([small(image), small(image.crop((20, 10, 140, 130)))], PAIR).all()


@pytest.mark.parametrize("bar", [(0, 122, 192, 144), (0, 0, 192, 25)])
def test_a_captioned_image_is_found(bar: tuple[int, int, int, int]) -> None:
    image = drawn(4)
    captioned = image.copy()
    captioned.paste(255, bar)
    assert show_the_same([small(image), small(captioned)], PAIR).all()


def test_other_images_are_not_the_same_though_their_shades_are() -> None:
    pictures = [small(drawn(seed)) for seed in range(12)]
    shade = gaussian_filter(np.random.default_rng(0).normal(size=pictures[0].shape), 12)
    shade = 80 * shade / np.abs(shade).max()
    alike = [np.clip(0.15 * each + 100 + shade, 0, 255).astype(np.uint8) for each in pictures]
    pairs = np.argwhere(np.triu(np.ones((12, 12)), 1))
    assert np.corrcoef([each.ravel() for each in alike]).min() > 0.8
    assert not show_the_same(alike, pairs).any()


def test_stripes_are_the_same_only_where_their_shades_are() -> None:
    stripes = 40 * np.sign(np.sin(np.arange(SIDE) / 2))[None].repeat(SIDE, axis=0)
    ramp = np.linspace(-60, 60, SIDE)[:, None]
    first, second = ((128 + stripes + each).astype(np.uint8) for each in (ramp, -ramp))
    assert not show_the_same([first, second], PAIR).any()


def test_flat_pictures_show_nothing() -> None:
    flat: NDArray[np.uint8] = np.full((SIDE, SIDE), 90, np.uint8)
    assert not show_the_same([flat, flat, small(drawn(1))], np.array([[0, 1], [0, 2]])).any()


def test_no_pairs_are_none() -> None:
    assert show_the_same([small(drawn(1))], np.zeros((0, 2), np.int64)).shape == (0,)
