"""Features that cannot be scored: metrics refuse them, tasks leave an empty outcome, and both say why."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from layerboard.tasks.clustering.kmeans import kmeans_starts
from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.framework.base import FINITE, Outcome
from layerboard.tasks.framework.checks import ALIKE
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.neighbours import nearest, top_k_correct, vote
from layerboard.tasks.propagation.j_and_f import statistics
from layerboard.tasks.propagation.metric import decode
from layerboard.tasks.propagation.task import PropagationTask
from layerboard.tasks.retrieval.ranking import rank, revisited
from layerboard.tasks.similarity.metric import centred_gram
from layerboard.zoo.spec import Layer
from tests.fakes import write_fake_davis
from tests.tasks.agreement.correspondence import match
from tests.tasks.agreement.similarity import cka
from tests.tasks.classification import test_knn as neighbours
from tests.tasks.clustering import test_task as clusters
from tests.tasks.keypoints import test_problem as keypoints
from tests.tasks.propagation import test_task as videos
from tests.tasks.retrieval import test_landmarks as retrieval
from tests.tasks.standard import HEARD, KMEANS, TEMPERATURE, LayerPropagation

LAYER = Layer(0)
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
    "tokens": lambda: LayerPropagation(torch.zeros(0, 3, 4), torch.zeros(0, 3, 2), HEARD),
    "channels": lambda: LayerPropagation(torch.zeros(2, 3, 4), torch.zeros(2, 3, 0), HEARD),
    "label map": lambda: decode(torch.zeros(2, 0, 4), (24, 16), 8),
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


def check_empty(outcome: Outcome, reason: str) -> None:
    assert outcome.scores == ()
    assert outcome.items is None
    assert reason in outcome.empty


def neighbours_of(bank: Floats | None, queries: Floats | None) -> Outcome:
    task, *usual = neighbours.random_case(8)
    changed = (own if one is None else one for one, own in zip((bank, queries), usual, strict=True))
    return task.score(neighbours.by_source(task, *changed))


def retrieved(database: Floats | None, queries: Floats | None) -> Outcome:
    task = retrieval.problem(np.random.default_rng(0).integers(0, 4, (90, 40)))
    usual = spoilt((90, 6), 1), spoilt((40, 6), 1)
    changed = (own if one is None else one for one, own in zip((database, queries), usual, strict=True))
    return task.score(retrieval.vectors(task, *changed))


def clustered(features: Floats | None, _: Floats | None) -> Outcome:
    task, _ = clusters.image_problem(3)
    assert features is not None
    return task.score(clusters.of_source(task, features[:40]))


VECTORS: dict[str, Callable[[Floats | None, Floats | None], Outcome]] = {
    "knn": neighbours_of,
    "retrieval": retrieved,
    "cluster-image": clustered,
}
REASONS = {0.0: "all zero", 3.0: "same for all", np.inf: "not finite", -np.inf: "not finite"}


@pytest.mark.parametrize("value", REASONS)
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_of_one_value_give_the_reason(name: str, value: float) -> None:
    score = VECTORS[name]
    check_empty(score(np.full((90, 6), value, np.float32), None), REASONS[value])
    if name != "cluster-image" and value != 3.0:
        check_empty(score(None, np.full((40, 6), value, np.float32)), REASONS[value])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", VECTORS)
def test_one_value_that_is_not_finite_empties_the_outcome(name: str, value: float) -> None:
    spoiled = spoilt((90, 6), 1)
    spoiled[4, 2] = value
    check_empty(VECTORS[name](spoiled, None), "not finite")
    if name != "cluster-image":
        check_empty(VECTORS[name](None, spoiled[:40]), "not finite")


@pytest.mark.parametrize("name", VECTORS)
def test_no_image_that_could_be_read_is_a_reason(name: str) -> None:
    reason = "finite" if name == "retrieval" else "read"
    check_empty(VECTORS[name](np.full((90, 6), np.nan, np.float32), None), reason)
    if name != "cluster-image":
        check_empty(VECTORS[name](None, np.full((40, 6), np.nan, np.float32)), reason)


@pytest.mark.parametrize(("images", "queries"), [(0, 3), (12, 0)])
def test_a_retrieval_of_nothing_gives_the_reason(images: int, queries: int) -> None:
    task = retrieval.problem(np.zeros((images, queries), np.int64))
    found = task.score(retrieval.vectors(task, spoilt((12, 5), 1)[:images], spoilt((3, 5), 1)[:queries]))
    check_empty(found, "no image")


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("batch", [1, 6])
def test_one_token_stops_the_keypoints_of_a_layer(value: float, batch: int) -> None:
    grids = keypoints.random_grids(0)
    grids[3, 1, 1, 0] = value
    task = keypoints.random_problem(3)
    left = keypoints.measured(task, {LAYER: grids}, batch)[LAYER]
    assert not all(of_category[FINITE].all() for of_category in left)


@pytest.mark.parametrize("value", [-torch.inf, torch.nan])
@pytest.mark.parametrize("frame", [0, 3])
def test_one_token_stops_the_video_of_a_layer(davis: PropagationTask, value: float, frame: int) -> None:
    grids = videos.random_grids(davis.data.videos[0], 0)
    grids[frame, 0, 0, 0] = value
    assert not videos.measured(davis, 0, {LAYER: grids}, 2)[LAYER][FINITE]


def test_one_zero_vector_leaves_finite_scores() -> None:
    task, bank, queries = neighbours.random_case(8)
    bank[5], queries[7] = 0, 0
    images, features = clusters.image_problem(3)
    features[5] = 0
    gallery = retrieval.problem(np.random.default_rng(0).integers(0, 4, (12, 3)))
    database, asked = spoilt((12, 5), 1), spoilt((3, 5), 1)
    database[5], asked[1] = 0, 0
    for outcome in (
        task.score(neighbours.by_source(task, bank, queries)),
        images.score(clusters.of_source(images, features)),
        gallery.score(retrieval.vectors(gallery, database, asked)),
    ):
        assert len(outcome.scores) >= 3
        assert all(0 <= score.value <= 100 for score in outcome.scores)


@pytest.mark.parametrize("zero", ["one image", "one token of each"])
def test_zero_tokens_leave_finite_scores(davis: PropagationTask, zero: str) -> None:
    part = (1,) if zero == "one image" else (slice(None), 1, 1)
    task, grids = keypoints.random_problem(1), keypoints.random_grids(0)
    grids[part] = 0
    shown = [videos.random_grids(video, 0) for video in davis.data.videos]
    for grid in shown:
        grid[part] = 0
    left = [videos.measured(davis, n, {LAYER: grid}, 7)[LAYER] for n, grid in enumerate(shown)]
    found = keypoints.measured(task, {LAYER: grids}, 6)[LAYER]
    for outcome in (task.score(found), davis.score(left)):
        assert len(outcome.scores) >= 3
        assert all(0 <= score.value <= 100 for score in outcome.scores)


@pytest.fixture
def davis(tmp_path: Path) -> PropagationTask:
    write_fake_davis(tmp_path, sequences=2, frames=7)
    return PropagationTask(
        DavisEntry(sequences=2, frames=14, objects=4).read(tmp_path), config_of(STANDARD, "davis")
    )


@pytest.mark.parametrize("value", [0.0, 1.5])
def test_constant_tokens_of_all_images_empty_the_keypoints(value: float) -> None:
    task = keypoints.random_problem(1)
    grids = torch.full_like(keypoints.random_grids(0), value)
    check_empty(task.score(keypoints.measured(task, {LAYER: grids}, 6)[LAYER]), ALIKE)


@pytest.mark.parametrize("value", [0.0, 1.5])
def test_constant_tokens_of_all_videos_empty_the_propagation(davis: PropagationTask, value: float) -> None:
    shown = [torch.full_like(videos.random_grids(video, 0), value) for video in davis.data.videos]
    left = [videos.measured(davis, n, {LAYER: grids}, 7)[LAYER] for n, grids in enumerate(shown)]
    check_empty(davis.score(left), ALIKE)


def test_a_retrieval_without_positives_gives_the_reason() -> None:
    task = retrieval.problem(np.zeros((12, 3), np.int64))
    found = task.score(retrieval.vectors(task, spoilt((12, 5), 1), spoilt((3, 5), 1)))
    check_empty(found, "no query has a positive")


def test_regions_that_all_vanish_give_the_reason() -> None:
    task = clusters.random_regions()
    left = [{"mean": np.zeros((4, 5), np.float32), "covered": np.zeros(4, bool)} for _ in range(12)]
    check_empty(task.score(left), "covers a cell")
