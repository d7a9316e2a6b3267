"""Average maps and offsets, from the maps of a pass to scores and arrays."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.attention_maps import (
    AttentionMapsTask,
    MapConfig,
    aligned_map,
    head_offset,
    offset_index,
)
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from tests.tasks.analyses.passes import found_in, outcome_of, probe, scores_of
from tests.tasks.planted import CASES, built, cyclic, right, uniform, with_prefix

ATTENTION_MAPS = config_of(STANDARD, "attention-maps")


def problem(images: int, rule: MapConfig = ATTENTION_MAPS, side: int = 32) -> AttentionMapsTask:
    return AttentionMapsTask(probe(images, side), rule)


def reference(name: str) -> tuple[Tensor, tuple[int, int]]:
    """Attention [blocks images heads T T] of a reference case, and its grid."""
    rows, *more = CASES[name]["params"]["grid"]
    return torch.from_numpy(built(name)["attention"]).transpose(0, 1), (rows, *more)


def test_sums_do_not_stall_in_half_precision(tmp_path: Path) -> None:
    """2,500 times 1/17 is added in images and in batches."""
    maps = with_prefix(torch.stack([uniform(4), torch.eye(16)])).half().expand(1, 2500, -1, -1, -1)
    maps = torch.where(maps == 0, maps, maps)
    pieces = [[slice(start, start + 500) for start in range(0, 2500, 500)]]
    found = found_in(problem(2500), tmp_path, maps, (4, 4), pieces)
    np.testing.assert_allclose(found.arrays["cls_map"], 1 / 17, rtol=1e-3)
    assert found.arrays["aaam"][0, 1, 3, 3] == pytest.approx(1)
    assert int(found.arrays["images"]) == 2500


def test_pictures_are_spread_over_the_dataset_and_follow_their_images(tmp_path: Path) -> None:
    task = problem(12)
    assert sorted(task.sampled) == sorted(f"0-{place}" for place in (1, 3, 5, 7, 9, 11))
    layers = torch.rand(3, 12, 2, 17, 17, generator=torch.Generator().manual_seed(0)).softmax(-1)
    pieces = [[slice(0, 12)], [slice(0, 4), slice(4, 12)], [slice(0, 4), slice(4, 12)]]
    arrays = found_in(task, tmp_path, layers, (4, 4), pieces).arrays
    assert arrays["sample"].tolist() == [f"0-{place}" for place in (1, 3, 5, 7, 9, 11)]
    assert arrays["sample_image"].shape == (6, 32, 32, 3)
    assert arrays["sample_image"][:, 0, 0, 0].tolist() == [1, 3, 5, 7, 9, 11]
    assert str(arrays["sample_of"]) == "cls"
    expected = layers[:, 5].mean(1)[:, 0, 1:].view(3, 4, 4)
    np.testing.assert_allclose(arrays["sample_cls"][2], expected, rtol=1e-5)
    np.testing.assert_allclose(arrays["sample_heads"], layers[:, 1, :, 0, 1:].view(3, 2, 4, 4), rtol=1e-5)
    state = torch.eye(17)
    for block, layer in enumerate(layers[:, 5].mean(1)):
        state = (layer + torch.eye(17)) / 2 @ state
        np.testing.assert_allclose(arrays["sample_rollout"][2, block].ravel(), state[0, 1:], rtol=1e-4)


def test_pictures_of_a_large_view_are_thinned_and_of_no_class_token_said_to_be_of_patches(
    tmp_path: Path,
) -> None:
    layers = torch.full((1, 2, 1, 4, 4), 0.25)
    arrays = found_in(problem(2, side=448), tmp_path, layers, (2, 2)).arrays
    assert arrays["sample_image"].shape == (2, 224, 224, 3)
    assert str(arrays["sample_of"]) == "patch"
    np.testing.assert_allclose(arrays["sample_cls"], 0.25)
    np.testing.assert_allclose(arrays["sample_heads"], np.full((1, 1, 2, 2), 0.25))


def test_degenerate_grids_and_heads(tmp_path: Path) -> None:
    one = found_in(problem(2), tmp_path / "cell", torch.full((1, 2, 1, 2, 2), 0.5), (1, 1))
    scores = scores_of(one, 1, "patch")
    assert scores["map-centre-distance", -1] == 0
    assert {metric for metric, _ in scores}.isdisjoint({"std-over-queries", "std-over-heads"})
    assert one.arrays["class"].tolist() == [["strict"]]
    row = found_in(problem(2), tmp_path / "row", torch.full((1, 2, 2, 6, 6), 1 / 6), (1, 6))
    assert scores_of(row, 1, "patch")["offset", -1] == pytest.approx(0, abs=1e-6)
    assert {each.pooling for each in row.outcomes} == {"patch"}


def test_attention_that_is_not_finite_says_why(tmp_path: Path) -> None:
    layers = with_prefix(torch.stack([right(4), cyclic(4)])).expand(2, 3, -1, -1, -1).clone()
    layers[0, 1, 1, 3, 4] = torch.nan
    found = found_in(problem(3), tmp_path / "nan", layers, (4, 4))
    for pooling in ("cls", "patch"):
        assert "not finite" in outcome_of(found, 1, pooling).empty
    assert scores_of(found, 2, "patch")["offset-heads", -1] == 1
    assert found.arrays["class"].tolist() == [["", ""], ["offset", "offset"]]


Floats = NDArray[np.float64]


def aligned(attention: Tensor, cells: tuple[int, int]) -> Floats:
    """The aligned map of one head."""
    return aligned_map(attention[None], offset_index(cells), cells)[0].numpy()


def test_rows_and_columns_are_axial_and_neighbours_soft() -> None:
    side = 14
    places = torch.arange(side**2)
    down, across = ((axis[:, None] - axis).abs() for axis in (places // side, places % side))
    for name, seen in (("axial", down == 0), ("axial", across == 0), ("soft", (down <= 1) & (across <= 1))):
        shares = seen.float() / seen.sum(-1, keepdim=True)
        assert head_offset(aligned(shares, (side, side))).name == name


def test_equal_peaks_are_those_above_and_to_the_left() -> None:
    canvas = np.zeros((15, 15))
    canvas[7, 8] = canvas[7, 6] = canvas[6, 7] = canvas[8, 7] = 0.25
    assert head_offset(canvas).peak == (-1, 0)
    canvas[7, 9] = 0.3  # farther than equal ones, but larger
    assert head_offset(canvas).peak == (0, 2)
