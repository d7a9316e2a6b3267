"""The position audit of planted grids, from a pass to scores and items."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.benchmark.passes.collectors import MeasuredCollector
from layerboard.benchmark.passes.loading import Batch, Member
from layerboard.benchmark.passes.shards import MeasuredLayers, Shards
from layerboard.tasks.analyses.position import PositionAudit, PositionConfig, places
from layerboard.tasks.framework.base import Outcome
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import Layer
from tests.tasks.analyses.planted import SIZE, VIEW, noise, sources

LAYER = Layer(2)
PENALTIES = (1e-3, 1.0, 1e3)


def positioned(images: int, cells: tuple[int, int] = (4, 4)) -> Tensor:
    angles = places(cells).float() * torch.pi
    code = torch.cat([angles.cos(), angles.sin()], dim=-1).unflatten(0, cells)
    return 4 * code + 0.01 * noise(images, *cells, 4)


def audited(grids: list[Tensor], folder: Path, images: int = 64) -> Outcome:
    """What is said of one layer that shows groups of images those grids; an empty one cannot be read."""
    task = PositionAudit(sources([max(1, len(one)) for one in grids]), PositionConfig(images, PENALTIES))
    collector = MeasuredCollector(task, VIEW, (LAYER,))
    shards = Shards(folder, len(grids))
    for group, one in enumerate(grids):
        if len(one):
            members = tuple(Member(group, place, 1, (SIZE, SIZE)) for place in range(len(one)))
            pixels = torch.zeros(len(one), 3, SIZE, SIZE, dtype=torch.uint8)
            collector.see(Batch(pixels, members), LayerFeatures(LAYER, None, one))
        shards.write(group, collector.finish(range(group, group + 1)))
    measured = MeasuredLayers(task.source, shards, (LAYER,))
    if measured.failures:
        return Outcome((), empty=measured.failures[LAYER])
    (found,) = task.findings(measured).outcomes
    assert (found.layer, found.pooling) == (LAYER, "patch")
    return found.outcome


def test_places_are_found_in_every_image_of_every_group(tmp_path: Path) -> None:
    found = audited([positioned(10), positioned(6)], tmp_path)
    values = {score.metric: (score.value, score.n) for score in found.scores}
    assert values["position-r2"][0] > 0.98
    assert values["same-place"] == (1.0, 16)
    assert values["match-distance"] == (0.0, 16)
    assert values["same-place-chance"] == (1 / 16, 16)
    assert found.items is not None
    assert found.items.keys[:2] == ("0-0", "0-1")
    for name, statistic in found.items.statistics.items():
        assert values[name][0] == pytest.approx(found.items.values[statistic.column].mean())


def test_content_has_no_place(tmp_path: Path) -> None:
    found = audited([noise(60, 4, 4, 12)], tmp_path)
    values = {score.metric: score.value for score in found.scores}
    assert abs(values["position-r2"]) < 0.02
    assert values["same-place"] == pytest.approx(1 / 16, abs=0.02)


def test_the_first_images_of_a_group_are_looked_at(tmp_path: Path) -> None:
    grids = torch.cat([positioned(6), noise(20, 4, 4, 4)])
    first = audited([grids], tmp_path / "a", images=6)
    alone = audited([positioned(6)], tmp_path / "b")
    assert [score.n for score in first.scores] == [6] * len(first.scores)
    np.testing.assert_allclose(
        [score.value for score in first.scores], [score.value for score in alone.scores], atol=0.02
    )


@pytest.mark.parametrize(
    ("grids", "reason"),
    [
        (torch.ones(6, 4, 4, 3), "tokens are the same everywhere"),
        (noise(3, 4, 4, 3), "fewer than 4 images of each batch could be read"),
        (torch.full((6, 4, 4, 3), torch.nan), "features are not finite"),
    ],
)
def test_what_cannot_be_audited_says_why(grids: Tensor, reason: str, tmp_path: Path) -> None:
    found = audited([grids], tmp_path)
    assert not found.scores
    assert reason in found.empty


def test_a_grid_of_one_row_has_columns_only(tmp_path: Path) -> None:
    found = audited([positioned(8, (1, 6))], tmp_path)
    names = {score.metric for score in found.scores}
    assert "position-r2-column" in names
    assert "position-r2-row" not in names
    assert next(score.value for score in found.scores if score.metric == "position-r2") > 0.9


def test_groups_that_cannot_be_read_are_left_out_and_all_of_them_are_an_error(tmp_path: Path) -> None:
    found = audited([positioned(6), torch.empty(0)], tmp_path / "one")
    assert {score.n for score in found.scores} == {6}
    with pytest.raises(InputError, match="expected images that can be decoded"):
        audited([torch.empty(0)], tmp_path / "none")
