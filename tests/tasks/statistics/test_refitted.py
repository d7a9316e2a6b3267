"""Values of metrics of predictions that change if an image is not learnt from."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, mean_absolute_error, r2_score, roc_auc_score

from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.statistics import refitted
from layerboard.tasks.statistics.refitted import Metric, refitted_values

METRICS = {
    "R2": (refitted.R2, r2_score),
    "rho": (refitted.RANK_CORRELATION, lambda truth, told: spearmanr(truth, told)[0]),
    "MAE": (refitted.MEAN_ERROR, mean_absolute_error),
    "AP": (refitted.AVERAGE_PRECISION, average_precision_score),
    "AUROC": (refitted.AUROC, roc_auc_score),
}


@dataclass
class Planted:
    """Predictions and their changes [targets images units], as they are given."""

    predicted: Floats
    change: Floats

    def changes(self) -> Floats:
        return self.change

    def moved(self, slopes: Floats) -> Floats:
        return np.asarray(np.einsum("mit,tiu->mut", slopes, self.change), np.float64)


def planted(count: int, units: int, size: float, name: str) -> tuple[Floats, Planted]:
    random = np.random.default_rng(count)
    truth = random.normal(size=(count, 2))
    predicted = truth + random.normal(size=truth.shape)
    if name in ("AP", "AUROC"):
        truth = (truth > 0.5).astype(np.float64)
    return truth, Planted(predicted, size * random.normal(size=(2, count, units)) / count)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("ties", [False, True])
def test_of_few_images_each_unit_is_left_out(name: str, ties: bool) -> None:
    metric, library = METRICS[name]
    truth, held_out = planted(24, 8, 4, name)
    if ties:
        held_out = Planted(held_out.predicted.round(), held_out.change.round())
    unit, tested = np.arange(24) // 3, np.arange(24) < 21
    found = refitted_values({"": metric}, truth, held_out, unit, tested, [1])[""][:, 0]
    true, told = truth[tested, 1], held_out.predicted[tested, 1]
    score = library(true, told)
    assert found.mean() == pytest.approx(score)
    rest = []
    for left in range(7):
        kept = unit[tested] != left
        others = told + held_out.change[1, tested, left]
        rest.append(library(true[kept], others[kept]))
    falls = (score - np.array(rest)) * 6 / 7
    sums = (found - score).reshape(7, 3).sum(axis=1) / 21
    np.testing.assert_allclose(sums, falls - falls.mean(), atol=1e-9)


@pytest.mark.parametrize("name", METRICS)
def test_of_many_images_the_derivatives_say_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each unit's changes are alike for all images, as those of a model are that learnt from a few."""
    metric: Metric = METRICS[name][0]
    truth, held_out = planted(400, 400, 0.0, name)
    random, tested, unit = np.random.default_rng(3), np.ones(400, np.bool_), np.arange(400)
    direction = truth + 0.5 * random.normal(size=truth.shape)
    held_out.change[:] = direction.T[:, :, None] * random.normal(size=400) * 8 / 400
    by_slopes = refitted_values({"": metric}, truth, held_out, unit, tested, [0, 1])[""]
    monkeypatch.setattr(refitted, "CELLS", 400**2)
    again = refitted_values({"": metric}, truth, held_out, unit, tested, [0, 1])[""]
    np.testing.assert_allclose(by_slopes.mean(axis=0), again.mean(axis=0), rtol=1e-9)
    for one, other in zip(by_slopes.T, again.T, strict=True):
        assert np.corrcoef(one, other)[0, 1] > 0.95
        assert one.std() == pytest.approx(other.std(), rel=0.1)


def test_what_is_undefined_without_a_unit_counts_as_no_change() -> None:
    truth, predicted = np.zeros((6, 1)), np.arange(6.0)[:, None]
    truth[5] = 1
    values = refitted_values(
        {"AUROC": refitted.AUROC, "R2": refitted.R2},
        truth,
        Planted(predicted, np.zeros((1, 6, 6))),
        np.arange(6),
        np.ones(6, np.bool_),
        [0],
    )
    assert values["AUROC"].ravel().tolist() == [1] * 6
    assert np.isfinite(values["R2"]).all()
