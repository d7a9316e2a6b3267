"""Few-shot and trained linear probes as tasks: which images they see, and what they say where they cannot."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from layerboard.tasks.classification.few_shot import as_tensor, draw_shots, fit_few_shot
from layerboard.tasks.classification.probes import FewShotTask, LinearTask
from layerboard.tasks.classification.softmax import held_out
from layerboard.tasks.framework.base import Outcome, Statistic
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of, entry_of
from tests.tasks.framework.test_sources import classification, probed, sources

Floats = NDArray[np.float32]
TRAIN = np.repeat(np.arange(4), 12)
VAL = np.arange(20) % 4
DATA = classification(TRAIN, VAL)
WHERE = sources(DATA, np.arange(3, 40, 2), size=7)
FEW = FewShotTask(probed(DATA, WHERE), config_of(STANDARD, "fewshot"))
LINEAR = LinearTask(probed(DATA, WHERE), config_of(STANDARD, "linear"))


def features(spread: float, dim: int = 8) -> tuple[Floats, Floats]:
    """Of the training and of the validation images."""
    generator = np.random.default_rng(0)
    means = generator.standard_normal((4, dim))
    both = (means[y] + spread * generator.standard_normal((len(y), dim)) for y in (TRAIN, VAL))
    train, val = (one.astype(np.float32) for one in both)
    return train, val


def by_source(train: Floats, val: Floats) -> dict[str, Floats]:
    """What the passes leave behind: vectors in the order of each source's images."""
    assert WHERE.rest is not None
    return {
        WHERE.probe.name: train[WHERE.probe_order],
        WHERE.rest.name: train[WHERE.rest_order],
        WHERE.val.name: val,
    }


def values(outcome: Outcome) -> dict[str, float]:
    """Accuracies by metric."""
    scores = {score.metric: score.value for score in outcome.scores}
    sure = ("top1", "top1-bn", "top1-ridge", "top1-10shot")
    assert {f"ECE {each}" for each in scores if each in sure} == {each for each in scores if "ECE" in each}
    return {metric: value for metric, value in scores.items() if not metric.startswith("ECE")}


def test_few_shot_scores_are_means_over_three_draws() -> None:
    train, val = features(2.0)
    outcome = FEW.score(by_source(train, val))
    assert list(values(outcome)) == ["top1-10shot", "top1-1shot", "top1-5shot"]
    assert outcome.items is not None
    for shots in (1, 5, 10):
        right = [
            fit_few_shot(
                as_tensor(train[draw_shots(TRAIN, 4, shots, seed)]), config_of(STANDARD, "fewshot")
            ).classified(as_tensor(val))[0]
            == VAL
            for seed in (0, 1, 2)
        ]
        metric = f"top1-{shots}shot"
        assert outcome.items.values[metric] == pytest.approx(100 * np.mean(right, axis=0))
        assert values(outcome)[metric] == pytest.approx(100 * np.mean(right))
        assert outcome.items.statistics[metric] == Statistic(metric, "draws")
        by_draw = [outcome.items.values[f"{metric} draw {row}"] for row in (1, 2, 3)]
        assert np.array_equal(by_draw, 100.0 * np.array(right))
    assert outcome.items.keys == tuple(sample.key for sample in DATA.val.samples)


def test_a_class_with_fewer_shots_than_asked_is_the_reason() -> None:
    outcome = FEW.score(by_source(*features(1.0)))
    assert outcome.missing == {
        "top1-25shot": "25 shots need 25 readable training images of every class; one class has 12"
    }
    train, val = features(1.0)
    train[:4] = np.nan  # cannot be read: class 0 has 8 left
    outcome = FEW.score(by_source(train, val))
    assert set(values(outcome)) == {"top1-1shot", "top1-5shot"}
    assert outcome.missing["top1-10shot"].endswith("one class has 8")


@pytest.mark.parametrize(("shots", "main"), [((1, 2), 2), ((2, 10, 25), 10), ((3,), 3)])
def test_the_main_metric_is_one_of_the_shots_that_were_asked_for(shots: tuple[int, ...], main: int) -> None:
    task = FewShotTask.by(replace(STANDARD, shots=shots), FEW.data, entry_of(FewShotTask))
    assert task.entry.metric == f"top1-{main}shot"
    found = task.score(by_source(*features(1.0)))
    scored = {score.metric for score in found.scores}
    assert scored | {*found.missing} == {f"top1-{count}shot" for count in shots} | {f"ECE top1-{main}shot"}


def test_the_paper_chooses_no_penalty() -> None:
    vectors = by_source(*features(3.0, dim=40))
    paper = replace(FEW, config=config_of(PAPER, "fewshot"))
    assert values(paper.score(vectors)) != values(FEW.score(vectors))


def test_the_trained_probe_is_scored_with_and_without_standardising() -> None:
    train, val = features(2.0)
    scale = np.ones(train.shape[1], np.float32)
    scale[::2] = 1e-3  # too small for every learning rate
    plain, scaled = (values(LINEAR.score(by_source(train * one, val * one))) for one in (1, scale))
    assert scaled["top1"] != plain["top1"]
    assert scaled["top1-bn"] == plain["top1-bn"]


def test_the_probe_in_closed_form_is_ridge_regression_on_all_images() -> None:
    train, val = features(2.0)
    held, penalties = held_out(TRAIN, 4, LINEAR.config), LINEAR.config.penalties

    def right(penalty: float, known: NDArray[np.bool_], asked: Floats, truth: NDArray[np.int64]) -> Any:
        sides = [(each - train[known].mean(0)) / train[known].std(0) for each in (train[known], asked)]
        learnt, new = (np.column_stack([side, np.full(len(side), 100.0)]) for side in sides)
        targets = 2.0 * np.eye(4)[TRAIN[known]] - 1
        weights = np.linalg.solve(learnt.T @ learnt + penalty * np.eye(9), learnt.T @ targets)
        return (new @ weights).argmax(1) == truth

    chosen = max((right(each, ~held, train[held], TRAIN[held]).sum(), each) for each in penalties)[1]
    outcome = LINEAR.score(by_source(train, val))
    assert outcome.items is not None
    expected = right(chosen, held | ~held, val, VAL)
    assert 0 < expected.mean() < 1
    assert np.array_equal(outcome.items.values["top1-ridge"], 100.0 * expected)
