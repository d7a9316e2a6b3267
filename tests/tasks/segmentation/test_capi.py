"""Segmentation by a vote of pixels, fed batch by batch, on features that are planted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from layerboard.tasks.datasets.scenes import Scenes
from layerboard.tasks.framework.base import Outcome
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.segmentation.capi import TOO_FEW, CapiConfig, CapiTask, Distance
from layerboard.zoo.view.views import Stretch
from tests.tasks.agreement import in_context as agreement
from tests.tasks.passes import OTHER
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

SIDE = 24
Masks = NDArray[np.uint8]
RULE = config_of(find_protocol("capi"), "segment")
assert isinstance(RULE, CapiConfig)
VOTE = RULE.ks, RULE.distances
Votes = tuple[tuple[int, ...], tuple[Distance, ...]]


def rule(votes: Votes = VOTE, seed: int = 0) -> CapiConfig:
    return CapiConfig(Stretch(8), *votes, held_out=10, seed=seed)


def problem_of(data: Scenes, votes: Votes = VOTE, seed: int = 0) -> CapiTask:
    return CapiTask(data, rule(votes, seed))


def holding_out(data: Scenes, image: int) -> int:
    """A seed by which that training image is the one that is held out."""
    wanted = {data.train[image].sample.key}
    return next(seed for seed in range(500) if problem_of(data, seed=seed).memory.pixels.held_out == wanted)


@pytest.mark.parametrize("name", ["capi_voc_like", "capi_ade_like"])
def test_golden_cases(tmp_path: Path, name: str) -> None:
    case, arrays = agreement.CASES[name], agreement.build(name)
    params, official = case["params"], case["expected"]["official_capi"]
    data = scenes(tmp_path, arrays["train_masks"], arrays["val_masks"], classes=case["recipe"]["classes"])
    if 0 in params["ignore"]:
        data = replace(data, offset=1, classes=data.classes[1:])
    (held_out,) = params["held_out_images"]
    seed, side = holding_out(data, held_out), arrays["train_masks"].shape[1]
    train, val = ([torch.from_numpy(one) for one in arrays[f"{part}_features"]] for part in ("train", "val"))
    problem = problem_of(data, seed=seed)
    ready = problem.remembering(measured(problem.memory, {LAYER: train}, 3, side), {})
    assert ready.memories is not None
    chosen = ready.memories(LAYER, torch.device("cpu"))
    assert [str(one) for one in (chosen.k, chosen.distance)] == [str(one) for one in official["chosen"]]
    assert len(chosen.rows) == official["memory_rows"]
    for choice, expected in official["test"].items():
        k, distance = choice.removeprefix("k=").split(",")
        fixed = problem_of(data, ((int(k),), (distance,)), seed)  # type: ignore[arg-type]
        found = outcome(fixed, train, val, side=side)
        assert by_metric(found)["mIoU"] == pytest.approx(expected["mIoU"], abs=1e-9)


def test_a_layer_chooses_for_itself(tmp_path: Path) -> None:
    train = drawn(12, 0)
    problem = problem_of(scenes(tmp_path, enlarged(train), enlarged(drawn(5, 1)), memory=60))
    random = torch.randn(12, 4, 4, 5, generator=torch.Generator().manual_seed(0))
    grids = [
        [one + number * noise for one, noise in zip(one_hot(train), random, strict=True)] for number in (0, 1)
    ]
    memory = measured(problem.memory, dict(zip((LAYER, OTHER), grids, strict=True)), 5, SIDE)
    assert sum(len(one["rows"]) for one in memory[LAYER]) == 60
    ready = problem.remembering(memory, {})
    assert ready.memories is not None
    votes = [ready.memories(layer, torch.device("cpu")) for layer in (LAYER, OTHER)]
    assert (votes[0].k, votes[1].k > 1) == (1, True)


def test_scale_is_of_all_cells_of_the_images_that_are_not_held_out(tmp_path: Path) -> None:
    train = drawn(11, 0)
    data = scenes(tmp_path, enlarged(train), enlarged(train), memory=22)
    generator = torch.Generator().manual_seed(0)
    grids = [1000 + torch.randn(4, 4, 3, generator=generator) for _ in train]
    problem = problem_of(data)
    ready = problem.remembering(measured(problem.memory, {LAYER: grids}, 3, SIDE), {})
    assert ready.memories is not None
    scale = ready.memories(LAYER, torch.device("cpu")).scale
    keys = [scene.sample.key for scene in data.train]
    apart = [key in problem.memory.pixels.held_out for key in keys]
    assert sum(apart) == 1
    cells = np.concatenate([grid.reshape(-1, 3) for grid, out in zip(grids, apart, strict=True) if not out])
    assert scale.mean == pytest.approx(cells.astype(np.float64).mean(0), abs=1e-3)
    assert scale.deviation == pytest.approx(cells.astype(np.float64).std(0), rel=1e-4)


def test_a_predicted_label_that_is_not_judged_costs_a_class(tmp_path: Path) -> None:
    # of every cell that is remembered one corner is void, and so it is predicted
    cells = drawn(6, 0)
    train = enlarged(cells)
    train[:, ::6, ::6] = 255
    found = by_metric(
        outcome(
            problem_of(scenes(tmp_path, train, enlarged(cells))), one_hot(cells), one_hot(cells), side=SIDE
        )
    )
    assert found["pixel accuracy"] == pytest.approx(100 * 35 / 36)
    assert found["mIoU"] == pytest.approx(100 * 35 / 36 * 5 / 6)


def test_an_image_to_hold_out_and_whole_pixels_are_needed(tmp_path: Path) -> None:
    val = drawn(4, 1)

    def scored(images: int, side: int = SIDE) -> Outcome:
        train = drawn(images, 0)
        data = scenes(tmp_path, enlarged(train), enlarged(val))
        return outcome(problem_of(data), one_hot(train), one_hot(val), side=side)

    assert scored(1).empty == TOO_FEW
    assert by_metric(scored(2))["mIoU"] > 50  # 32 cells at most, fewer vote
    assert "whole pixels per cell" in scored(2, 22).empty


def test_the_numbers_of_the_protocol(tmp_path: Path) -> None:
    assert RULE.view.scaled(224, 14) == RULE.view.scaled(224, 16) == Stretch(224)
    masks = enlarged(drawn(20, 0))
    data = scenes(tmp_path, masks, masks, memory=100)
    memory = problem_of(data).memory
    assert (len(memory.pixels.held_out), memory.pixels.most, memory.pixels.ignored) == (2, 5, {255})
    other = problem_of(replace(data, offset=1, classes=data.classes[1:]))
    assert other.memory.pixels.ignored == {0, 255}
    chosen = problem_of(data, ((1,), ("L2",)))
    assert chosen.memory.fingerprint == memory.fingerprint  # the choice is made when the memory is there
