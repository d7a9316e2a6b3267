"""Metrics of pixels as one value an image, against all pixels and the weight of an image."""

import numpy as np
import pytest

from layerboard.tasks.anomaly import metric as anomaly
from layerboard.tasks.anomaly.metric import CountedPixels
from layerboard.tasks.metrics.arrays import Floats, Mask

Maps = list[tuple[Floats, Mask]]


def maps(count: int, side: int, seed: int) -> Maps:
    """Maps of images, of which every third has a defect of one or two regions; values are tied."""
    rng = np.random.default_rng(seed)
    every = []
    for number in range(count):
        mask = np.zeros((side, side), np.bool_)
        for row in (1, side - 4) if number % 3 == 0 else ():
            mask[row : row + int(rng.integers(1, 4)), : int(rng.integers(1, side))] = rng.random() < 0.8
        every.append(((rng.normal(size=(side, side)) + rng.normal() / 2 + 1.5 * mask).round(1), mask))
    return every


def pooled(images: Maps) -> list[float]:
    pixels = anomaly.pooled_pixels(images)
    return [pixels.auroc, pixels.f1_max, pixels.au_pro(0.3), pixels.au_pro(0.05)]


def by_image(images: Maps) -> list[Floats]:
    counted = anomaly.pooled_pixels(images).images
    assert isinstance(counted, CountedPixels)
    return [counted.area_under_roc(), counted.f1_max(), counted.au_pro(0.3), counted.au_pro(0.05)]


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_is_the_metric_of_all_pixels(seed: int) -> None:
    images = maps(9, 10, seed)
    assert [values.mean() for values in by_image(images)] == pytest.approx(pooled(images), abs=1e-9)


def test_pixels_of_many_values_are_counted_in_steps() -> None:
    images = [
        (values + np.random.default_rng(1).random(values.shape), mask) for values, mask in maps(9, 60, 1)
    ]
    counted = anomaly.pooled_pixels(images).images
    assert counted is not None
    assert counted.good.shape[1] < 2_100
    assert counted.good.sum() + counted.defective.sum() == 9 * 60 * 60
    assert [values.mean() for values in by_image(images)] == pytest.approx(pooled(images), abs=1e-3)


def test_a_value_is_how_much_the_metric_rises_with_the_weight_of_an_image() -> None:
    images, times = maps(6, 8, 5), 100  # each image is there so often, and one once more
    plain, values = pooled(images), by_image(images)
    for number in range(6):
        risen = pooled([*images * times, images[number]])
        for before, after, each in zip(plain, risen, values, strict=True):
            assert (after - before) * times == pytest.approx((each[number] - before) / 6, abs=2e-3)


def test_without_pixels_of_both_kinds_nothing_is_counted() -> None:
    values = np.arange(16.0).reshape(4, 4)
    assert anomaly.pooled_pixels([(values, np.zeros((4, 4), np.bool_))]).images is None
    assert anomaly.pooled_pixels([(values, np.ones((4, 4), np.bool_))]).images is None
