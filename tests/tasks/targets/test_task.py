"""Regression of numbers and several labels an image, on vectors that are planted."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, mean_absolute_error, r2_score, roc_auc_score

from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.targets import ImageLabels, ImageNumbers, Targets
from layerboard.tasks.framework.assess import intervals_of
from layerboard.tasks.framework.base import Outcome
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING
from layerboard.tasks.statistics.linearised import r2_values
from layerboard.tasks.targets.held_out import RidgePredictions
from layerboard.tasks.targets.task import MultilabelTask, RegressTask, TargetTask
from tests.tasks.passes import by_metric

COUNT = 60
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(COUNT, 12)).astype(np.float32)


def targets(kind: type[Targets], values: NDArray[np.generic], *names: str) -> Targets:
    samples = tuple(FileSample(f"{number}.png", "") for number in range(COUNT))
    groups = tuple(sample.key for sample in samples)
    columns = np.asarray(values, np.float64).reshape(COUNT, -1)
    return kind("planted", samples, columns, names, np.arange(COUNT) % 5, groups, Coverage(()))


def outcome(task: TargetTask, vectors: NDArray[np.float32] = VECTORS) -> Outcome:
    (source,) = task.vector_sources
    return task.score({source.name: vectors})


def regress(values: NDArray[np.generic], *names: str) -> RegressTask:
    return RegressTask(targets(ImageNumbers, values, *(names or ("x",))), RegressTask.configs["standard"])


def multilabel(values: NDArray[np.generic]) -> MultilabelTask:
    names = [f"l{number}" for number in range(np.shape(values)[1])]
    return MultilabelTask(targets(ImageLabels, values, *names), MultilabelTask.configs["standard"])


def predicted(values: Floats) -> Floats:
    penalties = RegressTask.configs["standard"].penalties
    return RidgePredictions.of(VECTORS, values, np.arange(COUNT) % 5, np.arange(COUNT), penalties).predicted


def test_scores_are_those_of_scikit_learn() -> None:
    values = VECTORS[:, 0] + RNG.normal(size=COUNT)
    result = outcome(regress(values))
    told = predicted(values.reshape(-1, 1))[:, 0]
    scores = by_metric(result)
    assert scores["R2"] == pytest.approx(100 * r2_score(values, told), abs=1e-9)
    assert scores["MAE"] == pytest.approx(mean_absolute_error(values, told), abs=1e-9)


def test_several_targets_have_scores_of_their_own_and_a_mean() -> None:
    values = np.stack([VECTORS[:, 0], 100 * VECTORS[:, 1] + 50 * RNG.normal(size=COUNT)], axis=1)
    result = outcome(regress(values, "x", "y"))
    scores = by_metric(result)
    assert next(iter(scores)) == "R2"
    assert scores["R2"] == pytest.approx((scores["R2 x"] + scores["R2 y"]) / 2)
    assert {"rho x", "rho y", "MAE x", "MAE y"} <= {*scores}
    assert result.missing == {"MAE": "each number has an error in its own unit"}


def test_a_constant_target_has_no_score_and_a_reason() -> None:
    result = outcome(regress(np.stack([np.ones(COUNT), VECTORS[:, 0]], axis=1), "x", "y"))
    assert result.missing["R2 x"] == "x is the same for all images"
    assert by_metric(result)["R2"] == by_metric(result)["R2 y"]


def test_a_split_is_kept_and_groups_are_clusters() -> None:
    task = regress(VECTORS[:, 4])
    fold = np.where(np.arange(COUNT) < 40, ALWAYS_TRAINING, 0)
    groups = tuple(str(number % 4) for number in range(COUNT))
    result = outcome(replace(task, data=replace(task.data, fold=fold, groups=groups)))
    assert result.items is not None
    assert result.items.keys == tuple(f"{number}.png" for number in range(40, COUNT))
    assert {*result.items.clusters} == {"0", "1", "2", "3"}
    split = replace(task, data=replace(task.data, fold=fold))
    assert task.fingerprint != split.fingerprint
    assert not task.transform_refusal("int8")
    assert split.transform_refusal("int8").endswith("take the split out of the table")


def test_labels_are_scored_as_by_scikit_learn() -> None:
    values = (VECTORS[:, :3] + 0.7 * RNG.normal(size=(COUNT, 3)) > 0).astype(np.float64)
    result = outcome(multilabel(values))
    told = predicted(values)
    scores = by_metric(result)
    assert scores["macro AP"] == pytest.approx(100 * average_precision_score(values, told), abs=1e-9)
    assert scores["macro AUROC"] == pytest.approx(100 * roc_auc_score(values, told), abs=1e-9)
    assert 50 < scores["macro AUROC k-NN"] < scores["macro AUROC"]


def test_labels_that_a_fold_lacks_do_not_count() -> None:
    values = (VECTORS[:, :2] > 0).astype(np.float64)
    rare = np.zeros(COUNT)
    rare[3] = 1
    alone = by_metric(outcome(multilabel(values)))
    assert by_metric(outcome(multilabel(np.column_stack([values, rare, np.ones(COUNT)])))) == alone


def test_examples_of_numbers_far_from_zero_are_as_far() -> None:
    task = regress(2.0**40 + VECTORS[:, 4].astype(np.float64))
    assert {*outcome(task).predicted["predicted"]} == {*task.facts()["truth"]} == {"1.1e+12"}


@pytest.mark.parametrize("count", [20, 40])
def test_ends_stay_in_the_range_of_the_metric(count: int) -> None:
    """Of few images R2 is at most 100, rho within 100 of 0; errors of fewer than 200 have no interval."""
    vectors = np.where(np.arange(COUNT)[:, None] < count, VECTORS, np.nan).astype(np.float32)
    for noise in (0.05, 1.0, 30.0):
        result = outcome(regress(VECTORS[:, 4] + noise * RNG.normal(size=COUNT)), vectors)
        assert result.items is not None
        ends = {metric: interval for metric, (interval,) in intervals_of([result.items]).items()}
        scores = by_metric(result)
        assert ends["R2"][0] < scores["R2"] < ends["R2"][1] <= 100
        assert -100 <= ends["rho"][0] < scores["rho"] < ends["rho"][1] <= 100
        assert np.isnan(ends["MAE"]).all()


def test_the_interval_counts_what_each_image_teaches() -> None:
    """With more features than images the fits vary more than the tested images alone show."""
    wide = RNG.normal(size=(COUNT, 200)).astype(np.float32)
    values = wide[:, :12].sum(axis=1) / 3 + RNG.normal(size=COUNT)
    result = outcome(regress(values), wide)
    assert result.items is not None
    fold, penalties = np.arange(COUNT) % 5, RegressTask.configs["standard"].penalties
    told = RidgePredictions.of(wide, values[:, None], fold, np.arange(COUNT), penalties).predicted[:, 0]
    assert result.items.values["R2"].std() > 1.2 * 100 * r2_values(values, told).std()
