"""Keypoints by the paper's protocol: the pairs that it draws, and matching by the rule written out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate, normalize

from layerboard.tasks.datasets.spair import KeypointPair
from layerboard.tasks.framework.protocols import PAPER
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.keypoints.config import PairDraw
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.tasks.metrics.bilinear import official_pixels
from layerboard.zoo.spec import Layer
from tests.tasks.keypoints.test_problem import (
    SIDE,
    letterboxed,
    measured,
    pair,
    random_grids,
    random_problem,
    task_of,
)

Floats = NDArray[np.float64]

PAIRS = {
    "aeroplane": 690, "bicycle": 650, "bird": 702, "boat": 702, "bottle": 870, "bus": 644, "car": 564,
    "cat": 600, "chair": 646, "cow": 640, "dog": 600, "horse": 600, "motorbike": 702, "person": 650,
    "pottedplant": 862, "sheep": 664, "train": 756, "tvmonitor": 692,
}  # fmt: skip


def all_pairs() -> KeypointTask:
    """As many pairs as SPair-71k has, in no order, with one keypoint each."""
    point = [np.zeros((1, 2))] * 2
    pairs = [pair(n, 0, 1, category, point) for category, count in PAIRS.items() for n in range(count)]
    order = np.random.default_rng(0).permutation(len(pairs))
    return task_of([pairs[index] for index in order], config_of(PAPER, "spair"))


def test_the_pairs_that_the_published_seed_draws() -> None:
    task = all_pairs()
    assert len(task.data.pairs) == 12_234
    assert list(task.pairs) == list(PAIRS)
    found = {name: [int(one.key[:6]) for one in pairs] for name, pairs in task.pairs.items()}
    assert found["aeroplane"][:5] == [102, 435, 270, 106, 71]
    assert found["bicycle"][:3] == [491, 413, 385]
    assert found["tvmonitor"][:3] == [38, 476, 681]
    assert {len(numbers) for numbers in found.values()} == {20}
    keys = [one.key for pairs in task.pairs.values() for one in pairs]
    assert (len(keys), len(set(keys))) == (360, 356)
    hits = np.arange(20) % 5 == 0
    errors = np.where(hits, 0.01, 0.5)
    left = {"error_box": errors, "error_image": errors, "varies": np.array([True])}
    left |= {"point": np.zeros((0, 2))}
    items = task.score([left] * 18).items
    assert items is not None
    assert len(set(items.keys)) == len(set(items.clusters)) == 360  # a pair that came twice counts twice
    assert sum(name.endswith(" (2)") for name in items.clusters) == 4


def published(one: KeypointPair, grids: Tensor) -> tuple[Floats, float]:
    """Pixels from the point found to the true one, and the longer side of the target's box, in the view."""
    source, target = (
        interpolate(
            normalize(grids[image].double(), dim=-1).permute(2, 0, 1)[None],
            size=(SIDE, SIDE),
            mode="bilinear",
            align_corners=False,
        )[0]
        for image in (one.source, one.target)
    )
    truth = letterboxed(one.target_points, one.target_size, SIDE)
    distances = []
    for (x, y), point in zip(letterboxed(one.source_points, one.source_size, SIDE), truth, strict=True):
        column, row = min(int(x), SIDE - 1), min(round(float(y)), SIDE - 1)  # one is cut, the other rounded
        products = torch.einsum("d,dyx->yx", source[:, row, column], target).flatten()
        # ties, which the border repeats, go to the first pixel
        best = int((products > products.max() - 1e-9).nonzero()[0])
        distances.append(np.hypot(best % SIDE - point[0], best // SIDE - point[1]))
    left, top, right, bottom = one.target_box
    return np.array(distances), max(right - left, bottom - top) * SIDE / max(one.target_size)


WHOLE = replace(config_of(PAPER, "spair"), draw=None)
SEEN = config_of(PAPER, "spair").view.scaled(SIDE, 16)


@pytest.mark.parametrize("seed", range(2))
def test_matches_by_whole_pixels_equal_the_published_rule(seed: int) -> None:
    task, grids = replace(random_problem(seed), config=WHOLE), random_grids(seed)
    left = measured(task, {Layer(0): grids}, 2, SEEN)[Layer(0)]
    for pairs, errors in zip(task.pairs.values(), left, strict=True):
        expected = np.concatenate([d / length for d, length in (published(one, grids) for one in pairs)])
        np.testing.assert_allclose(errors["error_box"], expected, rtol=1e-6)


def test_a_pair_that_is_drawn_twice_counts_twice() -> None:
    rule = replace(WHOLE, alphas=(0.6, 0.4, 0.2), draw=PairDraw(per_category=7, seed=5))
    task, grids = replace(random_problem(1), config=rule), random_grids(1)
    left = measured(task, {Layer(0): grids}, 2, SEEN)[Layer(0)]
    outcome, legacy = task.score(left), np.random.RandomState(5)
    matched = {one.key: published(one, grids) for one in task.data.pairs}
    scores = {score.metric: score for score in outcome.scores}
    for alpha in rule.alphas:
        legacy.seed(5)
        shares, images = [], []
        for category in ("cat", "dog"):
            names = sorted(one.key for one in task.data.pairs if one.category == category)
            hits: list[bool] = []
            for number in legacy.choice(len(names), 7):
                distances, length = matched[names[number]]
                hits.extend(distances < alpha * length)
                images.append(np.mean(distances < alpha * length))
            shares.append(np.mean(hits))
        assert scores[f"PCK@{alpha:g}"].value == pytest.approx(100 * np.mean(shares))
        assert scores[f"PCK@{alpha:g} per image"].value == pytest.approx(100 * np.mean(images))
    assert len({one.key for pairs in task.pairs.values() for one in pairs}) < 14
    assert 0 < scores["PCK@0.2"].value < scores["PCK@0.6"].value < 100
    assert scores["PCK@0.2 per image"].n == 14


def one_pair(points: Floats, size: tuple[int, int], **values: Any) -> KeypointTask:
    sizes = {"source_size": size, "target_size": size}
    one = pair(1, 0, 1, "cat", [points, points], **(sizes | values))
    return task_of([one], WHOLE, [size] * 2)


@pytest.mark.parametrize("size", [(31, 77), (77, 31), (64, 64)])
def test_a_point_that_rounds_to_a_pixel_outside_moves_to_the_last_one(size: tuple[int, int]) -> None:
    edges, grids = np.array([size, (size[0], 0.0), (0.0, size[1])], np.float64), random_grids(7)
    assert letterboxed(edges, size, SIDE).max() == SIDE  # one more than the last pixel
    task = one_pair(edges, size)
    (left,) = measured(task, {Layer(0): grids}, 2, SEEN)[Layer(0)]
    distances, length = published(task.data.pairs[0], grids)
    np.testing.assert_allclose(left["error_box"], distances / length, rtol=1e-6)


@pytest.mark.parametrize("size", [(640, 480), (333, 250), (224, 300)])
def test_source_points_are_computed_in_single_precision(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scale and offset written out for torch's float32, as the released code has them."""
    seen: list[Tensor] = []

    def spy(points: Tensor) -> Tensor:
        seen.append(points)
        return official_pixels(points)

    monkeypatch.setattr("layerboard.tasks.keypoints.places.official_pixels", spy)
    steps = np.arange(0, max(size), 4)
    every = np.stack([steps % size[0], steps % size[1]], axis=1)
    points = every.astype(np.float64)
    measured(one_pair(points, size), {Layer(0): random_grids(0)}, 2, config_of(PAPER, "spair").view)
    expected = torch.tensor(every.tolist(), dtype=torch.float)
    expected *= 224 / max(size)
    short = int(np.around(224 * min(size) / max(size)))
    expected[:, int(size[1] < size[0])] += int((224 - short) / 2)
    assert torch.equal(seen[0], expected.clamp(0, 223))
    double = letterboxed(points, size, 224)
    moved = np.trunc(double) != expected.double().trunc().numpy()
    assert moved.any() == (max(size) == 640)  # such as 79.99999 against 80.0
