"""Correspondence against features that are upsampled to every pixel of the view."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate, normalize

from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.spair import KeypointPair, Keypoints, SpairEntry
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.keypoints.config import KeypointConfig
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Letterbox, View
from tests.benchmark.doubles import MemorySample
from tests.fakes import write_fake_spair
from tests.tasks import passes
from tests.tasks.passes import Measured

SIDE, STRIDE = 64, 16
RULE = config_of(STANDARD, "spair")
VIEW = Letterbox(side=224)
VIEW_64 = VIEW.scaled(SIDE, STRIDE)
SIZES = [(50, 40), (31, 77), (64, 64), (90, 23), (200, 151), (37, 38)]
Floats = NDArray[np.float64]


def pair(number: int, source: int, target: int, category: str, points: list[Floats], **fields: Any) -> Any:
    source_size, target_size = (SIZES[index % len(SIZES)] for index in (source, target))
    values = {
        "key": f"{number:06d}:{category}",
        "category": category,
        "source": source,
        "target": target,
        "source_size": source_size,
        "target_size": target_size,
        "target_box": (2.0, 3.0, target_size[0] - 4.0, target_size[1] - 1.5),
        "source_points": points[0],
        "target_points": points[1],
    }
    return KeypointPair(**(values | fields))


def task_of(
    pairs: Iterable[KeypointPair],
    config: KeypointConfig = RULE,
    sizes: Sequence[tuple[int, int]] = ((50, 40), (50, 40)),
) -> KeypointTask:
    """The task on pairs of images in memory, of those sizes."""
    samples = tuple(MemorySample(f"image{index}", 0, size) for index, size in enumerate(sizes))
    return KeypointTask(Keypoints("double", samples, tuple(pairs), Coverage(())), config)


def random_problem(seed: int, images: int = 6) -> KeypointTask:
    """Pairs of images of all sizes, categories mixed and out of order; targets and sources are shared."""
    rng = np.random.default_rng(seed)
    pairs = []
    for number in range(9):
        source, target = (int(index) for index in rng.choice(images, 2, replace=False))
        count = int(rng.integers(1, 5))
        points = [rng.uniform(0, SIZES[index], (count, 2)) for index in (source, target)]
        pairs.append(pair(number, source, target, ["dog", "cat"][number % 2], points))
    return task_of(pairs, sizes=SIZES[:images])


def random_grids(seed: int, images: int = 6, width: int = 9) -> Tensor:
    return torch.randn(
        images, SIDE // STRIDE, SIDE // STRIDE, width, generator=torch.Generator().manual_seed(seed)
    )


def measured(task: KeypointTask, layers: dict[Layer, Tensor], batch: int, view: View = VIEW_64) -> Measured:
    """What the pass leaves behind; grids are those of ``data.samples``."""
    keys = [sample.key for sample in task.data.samples]
    named = {layer: dict(zip(keys, grids, strict=False)) for layer, grids in layers.items()}
    return passes.measured(task, named, batch, view)


def letterboxed(points: Floats, size: tuple[int, int], side: int) -> Floats:
    """Points of an image in its view: scaled by the longer side, moved by half the padding, floored."""
    scale = side / max(size)
    shown = [round(length * scale) for length in size]
    return points * scale + [(side - length) // 2 for length in shown]


def obvious_distances(one: KeypointPair, grids: Tensor, side: int) -> Floats:
    """Distance in the view between the best pixel's centre and the true point, for each keypoint."""
    source, target = (
        normalize(grids[i].double(), dim=-1).permute(2, 0, 1)[None] for i in (one.source, one.target)
    )
    asked = torch.from_numpy(letterboxed(one.source_points, one.source_size, side))
    truth = letterboxed(one.target_points, one.target_size, side)
    place = (2 * asked / side - 1)[None, :, None]
    vectors = grid_sample(source, place, mode="bilinear", padding_mode="border", align_corners=False)
    vectors = normalize(vectors[0, :, :, 0].T, dim=-1)
    dense = normalize(interpolate(target, size=(side, side), mode="bilinear", align_corners=False), dim=1)
    cosine = torch.einsum("nd,dyx->nyx", vectors, dense[0]).numpy()
    shown = [max(1, round(length * side / max(one.target_size))) for length in one.target_size]
    left, top = ((side - length) // 2 for length in shown)
    distances = []
    for similarity, point in zip(cosine, truth, strict=True):
        best, found = -np.inf, (0, 0)
        for y in range(top, top + shown[1]):
            for x in range(left, left + shown[0]):
                if similarity[y, x] > best + 1e-9:  # the first of equal ones, row by row
                    best, found = similarity[y, x], (x, y)
        distances.append(np.hypot(found[0] + 0.5 - point[0], found[1] + 0.5 - point[1]))
    return np.array(distances)


def expected_errors(task: KeypointTask, category: str, grids: Tensor, length: str, side: int) -> Floats:
    errors = []
    for one in task.data.pairs:
        if one.category == category:
            scale = side / max(one.target_size)
            left, top, right, bottom = one.target_box
            longer = max(right - left, bottom - top) if length == "box" else max(one.target_size)
            errors.append(obvious_distances(one, grids, side) / (longer * scale))
    return np.concatenate(errors)


@pytest.mark.parametrize("seed", range(4))
def test_errors_equal_matching_of_upsampled_features(seed: int) -> None:
    task, grids = random_problem(seed), random_grids(seed)
    left = measured(task, {Layer(0): grids}, 2)[Layer(0)]
    assert [group.key for group in task.source.groups] == ["cat", "dog"]
    for category, errors in zip(("cat", "dog"), left, strict=True):
        for length in ("box", "image"):
            expected = expected_errors(task, category, grids, length, SIDE)
            np.testing.assert_allclose(errors[f"error_{length}"], expected, rtol=1e-5)


def test_scores_are_means_over_categories_pairs_and_keypoints() -> None:
    counts = {"cat": [1], "dog": [2, 1]}  # keypoints of each pair
    pairs = [
        pair(number, 0, 1, category, [np.zeros((count, 2))] * 2)
        for category, numbers in counts.items()
        for number, count in enumerate(numbers)
    ]
    task = task_of(pairs[::-1])
    # pairs keep the order of the data within a category: the dog with one keypoint comes first
    box = [np.array([0.04]), np.array([0.2, 0.099, 0.1])]
    image = [np.array([0.02]), np.array([0.09, 0.04, 0.001])]
    varies = np.array([True])
    left = [
        {"error_box": b, "error_image": i, "varies": varies, "point": np.ones((len(b), 2))}
        for b, i in zip(box, image, strict=True)
    ]
    outcome = task.score(left)
    scores = {score.metric: score for score in outcome.scores}
    assert outcome.scores[0].metric == "PCK@0.1"
    expected = {
        "PCK@0.1": (100 + 100 / 3) / 2,  # an error of exactly 0.1 is a miss
        "PCK@0.1 per keypoint": 100 * 2 / 4,
        "PCK@0.1 per image": (100 + 0 + 50) / 3,
        "PCK@0.1 image size": 100,
        "PCK@0.05": (100 + 0) / 2,
        "PCK@0.05 per keypoint": 25,
        "PCK@0.05 per image": 100 / 3,
        "PCK@0.05 image size": (100 + 200 / 3) / 2,
        "PCK@0.01": 0,
        "PCK@0.01 per keypoint": 0,
        "PCK@0.01 per image": 0,
        "PCK@0.01 image size": (0 + 100 / 3) / 2,
    }
    assert {metric: score.value for metric, score in scores.items()} == pytest.approx(expected)
    assert (scores["PCK@0.1"].n, scores["PCK@0.1"].unit) == (4, "keypoints")
    assert (scores["PCK@0.1 per image"].n, scores["PCK@0.1 per image"].unit) == (3, "pairs")
    assert outcome.items is not None
    assert outcome.items.strata == ("cat", "dog", "dog", "dog")
    assert outcome.items.keys == ("000000:cat#0", "000001:dog#0", "000000:dog#0", "000000:dog#1")
    assert outcome.items.clusters == ("000000:cat", "000001:dog", "000000:dog", "000000:dog")
    assert outcome.items.values["PCK@0.1"].tolist() == [100, 0, 100, 0]
    assert outcome.items.values["PCK@0.05 image size"].tolist() == [100, 0, 100, 100]


def test_the_source_shows_the_images_of_each_category(tmp_path: Path) -> None:
    write_fake_spair(tmp_path)
    data = SpairEntry(pairs=4, categories=2).read(tmp_path)
    source = KeypointTask(data, RULE).source
    assert [group.key for group in source.groups] == ["cat", "dog"]
    assert source.samples == data.samples  # each image once


def test_pairs_are_matched_alone_as_in_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit, whatever else shares the source or the target, and however much is held at a time."""
    task, grids = random_problem(2), random_grids(2)
    together = measured(task, {Layer(0): grids}, 2)[Layer(0)]
    monkeypatch.setattr("layerboard.tasks.keypoints.correspondence.SIMILARITIES_CPU", 1)
    for pairs, errors in zip(task.pairs.values(), together, strict=True):
        alone = [replace(task, data=replace(task.data, pairs=(one,))) for one in pairs]
        left = [measured(one, {Layer(0): grids}, 6)[Layer(0)][0]["error_box"] for one in alone]
        np.testing.assert_array_equal(errors["error_box"], np.concatenate(left))
