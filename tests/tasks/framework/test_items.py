"""The items of every task against its scores, which must follow from them."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.davis import Video, Videos
from layerboard.tasks.framework.assess import intervals_of, measure
from layerboard.tasks.framework.base import Outcome, ceiling_metric
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.propagation.task import PropagationTask
from layerboard.zoo.spec import Layer
from tests.tasks.classification import test_knn as neighbours
from tests.tasks.clustering import test_task as clusters
from tests.tasks.keypoints import test_problem as keypoints
from tests.tasks.retrieval import test_landmarks as retrieval


def propagated() -> Outcome:
    rng = np.random.default_rng(0)
    videos = tuple(Video(name, (), (), (9, 9)) for name in "abc")
    left = [{"J": rng.random((n, 5)), "F": rng.random((n, 5)), "varies": np.array([True])} for n in (1, 3, 2)]
    return PropagationTask(Videos("double", videos, Coverage(())), config_of(STANDARD, "davis")).score(left)


def matched() -> Outcome:
    task, layer = keypoints.random_problem(1), Layer(0)
    return task.score(keypoints.measured(task, {layer: keypoints.random_grids(1)}, 3)[layer])


def retrieved() -> Outcome:
    rng = np.random.default_rng(1)
    task = retrieval.problem(rng.choice(4, (30, 12), p=[0.88, 0.04, 0.04, 0.04]))
    shapes = ((30, 5), (12, 5))
    return task.score(retrieval.vectors(task, *(rng.normal(size=s).astype(np.float32) for s in shapes)))


def clustered() -> Outcome:
    task, features = clusters.image_problem(2)
    return task.score(clusters.of_source(task, features))


def classified() -> Outcome:
    task, bank, queries = neighbours.random_case(1)
    return task.score(neighbours.by_source(task, bank, queries))


def grouped() -> Outcome:
    task, layer = clusters.random_regions(), Layer(0)
    generator = torch.Generator().manual_seed(0)
    left = clusters.measured(task, {layer: [torch.randn(9, 11, 5, generator=generator) for _ in range(12)]})
    return task.score(clusters.as_measurements(left[layer]))


@pytest.mark.parametrize("score", [propagated, matched, retrieved, clustered, grouped, classified])
def test_the_items_of_every_task_give_its_scores(score: Callable[[], Outcome]) -> None:
    outcome = score()
    assert outcome.items is not None
    assert len(outcome.scores) >= 3
    found = intervals_of([outcome.items])
    # what the truth alone says of clusterings is of no clustering, and has no interval
    scores = [one for one in outcome.scores if one.metric != ceiling_metric("purity")]
    for one in scores:
        value = float(measure([outcome.items], one.metric).evaluate()[0, 0])
        fraction = outcome.items.statistics[one.metric].over == "partition"
        assert (100 * value if fraction else value) == pytest.approx(one.value)
        low, high = found[one.metric][0]
        assert low <= one.value + 1e-9
        assert high >= one.value - 1e-9
