"""Metrics as means of one value an image: against libraries, and against what a weight changes."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, precision_recall_curve, r2_score, roc_auc_score

from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.statistics import linearised
from layerboard.tasks.statistics.linearised import placements

Metric = Callable[[Floats, Floats], Floats]


def largest_f1(truth: Floats, scores: Floats) -> float:
    precision, recall, _ = precision_recall_curve(truth > 0, scores)
    return float((2 * precision * recall / np.maximum(precision + recall, 1e-12)).max())


METRICS: dict[str, tuple[Metric, Callable[..., float]]] = {
    "R2": (linearised.r2_values, r2_score),
    "rho": (linearised.rank_correlation_values, lambda truth, predicted: spearmanr(truth, predicted)[0]),
    "AP": (
        lambda truth, scores: linearised.average_precision_values(truth > 0, scores),
        average_precision_score,
    ),
    "AUROC": (lambda truth, scores: linearised.area_under_roc(truth > 0, scores), roc_auc_score),
    "F1": (lambda truth, scores: linearised.f1_max_values(truth > 0, scores), largest_f1),
}


def pairs(name: str, count: int, seed: int) -> tuple[Floats, Floats]:
    """A truth and predictions of it, both with ties."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=count).round(1)
    predicted = (truth + rng.normal(size=count)).round(1)
    return ((truth > 0.3).astype(float) if name in ("AP", "AUROC", "F1") else truth), predicted


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", METRICS)
def test_the_mean_is_what_the_library_says(name: str, seed: int) -> None:
    metric, library = METRICS[name]
    truth, predicted = pairs(name, 40, seed)
    assert metric(truth, predicted).mean() == pytest.approx(library(truth, predicted), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["R2", "AP", "AUROC"])
def test_a_value_is_how_much_the_metric_falls_without_an_image(name: str, seed: int) -> None:
    metric, library = METRICS[name]
    truth, predicted = pairs(name, 25, seed)
    every = [np.arange(25) != image for image in range(25)]
    falls = 24 * (
        library(truth, predicted) - np.array([library(truth[rows], predicted[rows]) for rows in every])
    )
    values = metric(truth, predicted)
    assert values - values.mean() == pytest.approx(falls - falls.mean(), abs=1e-9)


def test_the_only_image_of_a_kind_cannot_be_left_out() -> None:
    alone, scores = np.arange(12) == 5, np.arange(12.0)
    for metric in (linearised.average_precision_values, linearised.area_under_roc):
        assert np.isfinite(metric(alone, scores)).all()
    assert np.isfinite(linearised.r2_values(alone.astype(float), scores)).all()


@pytest.mark.parametrize("name", ["rho", "F1"])
def test_a_value_is_how_much_the_metric_rises_with_the_weight_of_an_image(name: str) -> None:
    metric, library = METRICS[name]
    truth, predicted = pairs(name, 25, 0)
    values, times = metric(truth, predicted), 400  # each image is there so often, and one once more
    plain = library(truth, predicted)
    for image in range(25):
        rows = np.append(np.repeat(np.arange(25), times), image)
        rise = (library(truth[rows], predicted[rows]) - plain) * times
        assert rise == pytest.approx((values[image] - plain) / 25, abs=2e-3)


@pytest.mark.parametrize("name", METRICS)
def test_nothing_is_said_of_a_truth_that_is_the_same_for_all(name: str) -> None:
    assert np.isnan(METRICS[name][0](np.zeros(6), np.arange(6.0))).all()


@pytest.mark.parametrize("count", [1, 6])
@pytest.mark.parametrize("name", ["AP", "F1"])
def test_where_all_images_are_relevant_nothing_can_be_wrong(name: str, count: int) -> None:
    assert METRICS[name][0](np.ones(count), np.arange(count) / 3).tolist() == [1.0] * count


def test_ranks_of_predictions_that_are_all_alike_say_nothing() -> None:
    assert np.isnan(linearised.rank_correlation_values(np.arange(4.0), np.ones(4))).all()


def test_images_of_either_kind_vary_apart() -> None:
    """The values of AUROC are then those of DeLong, but for what an image less of its kind makes of it."""
    truth, scores = pairs("AUROC", 60, 3)
    values, relevant = linearised.area_under_roc(truth > 0, scores), truth > 0
    apart = linearised.of_either_kind(float(values.mean()), values, relevant)
    delong, mean = placements(scores, relevant).pseudo_values, values.mean()
    counts = np.where(relevant, relevant.sum(), (~relevant).sum())
    assert apart - mean == pytest.approx((delong - mean) * counts / (counts - 1) * 59 / 60)
    for kind in (relevant, ~relevant):
        assert apart[kind].mean() == pytest.approx(values.mean())
