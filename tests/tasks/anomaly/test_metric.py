"""Scores of anomaly detection and their errors, beside what AnomalyDINO decides (`tests.tasks.agreement`)."""

import numpy as np
import pytest

from layerboard.tasks.anomaly import metric as anomaly
from layerboard.tasks.anomaly.metric import CountedPixels
from layerboard.tasks.anomaly.references import Draws
from layerboard.tasks.metrics.arrays import Floats, Mask
from layerboard.tasks.statistics import linearised


def test_draws_of_references_follow_each_other_and_the_last_may_be_short_or_empty() -> None:
    drawn = Draws((4,), 5).of(11)
    assert [*map(list, drawn.values())] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10], [], []]


def tied(seed: int, count: int = 60) -> tuple[Floats, Mask]:
    """Scores with ties, and which are of defects."""
    rng = np.random.default_rng(seed)
    defect = rng.random(count) < 0.3
    return rng.integers(0, 9, count) / 9 + 0.2 * defect, defect


def test_pseudo_values_have_the_auroc_and_the_variance_of_delong() -> None:
    scores, defect = tied(5)
    placed = linearised.placements(scores, defect)
    bad, good = placed.pseudo_values[defect], placed.pseudo_values[~defect]
    assert bad.mean() == pytest.approx(placed.auroc)
    assert good.mean() == pytest.approx(placed.auroc)
    psi = (scores[defect][:, None] > scores[~defect]) + 0.5 * (scores[defect][:, None] == scores[~defect])
    delong = psi.mean(1).var(ddof=1) / len(bad) + psi.mean(0).var(ddof=1) / len(good)
    assert (bad.var(ddof=1) / len(bad) + good.var(ddof=1) / len(good)) / 4 == pytest.approx(delong)


def test_what_is_not_defined_has_no_value() -> None:
    values, none, every = np.arange(6.0).reshape(2, 3), np.zeros((2, 3), np.bool_), np.ones((2, 3), np.bool_)
    for mask in (none, every):
        pixels = anomaly.pooled_pixels([(values, mask)])
        assert np.isnan([pixels.auroc, pixels.au_pro(0.3)]).all()
        assert pixels.f1_max == pytest.approx(1.0 if mask.any() else np.nan, nan_ok=True)
    assert np.isnan(linearised.placements(np.ones(2), np.zeros(2, np.bool_)).auroc)


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
