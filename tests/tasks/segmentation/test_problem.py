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
from layerboard.tasks.framework.assess import below_best, intervals_of, measure
from layerboard.tasks.framework.base import Measurements, Outcome
from layerboard.tasks.framework.task import Measurable
from layerboard.tasks.segmentation.in_context import NO_MEMORY, Vote
from layerboard.tasks.segmentation.shown import LabelledImages
from layerboard.tasks.segmentation.task import SegmentationConfig, SegmentationTask
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Stretch
from tests.tasks import passes
from tests.tasks.agreement import in_context as agreement
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


def test_features_that_are_the_class_give_the_ceiling(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val)), rule())
    scores = by_metric(outcome(problem, one_hot(train), one_hot(val)))
    # bilinear maps round the corners of random cells
    assert scores["mIoU"] == scores["mIoU ceiling"] == scores["mIoU k=1"]
    assert 50 < scores["mIoU"] < 100


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


def test_swapped_classes_of_the_memory_cost_all(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    swapped = np.array([1, 2, 0, 4, 3], np.uint8)[train]
    problem = SegmentationTask(scenes(tmp_path, enlarged(swapped), enlarged(val)), rule())
    scores = by_metric(outcome(problem, one_hot(train), one_hot(val)))
    assert scores["mIoU"] < 5
    assert scores["mIoU ceiling"] > 50


@pytest.mark.parametrize("name", ["voc_like_whole_memory", "ade_like_zero_ignored", "planted_one-hot"])
def test_golden_cases(tmp_path: Path, name: str) -> None:
    case, data = agreement.CASES[name], agreement.build(name)
    params = case["params"]
    masks = [
        np.where(np.isin(data[f"{part}_masks"], params["ignore"]), np.uint8(255), data[f"{part}_masks"])
        for part in ("train", "val")
    ]
    folder = scenes(tmp_path, masks[0], masks[1], classes=params["classes"])
    grids = [[torch.from_numpy(one) for one in data[f"{part}_features"]] for part in ("train", "val")]
    for k in params["k"]:
        own = case["expected"][str(k)]["own_standard"]
        problem = SegmentationTask(folder, rule(k, temperature=params["temperature"]))
        found = outcome(problem, grids[0], grids[1])
        scores = by_metric(found)
        # rows are kept as float16
        assert scores["mIoU"] == pytest.approx(own["mIoU"], abs=0.05)
        assert scores["pixel accuracy"] == pytest.approx(own["pixel_accuracy"], abs=0.05)
        assert scores["class accuracy"] == pytest.approx(own["mean_accuracy"], abs=0.05)
        assert scores["mIoU ceiling"] == pytest.approx(own["ceiling_mIoU"], abs=1e-4)
        assert found.items is not None
        weights = (np.arange(len(found.items.keys)) % 3).astype(float)[None]
        weighted = measure([found.items], "mIoU").evaluate(weights)[0, 0]
        assert 100 * weighted == pytest.approx(own["mIoU_of_image_weights_0_1_2_repeated"], abs=0.05)


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


def test_a_memory_without_a_class_is_none(tmp_path: Path) -> None:
    void, val = np.full((9, 24, 24), 255, np.uint8), drawn(10, 1)
    forgotten = SegmentationTask(scenes(tmp_path, void, enlarged(val)), rule())
    assert outcome(forgotten, one_hot(drawn(9, 0)), one_hot(val)).empty == NO_MEMORY


def test_layers_are_told_apart_by_paired_images(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(40, 1)
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val)), rule())
    generator = torch.Generator().manual_seed(0)
    good, bad = Layer(1), Layer(2)
    found = outcomes(
        problem,
        {good: one_hot(train), bad: [torch.randn(4, 4, 5, generator=generator) for _ in train]},
        {good: one_hot(val), bad: [torch.randn(4, 4, 5, generator=generator) for _ in val]},
    )
    items = [found[layer].items for layer in (good, bad)]
    assert all(one is not None for one in items)
    known = [one for one in items if one is not None]
    below = [one for one in below_best(known, "mIoU") if one is not None]
    assert [one.maybe for one in below] == [True, False]
    scores = [by_metric(found[layer])["mIoU"] for layer in (good, bad)]
    assert below[0].loss == 0
    assert scores[0] - scores[1] < below[1].loss < 100
    for (low, high), layer in zip(intervals_of(known)["mIoU"], (good, bad), strict=True):
        assert low < by_metric(found[layer])["mIoU"] < high
