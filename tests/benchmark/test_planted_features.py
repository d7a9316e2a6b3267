"""A network in which it is known what the final norm, two blocks together and the choice of a set gain."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import layerboard
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.record import read_records
from layerboard.leaderboards.sections.features import feature_blocks, feature_gains, normed_gains
from layerboard.leaderboards.sections.sets import set_gains
from layerboard.leaderboards.sections.variants import Gain
from layerboard.zoo.errors import InputError
from tests.benchmark.runs import Tally, files, leave_pages_out

CLASSES, EACH, SIDE, CELL = 8, 10, 32, 8
CODE = slice(2, 10)  # channels of the class; the first two are large, and of no class
COLOURS, COLOURED = slice(10, 13), 1e-4  # pixels are carried on, too small for any cosine
WIDTH = 32


class Planted(nn.Module):
    """Shows the class of an image (its red), if it is among some, or a random direction (by its blue)."""

    def __init__(self, known: range, large: float = 0.0) -> None:
        super().__init__()
        self.known, self.large = known, large
        drawn = torch.randn(256, WIDTH - COLOURS.stop, generator=torch.Generator().manual_seed(len(known)))
        self.register_buffer("directions", nn.functional.normalize(drawn, dim=1))

    def forward(self, tokens: Tensor) -> Tensor:
        colours = (tokens[..., COLOURS] / COLOURED * 255).round().clamp(0, 255)
        classes = (colours[..., 0] / 30).round().long()
        is_known = ((classes >= self.known.start) & (classes < self.known.stop))[..., None]
        shown = torch.zeros_like(tokens)
        shown[..., 0] = self.large * (colours[..., 1] - 127.5) / 127.5
        shown[..., 1] = -shown[..., 0]
        shown[..., CODE] = nn.functional.one_hot(classes.clamp(0, CLASSES - 1), CLASSES) * is_known
        shown[..., COLOURS] = tokens[..., COLOURS]
        shown[..., COLOURS.stop :] = torch.where(is_known, 0, self.directions[colours[..., 2].long()])
        return shown


class Network(nn.Module):
    """Four blocks: of the first classes, of the others, of all beside large numbers, and of none."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, WIDTH, CELL, CELL, bias=False)
        self.embed.weight.data.zero_()
        for channel in range(3):
            self.embed.weight.data[COLOURS.start + channel, channel] = COLOURED / CELL**2
        halves, none = (range(CLASSES // 2), range(CLASSES // 2, CLASSES)), range(0)
        self.blocks = nn.ModuleList(
            [*map(Planted, halves), Planted(range(CLASSES), large=50.0), Planted(none, large=1.0)]
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.norm.weight.data[:2] = 0

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.embed(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        return self.norm(tokens).mean(dim=1)


def write_images(folder: Path) -> Path:
    random = np.random.default_rng(0)
    for number in range(CLASSES):
        (folder / f"class{number}").mkdir(parents=True)
        for image in range(EACH):
            colour = (30 * number, *random.integers(256, size=2).tolist())
            Image.new("RGB", (SIDE, SIDE), colour).save(folder / f"class{number}" / f"{image}.png")
    return folder


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    place = tmp_path_factory.mktemp("planted")
    images, out = write_images(place / "images"), place / "out"
    shown = {"image_size": SIDE, "mean": (0, 0, 0), "std": (1, 1, 1), "name": "planted", "verbose": False}
    net = Network()
    mine = layerboard.from_module(net, blocks=list(net.blocks), final_norm=net.norm, **shown)
    options = {"images": images, "output": out, "cache": place / "cache", "floor": False}
    options |= {"taps": "block,block-normed", "poolings": "cls,mean,gem"}
    with Tally().watching() as tally, pytest.MonkeyPatch.context() as patch:
        leave_pages_out(patch)
        made = layerboard.run(mine, "knn", fuse="greedy:3,1+2+4,1+3+4", **options)
    assert made.failures == ()
    assert set(tally.rows.values()) == {CLASSES * EACH}  # all of this in one forward pass
    before = files(out / "records")
    with Tally().watching() as tally, pytest.MonkeyPatch.context() as patch:
        leave_pages_out(patch)
        layerboard.run(mine, "knn", fuse="1+3+4,2+1+4,greedy:3", **options)
    assert not tally.rows
    assert files(out / "records") == before
    return Board.of(read_records([out / "records"]), items=out / "items")


def by_name(gains: tuple[Gain, ...]) -> dict[str, Gain]:
    return {name: gain for gain in gains for name in gain.names}


@pytest.mark.slow
def test_a_block_that_is_best_only_behind_the_norm(board: Board) -> None:
    gain = by_name(feature_gains(board))["tap block-normed"]
    assert (gain.best.layer, gain.best.score) == (3, 100.0)
    assert gain.plain.layer in (1, 2)
    assert gain.plain.score < 70
    assert 20 < gain.held_out.low <= gain.held_out.value <= gain.held_out.high < 60
    ((column,), (by_depth,)) = board.columns, normed_gains(board, board.columns[0]).values()
    assert column.held_out["planted"].score < 70
    assert by_depth[3].low > 30
    assert [*by_depth] == [1, 2, 3, 4]
    titles = [getattr(block, "caption", "") for block in feature_blocks(board)]
    assert "Gain of block-normed over the block: knn top-1" in titles


def test_two_blocks_that_know_half_of_the_classes_are_chosen_together(board: Board) -> None:
    gains = by_name(set_gains(board))
    greedy = gains["greedy:3, of 4 blocks"]
    assert (greedy.best.tap, greedy.best.score) == ("1+2", 100.0)
    fair = greedy.held_out
    assert fair.value == pytest.approx(100 - board.columns[0].held_out["planted"].score, abs=0.5)
    assert 20 < fair.low <= fair.value <= fair.high < 60
    given = [gain for gain in set_gains(board) if gain.names == ("1+3+4",)]
    assert [gain.plain.tap for gain in given] == ["block", "1+2+4"]  # the best layer, and the first of them
    assert given[1].gain.value == pytest.approx(given[1].best.score - given[1].plain.score)
    assert "1+2+3" not in gains


def test_poolings_are_compared_with_the_usual_ones(board: Board) -> None:
    gains = by_name(feature_gains(board))
    assert {name for name in gains if name.startswith("pooling")} == {"pooling mean", "pooling gem"}
    mean = gains["pooling mean"]
    assert (mean.gain.value, mean.held_out.value) == (0, 0)
    assert gains["pooling gem"].best.pooling == "gem"


def test_a_network_without_a_norm_is_left_out_and_said(tmp_path: Path) -> None:
    net = Network()
    shown = {"image_size": SIDE, "name": "bare", "verbose": False}
    mine = layerboard.from_module(net, blocks=list(net.blocks), final_norm=False, **shown)
    with pytest.raises(
        InputError, match="no block of bare has the tap block-normed, as no final norm is known; taps="
    ):
        layerboard.run(mine, "knn", images=write_images(tmp_path / "images"), taps="block,block-normed")
