from dataclasses import replace

import numpy as np
import pytest
import torch

from layerboard.tasks.analyses.label_free import (
    LabelFree,
    LabelFreeConfig,
    effective_rank,
    rankme,
    spectrum_decay,
)
from layerboard.tasks.framework.base import Outcome
from layerboard.tasks.framework.registry import TASKS
from layerboard.tasks.similarity.metric import CkaAccumulator, centred_gram
from layerboard.zoo.view.views import Mirrored
from tests.tasks.analyses.passes import probe

IMAGES, BATCH = 24, 4
TASK = LabelFree(probe(IMAGES, 8), LabelFreeConfig(5))
PLAIN, OTHER = (source.name for source in TASK.sources)


def drawn(seed: int = 0, dim: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(IMAGES, dim)).astype(np.float32)


def described(
    plain: np.ndarray, other: np.ndarray, last: np.ndarray | None, task: LabelFree = TASK
) -> Outcome:
    return task.describe({PLAIN: plain, OTHER: other}, last)


def values(outcome: Outcome) -> dict[str, float]:
    assert not outcome.empty
    return {score.metric: score.value for score in outcome.scores}


def test_the_second_view_is_the_mirror_image_of_the_first() -> None:
    first, second = TASK.sources
    assert second.groups == first.groups
    assert second.view == Mirrored(first.view)
    assert second.name != first.name


def test_the_last_layer_and_views_that_are_alike_agree_in_all() -> None:
    vectors = drawn()
    found = values(described(vectors, vectors, vectors))
    assert found["cka-to-last"] == pytest.approx(1)
    assert [found[name] for name in ("neighbours-to-last", "view-neighbours", "view-top1")] == [100] * 3
    (entry,) = (task for task in TASKS if task.name == "label-free")
    assert set(found) == set(entry.metrics)


def test_ranks() -> None:
    vectors = drawn() + 5
    exact = vectors.astype(np.float64)
    found = values(described(vectors, vectors, vectors))
    centred = np.linalg.svd(exact - exact.mean(axis=0), compute_uv=False)
    assert found["effective-rank"] == pytest.approx(effective_rank(centred))
    assert found["spectrum-decay"] == pytest.approx(spectrum_decay(centred))
    assert found["rankme"] == pytest.approx(rankme(np.linalg.svd(exact, compute_uv=False)))
    assert found["rankme"] < found["effective-rank"]  # the mean is one long direction


def test_cka_is_that_of_the_task_cka() -> None:
    first, last = drawn(0), drawn(1) + drawn(0)
    sums = CkaAccumulator(errors=True)
    for start in range(0, IMAGES, BATCH):
        rows = slice(start, start + BATCH)
        sums.add(torch.stack([centred_gram(torch.from_numpy(one[rows])) for one in (first, last)]))
    (found,) = (one for one in described(first, first, last).scores if one.metric == "cka-to-last")
    assert found.value == pytest.approx(float(sums.matrix()[0, 1]), abs=1e-6)
    assert found.error == pytest.approx(float(sums.standard_error()[0, 1]), abs=1e-6)


def test_intervals_are_over_the_images() -> None:
    outcome = described(drawn(0), drawn(0) + 0.5 * drawn(1), drawn(2))
    items = outcome.items
    assert items is not None
    assert items.keys == tuple(sample.key for sample in TASK.data.probe.samples)
    found = values(outcome)
    for name in ("view-neighbours", "view-top1", "neighbours-to-last"):
        assert items.values[name].mean() == pytest.approx(found[name])


def test_images_that_could_not_be_read_are_left_out_of_both_views() -> None:
    plain, other, last = drawn(0), drawn(1), drawn(2)
    plain[3], other[3], last[3], other[8] = np.nan, np.nan, np.nan, np.nan
    outcome = described(plain, other, last)
    assert {score.n for score in outcome.scores} == {IMAGES - 2}
    assert outcome.items is not None
    assert len(outcome.items.keys) == IMAGES - 2
    assert all(np.isfinite(score.value) for score in outcome.scores)


def test_what_cannot_be_said_says_why() -> None:
    vectors = drawn()
    assert described(np.ones_like(vectors), vectors, vectors).empty == "features are the same for all items"
    without = described(vectors, vectors, None)
    assert without.missing == dict.fromkeys(
        ("cka-to-last", "neighbours-to-last"), "the vectors of the last block are not stored"
    )
    flat = drawn(dim=5)
    reason = "vectors vary in fewer than 6 directions"
    assert described(flat, flat, flat).missing == {"spectrum-decay": reason}
    many = replace(TASK, config=LabelFreeConfig(IMAGES - 1))
    few = described(vectors, vectors, vectors, many)
    reason = f"{IMAGES - 1} neighbours need {IMAGES + 1} readable images; there are {IMAGES}"
    assert few.missing == dict.fromkeys(("view-neighbours", "neighbours-to-last"), reason)
    assert "view-top1" in values(few)
