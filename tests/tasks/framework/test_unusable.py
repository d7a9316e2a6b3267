"""Features that cannot be scored: metrics refuse them, tasks leave an empty outcome, and both say why."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from layerboard.tasks.clustering.kmeans import kmeans_starts
from layerboard.tasks.metrics.neighbours import nearest, top_k_correct, vote
from layerboard.tasks.propagation.j_and_f import statistics
from layerboard.tasks.propagation.metric import decode
from layerboard.tasks.retrieval.ranking import rank, revisited
from layerboard.tasks.similarity.metric import centred_gram
from tests.tasks.agreement.correspondence import match
from tests.tasks.agreement.similarity import cka
from tests.tasks.standard import HEARD, KMEANS, TEMPERATURE, LayerPropagation

Floats = NDArray[np.float32]


def spoilt(shape: tuple[int, ...], value: float) -> Floats:
    """Random numbers, the last of which is another value."""
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    array.flat[-1] = value
    return array


def tensor(value: float, *shape: int) -> torch.Tensor:
    return torch.from_numpy(spoilt(shape, value))


METRICS: dict[str, Callable[[float], object]] = {
    "bank": lambda value: nearest(spoilt((5, 3), value), spoilt((2, 3), 1), 1),
    "queries": lambda value: nearest(spoilt((5, 3), 1), spoilt((2, 3), value), 1),
    "kmeans": lambda value: kmeans_starts(spoilt((5, 3), value), 2, **KMEANS)[0],
    "label map": lambda value: decode(tensor(value, 2, 3, 4), (24, 16), 8),
    "frames": lambda value: statistics(np.array([0.5, value])),
    "gram": lambda value: centred_gram(tensor(value, 5, 3)),
    "scaled gram": lambda value: centred_gram(tensor(value, 5, 3), min_max=True),
    "unbiased": lambda value: cka(tensor(1, 5, 3), tensor(value, 5, 3)),
    "biased": lambda value: cka(tensor(value, 5, 3), tensor(1, 5, 3), "biased"),
}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", METRICS)
def test_metrics_refuse_one_value_that_is_not_finite(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=r"NaN|finite"):
        METRICS[name](value)


EMPTY: dict[str, Callable[[], object]] = {
    "bank": lambda: nearest(spoilt((1, 3), 1)[:0], spoilt((2, 3), 1), 1),
    "vectors of no number": lambda: nearest(np.zeros((2, 0), np.float32), np.zeros((2, 0), np.float32), 1),
    "kmeans": lambda: kmeans_starts(np.zeros((0, 3), np.float32), 1, **KMEANS)[0],
    "kmeans of no number": lambda: kmeans_starts(np.zeros((3, 0), np.float32), 1, **KMEANS)[0],
    "frames": lambda: statistics(np.zeros(0)),
    "gram": lambda: centred_gram(torch.zeros(0, 3)),
    "gram of no number": lambda: centred_gram(torch.zeros(5, 0)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_metrics_refuse_what_is_empty(name: str) -> None:
    with pytest.raises(ValueError, match=r"expected|at least one|cannot find"):
        EMPTY[name]()


@pytest.mark.parametrize("value", [0.0, 1e-30, 7.3, 1e18])
def test_metrics_of_constant_features_are_finite_or_not_defined(value: float) -> None:
    rows, grid = np.full((6, 3), value, np.float32), torch.full((2, 3, 4), value)
    found = nearest(rows, rows, 4)
    assert np.isfinite(found.similarity).all()
    classes = np.arange(6) % 2
    assert top_k_correct(vote(found, classes, 4, 2, TEMPERATURE), classes, 1).mean() == 0.5
    ranks = rank(rows @ np.zeros((3, 1), np.float32))
    positive, none = [np.array([2])], [np.zeros(0, np.int64)]
    assert revisited(ranks, positive, none, none, "easy")["mAP"] == pytest.approx(1 / 6)
    assert match(grid.flatten(0, 1), grid, 8).isfinite().all()
    soft = LayerPropagation(grid, torch.ones(2, 3, 2) / 2, HEARD).step(grid)
    torch.testing.assert_close(soft, torch.full((2, 3, 2), 0.5))
    assert (centred_gram(torch.from_numpy(rows)) == 0).all()
    assert np.isnan(cka(torch.from_numpy(rows), tensor(1, 6, 3)))
