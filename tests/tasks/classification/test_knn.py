"""k-NN as a task: which images its bank and its queries are, and what it says of them."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from layerboard.tasks.classification.knn import KnnConfig, KnnTask
from layerboard.tasks.framework.base import Outcome, Statistic
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.neighbours import nearest, top_k_correct, vote
from tests.tasks.framework.test_sources import classification, probed, sources

Floats = NDArray[np.float32]
SMALL = replace(config_of(STANDARD, "knn"), k=5, others=(1, 12, 1000))


def problem(train: NDArray[np.int64], val: NDArray[np.int64], probe: list[int], rule: KnnConfig) -> KnnTask:
    data = classification(train, val)
    return KnnTask(probed(data, sources(data, np.array(probe), size=7)), rule)


def by_source(task: KnnTask, bank: Floats, queries: Floats) -> dict[str, Floats]:
    """What the passes leave behind: vectors in the order of each source's images."""
    rows = {
        sample.key: row
        for samples, vectors in ((task.images.train.samples, bank), (task.images.val.samples, queries))
        for sample, row in zip(samples, vectors, strict=True)
    }
    return {source.name: np.stack([rows[s.key] for s in source.samples]) for source in task.vector_sources}


def ranked_classes(
    bank: Floats, labels: NDArray[np.int64], queries: Floats, k: int, classes: int = 9
) -> NDArray[np.int64]:
    """The five first classes of each query, by the metric."""
    return vote(nearest(bank, queries, k), labels, min(k, len(bank)), classes, SMALL.temperature)


def expected(task: KnnTask, bank: Floats, queries: Floats) -> dict[str, list[float]]:
    """Percent right of every query that could be read, for every metric: 0 or 100."""
    stored, asked = ~np.isnan(bank).any(axis=1), ~np.isnan(queries).any(axis=1)
    labels, truth = task.images.train.labels[stored], task.images.val.labels[asked]
    hits: dict[str, list[float]] = {}
    for k in (task.config.k, *task.config.others):
        suffix = "" if k == task.config.k else f" k={k}"
        ranked = ranked_classes(bank[stored], labels, queries[asked], k)
        for top in (1, 5):
            hits[f"top-{top}{suffix}"] = (100.0 * top_k_correct(ranked, truth, top)).tolist()
    return hits


def check(outcome: Outcome, hits: dict[str, list[float]]) -> None:
    assert not outcome.empty
    assert outcome.items is not None
    metrics = [score.metric for score in outcome.scores]
    assert list(outcome.items.values) == metrics == [*hits, "ECE top-1"]
    assert outcome.items.statistics == {metric: Statistic(metric, "items") for metric in metrics}
    assert outcome.items.clusters == outcome.items.keys  # an image is sampled by itself
    for score in outcome.scores[:-1]:
        assert outcome.items.values[score.metric].tolist() == hits[score.metric], score.metric
        assert score.value == pytest.approx(np.mean(hits[score.metric]))
        assert (score.n, score.unit) == (len(hits[score.metric]), "images")


def random_case(seed: int, classes: int = 9) -> tuple[KnnTask, Floats, Floats]:
    rng = np.random.default_rng(seed)
    train, val = rng.integers(0, classes, 90), rng.integers(0, classes, 40)
    means = rng.normal(size=(classes, 6))
    bank, queries = (
        ((means[y] + rng.normal(size=(len(y), 6))) * rng.uniform(0.1, 9, (len(y), 1))).astype(np.float32)
        for y in (train, val)
    )
    return problem(train, val, rng.choice(90, 33, replace=False).tolist(), SMALL), bank, queries


@pytest.mark.parametrize("seed", range(2))
def test_scores_are_those_of_the_bank_in_the_order_of_the_dataset(seed: int) -> None:
    task, bank, queries = random_case(seed)
    outcome = task.score(by_source(task, bank, queries))
    check(outcome, expected(task, bank, queries))
    assert 20 < outcome.scores[0].value < 95
    assert outcome.items is not None
    assert outcome.items.keys == tuple(sample.key for sample in task.images.val.samples)


def test_ties_go_to_the_image_that_comes_first_in_the_dataset() -> None:
    train, val = np.array([2, 1, 1, 0, 0, 0, 3]), np.array([2, 1, 0])
    task = problem(train, val, [3, 4, 5], replace(config_of(STANDARD, "knn"), k=1, others=(3, 6)))
    bank = np.array([[1, 0]] * 6 + [[0, 1]], np.float32)
    queries = np.array([[2, 1]] * 3, np.float32)
    outcome = task.score(by_source(task, bank, queries))
    assert outcome.items is not None
    values = outcome.items.values
    assert values["top-1"].tolist() == [100, 0, 0]  # image 0 alone, not the first of the probe source
    assert values["top-1 k=3"].tolist() == [0, 100, 0]
    assert values["top-1 k=6"].tolist() == [0, 0, 100]
    assert values["top-5"].tolist() == [100, 0, 0]  # a class without a neighbour never counts
    check(outcome, expected(task, bank, queries))
