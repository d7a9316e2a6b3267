"""Segmentation in context, fed batch by batch, on features that are planted."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.scenes import Scene, Scenes
from layerboard.tasks.framework.base import Measurements, Outcome
from layerboard.tasks.framework.task import Measurable
from layerboard.tasks.segmentation.in_context import Vote
from layerboard.tasks.segmentation.shown import LabelledImages
from layerboard.tasks.segmentation.task import SegmentationConfig, SegmentationTask
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Stretch
from tests.tasks import passes
from tests.tasks.passes import LAYER, by_key, by_metric
from workshop.render.masks import write_mask

CLASSES = 5
Masks = NDArray[np.uint8]
Grids = Sequence[Tensor]
Problem = LabelledImages


def scenes(folder: Path, train: Masks, val: Masks, memory: int = 100_000, classes: int = CLASSES) -> Scenes:
    """A dataset of masks [images height width]; its images are never opened."""
    folder.mkdir(exist_ok=True)

    def written(name: str, mask: NDArray[np.uint8]) -> Scene:
        path = folder / f"{name}.png"
        write_mask(path, mask)
        return Scene(FileSample(name, name), (mask.shape[1], mask.shape[0]), path)

    parts = [
        tuple(written(f"{part}-{number}", mask) for number, mask in enumerate(masks))
        for part, masks in (("train", train), ("val", val))
    ]
    names = tuple(f"class {number}" for number in range(classes))
    return Scenes("scenes", *parts, names, 0, memory, Coverage(()))


def measured(
    problem: Measurable, grids: Mapping[Layer, Grids], batch: int, side: int = 8
) -> Mapping[Layer, Sequence[Measurements]]:
    """What the groups of a source leave behind of each layer."""
    named = {layer: by_key(problem, every) for layer, every in grids.items()}
    return passes.measured(problem, named, batch, Stretch(side))


def outcomes(
    problem: Problem, train: Mapping[Layer, Grids], val: Mapping[Layer, Grids], batch: int = 3, side: int = 8
) -> dict[Layer, Outcome]:
    """Scores of layers from the grids of all images, whose view has so many pixels a side."""
    named = {layer: by_key(problem.memory, train[layer]) | by_key(problem, val[layer]) for layer in train}
    return passes.outcomes(problem, named, batch, Stretch(side))


def outcome(problem: Problem, train: Grids, val: Grids, batch: int = 3, side: int = 8) -> Outcome:
    """Scores of one layer."""
    return outcomes(problem, {LAYER: train}, {LAYER: val}, batch, side)[LAYER]


def rule(k: int = 3, other: int = 1, temperature: float = 0.02) -> SegmentationConfig:
    return SegmentationConfig(Stretch(8), Vote(k, other, temperature), least=0.5, seed=0)


def drawn(images: int, seed: int) -> Masks:
    """Random classes of the cells [images 4 4], every class in every set."""
    cells = np.random.default_rng(seed).integers(0, CLASSES, (images, 4, 4)).astype(np.uint8)
    cells[0].reshape(-1)[:CLASSES] = np.arange(CLASSES)
    return cells


def enlarged(cells: Masks) -> Masks:
    """Masks of 6 pixels a cell."""
    return np.repeat(np.repeat(cells, 6, axis=1), 6, axis=2)


def one_hot(cells: Masks) -> list[Tensor]:
    return [torch.from_numpy(np.eye(CLASSES, dtype=np.float32)[image]) for image in cells]


def test_the_labels_of_a_few_images_are_kept_as_they_were_scored(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    val[2, 0] = 255
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val)), rule())
    exact = outcome(problem, one_hot(train), one_hot(np.where(val == 255, 0, val))).predicted
    facts = problem.facts()
    assert exact["mask"].shape == (8, 96, 96)
    assert set(facts["image"]) < {scene.sample.key for scene in problem.scenes}
    for key, mask, truth, score in zip(
        facts["image"], exact["mask"], facts["truth"], exact["score"], strict=True
    ):
        true = enlarged(val)[int(key.removeprefix("val-"))]
        assert (truth[:24, :24] == true).all()
        assert (mask[:24, :24] != 255).all()
        assert score == pytest.approx(100 * (mask == truth)[:24, :24][true != 255].mean())
    assert {*problem.pictures([exact])} == {*facts["image"].tolist()}


def test_the_memory_holds_a_share_of_every_image(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(2, 1)
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val), memory=30), rule())
    left = measured(problem.memory, {LAYER: one_hot(train)}, 4)[LAYER]
    assert sum(len(one["rows"]) for one in left) == 9 * 3
    assert {one["rows"].dtype for one in left} == {np.dtype(np.float16)}
    few = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val), memory=4), rule())
    assert [scene.sample.key for scene in few.memory.scenes] == [f"train-{number}" for number in (1, 3, 5, 7)]


def test_a_memory_smaller_than_k_votes_as_a_whole(tmp_path: Path) -> None:
    train, val = drawn(1, 0), drawn(2, 1)
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val)), rule(k=30))
    assert by_metric(outcome(problem, one_hot(train), one_hot(val)))["mIoU"] > 50


def test_a_class_that_no_image_shows_is_not_averaged(tmp_path: Path) -> None:
    train = np.array([[[0, 1, 2, 3]] * 4], np.uint8)
    val = np.array([[[0, 0, 1, 1]] * 4], np.uint8)
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val)), rule(k=1))
    # the last column is taken for class 3, which costs class 1 alone
    wrong = np.array([[[0, 0, 1, 3]] * 4], np.uint8)
    scores = by_metric(outcome(problem, one_hot(train), one_hot(wrong)))
    assert 50 < scores["mIoU"] < 100
    assert scores["class accuracy"] == pytest.approx((100 + 50) / 2, abs=9)
