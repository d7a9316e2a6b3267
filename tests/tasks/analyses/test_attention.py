"""Attention distance of planted heads, from the maps of a pass to scores, items and arrays."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.benchmark.passes.collectors import MeasuredCollector
from layerboard.benchmark.passes.loading import Batch, Member
from layerboard.benchmark.passes.shards import MeasuredLayers, Shards
from layerboard.tasks.analyses.attention import AttentionDistance, AttentionShares
from layerboard.tasks.framework.base import Outcome, Source
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.doubles import probed, source
from tests.tasks.analyses.passes import found_in, outcome_of, probe, scores_of

CELLS, PREFIX, IMAGES = (8, 8), 2, 3
VIEW = ResizeCrop(64, 64)
LAYERS = (Layer(1, "attention"), Layer(2, "attention"))


def heads() -> Tensor:
    """One head that looks at itself, one that looks everywhere alike: [heads tokens tokens]."""
    tokens = PREFIX + CELLS[0] * CELLS[1]
    return torch.stack([torch.eye(tokens), torch.full((tokens, tokens), 1 / tokens)])


def problem(colours: list[list[int]]) -> AttentionDistance:
    probe: Source = source(colours, view=VIEW, per_shard=1)
    return AttentionDistance(probed(probe, 4))


def measured(task: AttentionDistance, folder, maps: Tensor, seen: int) -> MeasuredLayers:  # type: ignore[no-untyped-def]
    """What a pass leaves behind that shows those maps of the first images of the one group."""
    collector = MeasuredCollector(task, VIEW, LAYERS)
    members = tuple(Member(0, position, 1, (64, 64)) for position in range(seen))
    batch = Batch(torch.zeros(seen, 3, 64, 64, dtype=torch.uint8), members)
    shards = Shards(folder, task.source.shards)
    if seen:
        for index in (1, 2):
            shown = maps.expand(seen, *maps.shape[-3:])
            collector.see(batch, AttentionMaps(Layer(index, "probabilities"), shown, PREFIX, CELLS))
    shards.write(0, collector.finish(range(1)))
    return MeasuredLayers(task.source, shards, LAYERS)


def of_layer(task: AttentionDistance, groups: MeasuredLayers, layer: Layer) -> Outcome:
    """What it says of one layer."""
    return next(one.outcome for one in task.findings(groups).outcomes if one.layer == layer)


def test_planted_heads_have_their_distances(tmp_path) -> None:  # type: ignore[no-untyped-def]
    task = problem([[1, 2, 3]])
    groups = measured(task, tmp_path, heads(), IMAGES)
    outcome = of_layer(task, groups, Layer(1, "attention"))
    found = {(score.metric, score.head): score.value for score in outcome.scores}
    assert found["attention-distance", 0] == 0
    assert found["attention-distance", 1] == pytest.approx(0.5909, abs=5e-5)
    assert found["attention-distance", -1] == pytest.approx(0.5909 / 2, abs=5e-5)
    assert found["attention-distance-ratio", 1] == pytest.approx(1, abs=1e-5)
    assert found["attention-distance-px", 1] == pytest.approx(8 * 7 * 0.5909, abs=3e-3)
    assert found["distance-range", -1] == pytest.approx(0.5909, abs=5e-5)
    assert found["local-heads", -1] == 0.5
    assert {score.n for score in outcome.scores if score.metric != "local-heads"} == {IMAGES}
    assert outcome.items is not None
    assert outcome.items.keys == ("0-0", "0-1", "0-2")
    alone = {"distance-range", "local-heads"}  # of all images together: no interval
    assert {score.statistic for score in outcome.scores} == alone | set(outcome.items.statistics)


def test_arrays_have_images_blocks_and_heads_as_axes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    task = problem([[1, 2, 3]])
    arrays = task.findings(measured(task, tmp_path, heads(), 2)).arrays  # the third image could not be read
    assert arrays["distance"].shape == (2, 2, 2)
    assert arrays["image"].tolist() == ["0-0", "0-1"]
    assert arrays["block"].tolist() == [1, 2]
    np.testing.assert_allclose(arrays["distance"][..., 1], 0.5909, atol=5e-5)


def test_maps_that_are_not_finite_and_images_that_are_not_there_say_why(tmp_path) -> None:  # type: ignore[no-untyped-def]
    task = problem([[1, 2, 3]])
    broken = heads()
    broken[0, 5, 5] = float("nan")
    nan = of_layer(task, measured(task, tmp_path / "nan", broken, IMAGES), LAYERS[0])
    assert nan.empty == "attention probabilities are not finite"
    with pytest.raises(InputError, match="expected images that can be decoded"):
        task.findings(measured(task, tmp_path / "none", heads(), 0))


def test_a_head_that_gives_nothing_to_patches_has_no_distance(tmp_path) -> None:  # type: ignore[no-untyped-def]
    task = problem([[1, 2, 3]])
    maps = torch.zeros_like(heads())
    maps[..., 0] = 1
    outcome = of_layer(task, measured(task, tmp_path, maps, IMAGES), LAYERS[0])
    assert {score.value for score in outcome.scores if score.metric != "local-heads"} == {0}


def test_a_grid_of_one_cell_has_no_ratio(tmp_path: Path) -> None:
    found = found_in(AttentionDistance(probe(1, 32)), tmp_path, torch.full((1, 1, 2, 2, 2), 0.5), (1, 1))
    names = {metric for metric, _ in scores_of(found, 1, "patch")}
    assert names == {"attention-distance", "attention-distance-px", "distance-range"}


def test_attention_that_is_not_finite_and_images_that_are_not_there_say_why(tmp_path: Path) -> None:
    layers = torch.full((1, 2, 2, 5, 5), 0.2)
    layers[0, 1, 1, 3] = torch.nan
    task = AttentionShares(probe(2, 32))
    found = found_in(task, tmp_path, layers, (2, 2))
    assert outcome_of(found, 1, "patch").empty == "attention probabilities are not finite"
    assert scores_of(found, 1, "cls")["entropy", -1] == pytest.approx(1)
    with pytest.raises(InputError, match="expected images that can be decoded"):
        task.findings({Layer(1, "attention"): [{}]})
