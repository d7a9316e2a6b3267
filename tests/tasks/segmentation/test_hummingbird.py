"""Segmentation by the rules of Hummingbird's evaluation, on planted features and on augmented images."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from layerboard.tasks.datasets.base import FileSample
from layerboard.tasks.datasets.scenes import Scene, Scenes
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.cell_labels import resized_labels
from layerboard.tasks.segmentation.hummingbird import (
    Augmentation,
    AugmentedSample,
    Colours,
    HummingbirdConfig,
    HummingbirdTask,
    augmented,
)
from layerboard.tasks.segmentation.in_context import Vote
from layerboard.tasks.segmentation.shown import NO_LABELS
from layerboard.tasks.segmentation.task import SegmentationTask
from layerboard.zoo.view.views import LoweredSquare, Stretch
from tests.tasks.agreement import in_context as agreement
from tests.tasks.segmentation.test_problem import (
    LAYER,
    by_metric,
    drawn,
    enlarged,
    measured,
    one_hot,
    outcome,
    scenes,
)
from tests.tasks.segmentation.test_problem import rule as standard

SIDE = 24
PLAIN = Augmentation(1, 0.0, 0.0, 0.0, (1.0, 1.0), (1.0, 1.0), 0, 0)
"""Images as they are, once: no crop is drawn, and the central one of a square is all of it."""

RULE = config_of(find_protocol("hummingbird"), "segment")
assert isinstance(RULE, HummingbirdConfig)
FULL = RULE.augmentation


def rule(k: int = 3, memory: int = 100_000, augmentation: Augmentation = PLAIN) -> HummingbirdConfig:
    return HummingbirdConfig(Stretch(8), Vote(k, 1, 0.02), 0.0, 0, memory, augmentation)


def with_other(data: Scenes) -> Scenes:
    """The same pixel values, of which 0 is not judged, as ADE20k has it."""
    return replace(data, offset=1, classes=data.classes[1:])


@pytest.mark.parametrize("name", ["voc_like_whole_memory", "ade_like_zero_ignored", "planted_swapped"])
def test_golden_cases(tmp_path: Path, name: str) -> None:
    case, arrays = agreement.CASES[name], agreement.build(name)
    params = case["params"]
    masks = arrays["train_masks"], arrays["val_masks"]
    data = scenes(tmp_path, *masks, classes=params["classes"])
    data = with_other(data) if 0 in params["ignore"] else data
    grids = [[torch.from_numpy(one) for one in arrays[f"{part}_features"]] for part in ("train", "val")]
    for k in params["k"]:
        official = case["expected"][str(k)]["official_hummingbird"]
        found = outcome(HummingbirdTask(data, rule(k)), *grids, side=masks[0].shape[1])
        # rows are kept as float16
        assert by_metric(found)["mIoU"] == pytest.approx(official["mIoU"], abs=0.05)


def test_without_void_at_the_size_of_the_view_it_is_standard_but_for_names(tmp_path: Path) -> None:
    train, val = drawn(9, 0), drawn(10, 1)
    data = scenes(tmp_path, enlarged(train), enlarged(val))
    generator = torch.Generator().manual_seed(0)
    grids = [
        {LAYER: [one + 0.3 * torch.randn(one.shape, generator=generator) for one in one_hot(cells)]}
        for cells in (train, val)
    ]
    tables = []
    for problem in (SegmentationTask(data, standard()), HummingbirdTask(data, rule())):
        ready = problem.remembering(measured(problem.memory, grids[0], 3, SIDE), {})
        tables.append(measured(ready, grids[1], 3, SIDE)[LAYER])
    for ours, theirs in zip(*tables, strict=True):
        for name in ("pixels", "pixels k=1", "pixels ceiling"):
            assert (ours[name] == theirs[name]).all()


def test_void_is_background_to_remember_and_is_not_judged(tmp_path: Path) -> None:
    void, shown = np.full((2, SIDE, SIDE), 255, np.uint8), np.zeros((2, SIDE, SIDE), np.uint8)
    shown[:, :, 12:] = 2
    grids = one_hot(np.repeat(np.array([[[0, 0, 2, 2]]], np.uint8), 4, axis=1).repeat(2, axis=0))
    problem = HummingbirdTask(scenes(tmp_path / "a", void, shown), rule())
    left = measured(problem.memory, {LAYER: grids}, 2, SIDE)[LAYER]
    pixels = np.concatenate([one["pixels"] for one in left])
    assert pixels.shape == (32, 5)
    assert (pixels[:, 0] == 36).all()
    unlabelled = HummingbirdTask(scenes(tmp_path / "b", shown, void), rule())
    assert outcome(unlabelled, grids, grids, side=SIDE).empty == NO_LABELS


def test_classes_that_nothing_shows_are_averaged(tmp_path: Path) -> None:
    cells = np.array([[[0, 0, 1, 1]] * 4], np.uint8)
    problem = HummingbirdTask(scenes(tmp_path, enlarged(cells), enlarged(cells)), rule())
    scores = by_metric(outcome(problem, one_hot(cells), one_hot(cells), side=SIDE))
    assert scores["mIoU"] == pytest.approx(100 * 2 / 5)
    assert scores["class accuracy"] == 100


def sample(folder: Path, size: tuple[int, int] = (90, 60)) -> FileSample:
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "image.png")
    return FileSample("image", str(folder / "image.png"))


def test_an_image_is_shown_twice_each_time_by_draws_of_its_own(tmp_path: Path) -> None:
    image = sample(tmp_path)
    first, second = (augmented(image, (90, 60), epoch, FULL) for epoch in range(2))
    assert first == augmented(image, (90, 60), 0, FULL)
    assert first.key == "image#1"
    assert (first.box, first.colours) != (second.box, second.colours)
    assert first.signature() != second.signature()
    assert augmented(replace(image, key="other"), (90, 60), 0, FULL).box != first.box


def test_draws_are_those_of_the_rule() -> None:
    image, size = FileSample("", ""), (300, 200)
    every = [augmented(replace(image, key=str(number)), size, 0, FULL) for number in range(2000)]
    boxes = np.array([one.box for one in every])
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= size).all()
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    assert ((width / height > 0.74) & (width / height < 1.35)).all()
    assert (width * height >= 0.49 * size[0] * size[1]).all()
    # areas above the image's never fit; if none of ten does, the central part is as wide as it may be
    central = (boxes == [16, 0, 283, 200]).all(axis=1).mean()
    assert 0.01 < central < 0.3
    colours = np.array(
        [(one.colours.brightness, one.colours.contrast, one.colours.saturation) for one in every]
    )
    assert np.mean(colours == 1.0) == pytest.approx(0.5, abs=0.02)
    assert abs(colours - 1).max() <= 0.1
    assert {one.colours.hue for one in every} == {*range(-25, 26)}


def test_colours() -> None:
    image = Image.new("RGB", (4, 4), (200, 100, 50))
    assert np.asarray(Colours().of(image))[0, 0].tolist() == [200, 100, 50]
    assert np.asarray(Colours(brightness=0.9).of(image))[0, 0].tolist() == [180, 90, 45]
    grey = np.asarray(Colours(saturation=0.0).of(image))[0, 0]
    assert len({*grey.tolist()}) == 1
    turned = np.asarray(Colours(hue=85).of(image))[0, 0]  # a third of a turn: red becomes green
    assert turned == pytest.approx([50, 200, 100], abs=8)


def test_masks_get_the_crop_of_their_image(tmp_path: Path) -> None:
    # every pixel of the image has the grey value of its class, so what is shown says the mask
    mask = np.repeat(np.repeat(np.arange(20, dtype=np.uint8).reshape(4, 5), 15, 0), 18, 1)
    Image.fromarray(np.stack([10 * mask] * 3, axis=2)).save(tmp_path / "image.png")
    data = scenes(tmp_path, mask[None], mask[None], classes=20)
    plain = FileSample("image", str(tmp_path / "image.png"))
    whole = Scene(plain, (90, 60), data.train[0].mask)
    problem = HummingbirdTask(
        replace(data, train=(whole,)), rule(augmentation=replace(FULL, contrast=0.0, hue=0.0))
    )
    assert len(problem.memory.scenes) == 2
    view = LoweredSquare(120, bilinear=True)
    for scene in problem.memory.scenes:
        assert isinstance(scene.sample, AugmentedSample)
        shown = view.render(scene.sample.open(), scene.sample.box)[0, 0].numpy() / 10
        found = problem.memory.read(view, scene)
        assert found.shape == shown.shape == (120, 120)
        assert (abs(found - shown) < 0.2).mean() > 0.8  # but at the borders of classes


def test_masks_are_resized_by_first_corners_or_by_centres() -> None:
    mask = np.arange(6, dtype=np.uint8).reshape(1, 6).repeat(2, axis=0)
    assert resized_labels(mask, (4, 2), centres=False)[0].tolist() == [0, 1, 3, 4]
    assert resized_labels(mask, (4, 2), centres=True)[0].tolist() == [0, 2, 3, 5]
    assert resized_labels(mask, (6, 2), centres=True).tolist() == mask.tolist()


def test_the_memory_is_the_protocols_number_and_the_sides_fit_the_patches(tmp_path: Path) -> None:
    assert RULE.memory == 102_400  # 1024 x 10^2: 4 cells of each of 10,582 images and each of two epochs
    assert RULE.memory // (10_582 * FULL.epochs) == 4
    sides = [RULE.view.scaled(224, patch).geometry((640, 480)).size[0] for patch in (8, 14, 16, 32)]
    assert sides == [512, 504, 512, 512]
    train = enlarged(drawn(9, 0))
    problem = HummingbirdTask(scenes(tmp_path, train, train), rule(memory=54, augmentation=FULL))
    left = measured(problem.memory, {LAYER: one_hot(drawn(18, 0))}, 4, SIDE)[LAYER]
    assert sum(len(one["rows"]) for one in left) == 18 * 3
    few = HummingbirdTask(replace(problem.data, most=8), rule(memory=54, augmentation=FULL)).memory
    assert len(few.scenes) == 8
    kept = measured(few, {LAYER: one_hot(drawn(8, 0))}, 4, SIDE)[LAYER]
    assert sum(len(one["rows"]) for one in kept) == 8
    assert few.fingerprint != problem.memory.fingerprint
