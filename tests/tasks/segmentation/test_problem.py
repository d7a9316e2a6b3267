"""Segmentation in context, fed batch by batch, on features that are planted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.reading.masks import write_mask
from layerboard.tasks.datasets.scenes import Scene, Scenes
from layerboard.tasks.framework.assess import below_best, intervals_of, measure
from layerboard.tasks.framework.base import FINITE, Outcome
from layerboard.tasks.framework.checks import ALIKE
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.framework.task import Measurable
from layerboard.tasks.segmentation.in_context import NO_MEMORY, Vote
from layerboard.tasks.segmentation.shown import NO_LABELS, LabelledImages
from layerboard.tasks.segmentation.task import SegmentationConfig, SegmentationTask
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Stretch
from tests.tasks.agreement import in_context as agreement

LAYER = Layer(1)
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
) -> dict[Layer, list[dict[str, NDArray[Any]]]]:
    """What the groups of a source leave behind of each layer; only ``FINITE`` where that does not hold."""
    left: dict[Layer, list[dict[str, NDArray[Any]]]] = {layer: [] for layer in grids}
    first = 0
    for group in problem.source.groups:
        measurer = problem.measure(group, Stretch(side))
        count = len(group.samples)
        for start in range(0, count, batch):
            positions = range(count)[start : start + batch]
            for layer, every in grids.items():
                live = torch.stack([every[first + position] for position in positions])
                measurer.update(layer, positions, live)
                live.zero_()  # the activation is gone after the call
        found = {layer: measurer.finish(layer) for layer in grids}
        finite = {layer: bool(arrays.pop(FINITE).all()) for layer, arrays in found.items()}
        good = {layer: arrays for layer, arrays in found.items() if finite[layer]}
        kept = measurer.settle(good)
        for layer, arrays in left.items():
            named = kept.get(layer, {FINITE: torch.tensor(False)})
            arrays.append({name: value.numpy() for name, value in named.items()})
        first += count
    return left


def outcomes(
    problem: Problem, train: Mapping[Layer, Grids], val: Mapping[Layer, Grids], batch: int = 3, side: int = 8
) -> dict[Layer, Outcome]:
    """Scores of layers from the grids of all images, whose view has so many pixels a side."""
    memory = measured(problem.memory, train, batch, side)
    broken = {layer for layer, groups in memory.items() if any(FINITE in one for one in groups)}
    good = {layer: groups for layer, groups in memory.items() if layer not in broken}
    ready = problem.remembering(good, dict.fromkeys(broken, "features are not finite"))
    return {layer: problem.score(groups) for layer, groups in measured(ready, val, batch, side).items()}


def outcome(problem: Problem, train: Grids, val: Grids, batch: int = 3, side: int = 8) -> Outcome:
    """Scores of one layer."""
    return outcomes(problem, {LAYER: train}, {LAYER: val}, batch, side)[LAYER]


def by_metric(found: Outcome) -> dict[str, float]:
    return {score.metric: score.value for score in found.scores}


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


def test_columns_of_one_class_give_100(tmp_path: Path) -> None:
    train, val = (np.repeat(drawn(count, seed)[:, :1], 4, axis=1) for count, seed in ((9, 0), (10, 1)))
    train[1, :, :], val[1, :, :] = 4, 4  # the class that four columns cannot hold
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val)), rule())
    assert set(by_metric(outcome(problem, one_hot(train), one_hot(val))).values()) == {100.0}


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


def test_batches_and_other_layers_change_nothing(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val), memory=40), rule())
    generator = torch.Generator().manual_seed(0)
    layers = [Layer(number) for number in (1, 2)]
    grids = [
        {layer: [torch.randn(4, 4, 6, generator=generator) for _ in range(count)] for layer in layers}
        for count in (9, 10)
    ]
    together = outcomes(problem, grids[0], grids[1], batch=8)
    for batch in (1, 5):
        again = outcomes(problem, grids[0], grids[1], batch)
        assert {layer: one.scores for layer, one in again.items()} == {
            layer: one.scores for layer, one in together.items()
        }
    for layer in layers:
        alone = outcome(problem, grids[0][layer], grids[1][layer])
        assert alone.scores == together[layer].scores


def test_lengths_of_vectors_change_nothing(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val)), rule())
    generator = torch.Generator().manual_seed(0)
    grids = [[torch.randn(4, 4, 6, generator=generator) for _ in cells] for cells in (train, val)]
    # powers of two, by which products are scaled exactly
    longer = [
        [grid * 2.0 ** torch.randint(-3, 4, (4, 4, 1), generator=generator) for grid in one] for one in grids
    ]
    assert outcome(problem, *grids).scores == outcome(problem, *longer).scores


def test_the_order_of_the_memory_changes_nothing_but_ties(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    generator = torch.Generator().manual_seed(0)
    grids = [[torch.randn(4, 4, 6, generator=generator) for _ in cells] for cells in (train, val)]
    order = [4, 2, 8, 0, 1, 7, 3, 5, 6]
    found = [
        outcome(SegmentationTask(scenes(tmp_path / str(number), *masks), rule()), shown, grids[1])
        for number, (masks, shown) in enumerate(
            (
                ((enlarged(train), enlarged(val)), grids[0]),
                ((enlarged(train[order]), enlarged(val)), [grids[0][place] for place in order]),
            )
        )
    ]
    assert by_metric(found[0]) == pytest.approx(by_metric(found[1]), abs=1e-9)


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


def test_images_without_a_class_have_no_effect(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    void = np.full((1, 24, 24), 255, np.uint8)
    plain = SegmentationTask(scenes(tmp_path / "a", enlarged(train), enlarged(val)), rule())
    more = SegmentationTask(
        scenes(
            tmp_path / "b", np.concatenate([enlarged(train), void]), np.concatenate([enlarged(val), void])
        ),
        rule(),
    )
    grids = [one_hot(train), one_hot(val)]
    first = outcome(plain, *grids)
    second = outcome(more, *([*one, one[0]] for one in grids))
    assert first.scores == second.scores


def test_a_class_that_no_image_shows_is_not_averaged(tmp_path: Path) -> None:
    train = np.array([[[0, 1, 2, 3]] * 4], np.uint8)
    val = np.array([[[0, 0, 1, 1]] * 4], np.uint8)
    problem = SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val)), rule(k=1))
    # the last column is taken for class 3, which costs class 1 alone
    wrong = np.array([[[0, 0, 1, 3]] * 4], np.uint8)
    scores = by_metric(outcome(problem, one_hot(train), one_hot(wrong)))
    assert 50 < scores["mIoU"] < 100
    assert scores["class accuracy"] == pytest.approx((100 + 50) / 2, abs=9)


def test_what_cannot_be_scored(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    void = [np.full((count, 24, 24), 255, np.uint8) for count in (9, 10)]
    problem = SegmentationTask(scenes(tmp_path / "a", enlarged(train), enlarged(val)), rule())
    constant = [[torch.ones(4, 4, 3)] * count for count in (9, 10)]
    assert outcome(problem, *constant).empty == ALIKE
    unlabelled = SegmentationTask(scenes(tmp_path / "b", enlarged(train), void[1]), rule())
    assert outcome(unlabelled, one_hot(train), one_hot(val)).empty == NO_LABELS
    forgotten = SegmentationTask(scenes(tmp_path / "c", void[0], enlarged(val)), rule())
    with pytest.raises(ValueError, match=NO_MEMORY):
        outcome(forgotten, one_hot(train), one_hot(val))
    with pytest.raises(ValueError, match="training images must be measured first"):
        problem.measure(problem.source.groups[0], Stretch(8))
    nan = [grid * torch.nan for grid in one_hot(train)]
    with pytest.raises(ValueError, match="features are not finite"):
        outcome(problem, nan, one_hot(val))
    memory = measured(problem.memory, {LAYER: one_hot(train)}, 4)
    left = measured(problem.remembering(memory, {}), {LAYER: [nan[0], *one_hot(val)[1:]]}, 4)
    assert [FINITE in one for one in left[LAYER]] == [True, False]


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


def test_fingerprints_tell_what_is_remembered(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    made = [
        SegmentationTask(scenes(tmp_path, enlarged(train), enlarged(val), memory), each)
        for memory, each in (
            (100, rule()),
            (50, rule()),
            (100, rule(k=4)),
            (100, config_of(STANDARD, "segment")),
        )
    ]
    assert len({one.fingerprint for one in made}) == 4
    assert len({one.memory.fingerprint for one in made}) == 2  # how cells vote is no part of the memory
