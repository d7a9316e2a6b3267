"""Overlap of heads and of rollout with masks, from the maps of a pass to scores and arrays."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.saliency import SaliencyConfig, SaliencyTask, object_cells
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.coco import RegionImage, Regions
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import FitLongSide, ResizeCrop, View
from tests.benchmark.doubles import SPEC, MemorySample
from tests.tasks.analyses.passes import found_in, outcome_of, scores_of
from tests.tasks.clustering.test_task import Drawn
from tests.tasks.planted import CASES, built

Masks = NDArray[np.uint8]
RULES = {"standard": config_of(STANDARD, "saliency"), "paper": config_of(PAPER, "saliency")}


def problem(annotations: list[list[Masks]], rule: SaliencyConfig, view: View | None = None) -> SaliencyTask:
    """Images with those masks [height width], shown as they are."""
    images = []
    for number, masks in enumerate(annotations):
        height, width = next(each[0].shape for each in annotations if each)
        regions = tuple(Drawn(f"{number}#{place}", 1, mask) for place, mask in enumerate(masks))
        empty = (Drawn(f"{number}#0", 1, np.zeros((height, width), np.uint8)),)
        sample = MemorySample(f"i{number}", number, (width, height))
        images.append(RegionImage(sample, (width, height), regions or empty))
    height, width = images[0].size[::-1]
    view = view or (ResizeCrop(width, width) if height == width else FitLongSide(width, 1))
    return SaliencyTask(Regions("drawn", tuple(images), {}, Coverage(())), replace(rule, view=view))


def reference(name: str, rule: SaliencyConfig) -> tuple[SaliencyTask, Tensor, tuple[int, int]]:
    """A reference case: its masks, attention [blocks images heads T T] and grid."""
    arrays, (rows, columns) = built(name), CASES[name]["params"]["grid"]
    counts = arrays["annotation_counts"]
    masks = [list(each[:count]) for each, count in zip(arrays["annotations"], counts, strict=True)]
    layers = torch.from_numpy(arrays["attention"]).transpose(0, 1)
    return problem(masks, rule), layers, (rows, columns)


def block(height: int, width: int, top: int, left: int, side: int) -> Masks:
    """A mask of one square."""
    mask = np.zeros((height, width), np.uint8)
    mask[top : top + side, left : left + side] = 1
    return mask


def test_images_whose_masks_are_outside_of_the_view_are_left_out(tmp_path: Path) -> None:
    masks = [[block(16, 48, 4, 0, 8)], [block(16, 48, 4, 20, 8)], []]
    layers = torch.full((1, 3, 1, 17, 17), 1 / 17)
    for rule in RULES.values():
        task = problem(masks, rule, ResizeCrop(16, 16))
        found = found_in(task, tmp_path / str(rule.separate_masks), layers, (4, 4))
        assert found.arrays["image"].tolist() == ["i1"]
        assert {score.n for score in outcome_of(found, 1, "cls").scores} == {1}
    # rollout's average map is of all images that were seen
    np.testing.assert_allclose(found.arrays["rollout_map"], 0.5 / 17, rtol=1e-5)
    none = found_in(
        problem([masks[0]], config_of(STANDARD, "saliency"), ResizeCrop(16, 16)),
        tmp_path / "0",
        layers[:, :1],
        (4, 4),
    )
    for index in (1, -1):
        assert outcome_of(none, index, "cls").empty == "no image has an object in its view"
    assert none.arrays["iou"].shape == (0, 1, 1, 2)
    assert none.arrays["best_head"].tolist() == [[-1, -1]]


def test_a_mask_smaller_than_half_a_cell_is_its_cell() -> None:
    image = problem([[block(32, 32, 9, 17, 2)]], config_of(STANDARD, "saliency")).data.images[0]
    found = object_cells(image, ResizeCrop(32, 32), (4, 4), separate=False)
    assert np.argwhere(found).tolist() == [[1, 2]]


def test_masks_are_seen_through_the_view() -> None:
    """A square in the middle of a wide image fills the crop's left half, whatever the size of the view."""
    image = problem(
        [[block(100, 300, 0, 100, 50), block(100, 300, 50, 100, 50)]], config_of(STANDARD, "saliency")
    ).data.images[0]
    for view in (ResizeCrop(64, 64), ResizeCrop(224, 224)):
        found = object_cells(image, view, (4, 4), separate=False)
        assert found.tolist() == [[True, True, False, False]] * 4


def test_attention_that_is_not_finite_empties_its_block_and_the_rollouts_behind(tmp_path: Path) -> None:
    layers = torch.full((3, 2, 2, 5, 5), 0.2)
    layers[1, 1, 1, 2, 3] = torch.nan
    found = found_in(
        problem([[block(16, 16, 0, 0, 8)]] * 2, config_of(STANDARD, "saliency")), tmp_path, layers, (2, 2)
    )
    assert "rollout-iou" in {metric for metric, _ in scores_of(found, 1, "cls")}
    assert outcome_of(found, 2, "patch").empty == "attention probabilities are not finite"
    scores = scores_of(found, 3, "cls")
    assert scores["saliency-iou-best", -1] == 0.25
    assert not any(metric.startswith("rollout") for metric, _ in scores)
    assert outcome_of(found, -1, "patch").empty == "attention probabilities are not finite"


def test_all_blocks_up_to_the_last_are_measured() -> None:
    task = problem([[block(16, 16, 0, 0, 8)]], config_of(STANDARD, "saliency"))
    wanted = task.feed.layers([Layer(0), Layer(3)], SPEC)
    assert wanted == tuple(Layer(index, "attention") for index in (1, 2, 3))
    assert task.feed.layers([Layer(0)], SPEC) == ()
