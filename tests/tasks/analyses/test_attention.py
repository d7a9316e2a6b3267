"""Attention distance of planted heads, from the maps of a pass to scores, items and arrays."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.tasks.analyses.attention import AttentionDistance, AttentionShares
from layerboard.tasks.framework.base import Findings
from layerboard.tasks.framework.task import AnalysisTask
from tests.tasks.analyses.passes import found_in, outcome_of, probe, scores_of

CELLS, PREFIX, IMAGES = (8, 8), 2, 3
TASK = AttentionDistance(probe(IMAGES, 64))


def heads() -> Tensor:
    """One head that looks at itself, one that looks everywhere alike: [heads tokens tokens]."""
    tokens = PREFIX + CELLS[0] * CELLS[1]
    return torch.stack([torch.eye(tokens), torch.full((tokens, tokens), 1 / tokens)])


def shown(folder: Path, maps: Tensor, seen: int = IMAGES) -> Findings:
    """What is said of two blocks with those maps in each of the first images."""
    layers = maps.expand(2, IMAGES, *maps.shape)
    return found_in(TASK, folder, layers, CELLS, [[slice(0, seen)]] * 2)


def test_planted_heads_have_their_distances(tmp_path: Path) -> None:
    found = shown(tmp_path, heads())
    scores, outcome = scores_of(found, 1, "patch"), outcome_of(found, 1, "patch")
    assert scores["attention-distance", 0] == 0
    assert scores["attention-distance", 1] == pytest.approx(0.5909, abs=5e-5)
    assert scores["attention-distance", -1] == pytest.approx(0.5909 / 2, abs=5e-5)
    assert scores["attention-distance-ratio", 1] == pytest.approx(1, abs=1e-5)
    assert scores["attention-distance-px", 1] == pytest.approx(8 * 7 * 0.5909, abs=3e-3)
    assert scores["distance-range", -1] == pytest.approx(0.5909, abs=5e-5)
    assert scores["local-heads", -1] == 0.5
    assert {score.n for score in outcome.scores if score.metric != "local-heads"} == {IMAGES}
    assert outcome.items is not None
    assert outcome.items.keys == ("0-0", "0-1", "0-2")
    alone = {"distance-range", "local-heads"}  # of all images together: no interval
    assert {score.statistic for score in outcome.scores} == alone | set(outcome.items.statistics)


def test_arrays_have_images_blocks_and_heads_as_axes(tmp_path: Path) -> None:
    arrays = shown(tmp_path, heads(), 2).arrays  # the third image could not be read
    assert arrays["distance"].shape == (2, 2, 2)
    assert arrays["image"].tolist() == ["0-0", "0-1"]
    assert arrays["block"].tolist() == [1, 2]
    np.testing.assert_allclose(arrays["distance"][..., 1], 0.5909, atol=5e-5)


@pytest.mark.parametrize("kind", [AttentionDistance, AttentionShares])
def test_attention_that_is_not_finite_empties_its_block(tmp_path: Path, kind: type[AnalysisTask]) -> None:
    layers = heads().expand(2, 2, 2, -1, -1).clone()
    layers[0, 1, 1, 3] = torch.nan
    found = found_in(kind(probe(2, 64)), tmp_path, layers, CELLS)
    assert outcome_of(found, 1, "patch").empty == "attention probabilities are not finite"
    assert not outcome_of(found, 2, "patch").empty


def test_a_head_that_gives_nothing_to_patches_has_no_distance(tmp_path: Path) -> None:
    maps = torch.zeros_like(heads())
    maps[..., 0] = 1
    scores = outcome_of(shown(tmp_path, maps), 1, "patch").scores
    assert {score.value for score in scores if score.metric != "local-heads"} == {0}


def test_a_grid_of_one_cell_has_no_ratio(tmp_path: Path) -> None:
    found = found_in(AttentionDistance(probe(1, 32)), tmp_path, torch.full((1, 1, 2, 2, 2), 0.5), (1, 1))
    names = {metric for metric, _ in scores_of(found, 1, "patch")}
    assert names == {"attention-distance", "attention-distance-px", "distance-range"}
