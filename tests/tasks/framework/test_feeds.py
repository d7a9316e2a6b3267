"""What measurers are fed of a batch: grids, attention, or the taps of a block together."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from layerboard.tasks.framework.base import BatchPart
from layerboard.tasks.framework.feeds import (
    ATTENTION,
    GRIDS,
    LASTING_GRIDS,
    WHOLE_GRIDS,
    AttentionFeed,
    PicturedFeed,
    ResidualFeed,
)
from layerboard.zoo.features import AttentionMaps, LayerFeatures, Shown
from layerboard.zoo.spec import Layer, Tap
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.doubles import SPEC

SCORED = (Layer(0), Layer(2), Layer(3), Layer(3, "final"))
VIEW = ResizeCrop(32, 32)
TRANSFORMER = replace(SPEC, heads=2)
TAPS: tuple[Tap, ...] = ("input", "attention", "mid", "mlp", "block")


def part(rows: slice) -> BatchPart:
    """Images of a batch at those rows."""
    return BatchPart(rows, VIEW, (32, 32), torch.zeros(rows.stop - rows.start, 3, 32, 32, dtype=torch.uint8))


def features(layer: Layer, images: int = 3) -> LayerFeatures:
    """Features that tell their image and layer apart."""
    numbers = torch.arange(images).float() + 10 * layer.index
    return LayerFeatures(layer, numbers[:, None], numbers[:, None, None, None].expand(images, 2, 2, 1))


def maps(index: int, images: int = 3) -> AttentionMaps:
    probabilities = torch.full((images, 2, 5, 5), 0.2) * torch.arange(images).view(-1, 1, 1, 1)
    return AttentionMaps(Layer(index, "probabilities"), probabilities, 1, (2, 2))


def test_grids_are_those_of_the_scored_layers() -> None:
    assert GRIDS.layers(SCORED, SPEC) == SCORED
    assert GRIDS.shown(Layer(2)) == (Layer(2),)
    assert not GRIDS.whole
    assert WHOLE_GRIDS.whole
    portion = GRIDS.portion([features(Layer(2))], part(slice(1, 3)))
    assert portion[:, 0, 0, 0].tolist() == [21, 22]


def test_grids_that_may_be_kept_are_one_copy_for_all_tasks() -> None:
    live = torch.ones(3, 2, 2, 1, dtype=torch.bfloat16)
    shown = LayerFeatures(Layer(2), None, live)
    first, second = (LASTING_GRIDS.portion([shown], part(slice(1, 3))) for _ in range(2))
    live.zero_()  # the activation is gone after the call
    assert first.dtype == torch.float32
    assert first.shape == (2, 2, 2, 1)
    assert first.all()
    assert first.data_ptr() == second.data_ptr()


def test_attention_is_that_of_every_block_of_which_something_is_scored() -> None:
    assert ATTENTION.layers(SCORED, SPEC) == (Layer(2, "attention"), Layer(3, "attention"))
    assert ATTENTION.shown(Layer(3, "attention")) == (Layer(3, "probabilities"),)
    portion = ATTENTION.portion([maps(2)], part(slice(1, 2)))
    assert portion.probabilities.shape == (1, 2, 5, 5)
    assert portion.prefix_tokens == 1
    assert portion.cells == (2, 2)


def test_attention_that_goes_on_from_block_to_block_starts_at_the_first() -> None:
    blocks = tuple(Layer(index, "attention") for index in (1, 2, 3))
    for feed in (AttentionFeed(from_first=True), PicturedFeed(from_first=True)):
        assert feed.layers(SCORED, SPEC) == blocks
        assert feed.shown(blocks[0]) == (Layer(1, "probabilities"),)
        assert not feed.whole
    one = part(slice(1, 3))
    attention, pixels = PicturedFeed(from_first=True).portion([maps(1)], one)
    assert attention.probabilities.shape == (2, 2, 5, 5)
    assert pixels is one.pixels


def test_the_taps_of_a_block_come_together() -> None:
    feed = ResidualFeed()
    mixer, convnet = (replace(SPEC, heads=None, prefix_tokens=0, taps=taps) for taps in (TAPS[:4], None))
    for spec in (TRANSFORMER, mixer):
        assert feed.layers(SCORED, spec) == (Layer(2), Layer(3))
    assert feed.layers(SCORED, convnet) == (Layer(2, "branch"), Layer(3, "branch"))
    assert feed.shown(Layer(3)) == tuple(Layer(3, tap) for tap in TAPS)
    shown: list[Shown] = [features(layer) for layer in feed.shown(Layer(3))]
    portion = feed.portion(shown, part(slice(0, 2)))
    assert tuple(portion) == TAPS
    assert all(one.grid.shape[0] == 2 for one in portion.values())


@pytest.mark.parametrize("feed", [GRIDS, ATTENTION, PicturedFeed(from_first=True), ResidualFeed()])
def test_nothing_is_asked_of_the_input_of_block_1_but_grids(feed: Any) -> None:
    asked = [shown for layer in feed.layers((Layer(0),), SPEC) for shown in feed.shown(layer)]
    assert asked == ([Layer(0)] if feed is GRIDS else [])
