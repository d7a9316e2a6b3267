"""What analyses of attention hold in memory beside the maps of a block, without a network."""

from dataclasses import replace

import torch

from layerboard.benchmark.passes.collectors import MeasuredCollector
from layerboard.benchmark.passes.loading import Batch, Member
from layerboard.tasks.framework import sources
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.features.census import Census
from layerboard.zoo.spec import Layer
from tests.benchmark.doubles import SPEC
from workshop.perf.networks import SIDE
from workshop.perf.passes import problems

IMAGES, HEADS, CELLS, BLOCKS = 8, 12, (14, 14), 4


def collectors() -> list[MeasuredCollector]:
    blocks = [Layer(index + 1) for index in range(BLOCKS)]
    view = sources.IMAGES["standard"].view.scaled(SIDE, SIDE // CELLS[0])
    every = problems(IMAGES).values()
    return [
        MeasuredCollector(one, replace(one.source, view=view), one.feed.layers(blocks, SPEC)) for one in every
    ]


def test_no_copy_of_all_maps_and_no_map_outlives_its_block() -> None:
    """At once: the maps, how patches attend, rollouts of six variants, and copies of a few images."""
    tokens = 1 + CELLS[0] * CELLS[1]
    members = tuple(Member(0, place, 1, (SIDE, SIDE)) for place in range(IMAGES))
    batch = Batch(torch.zeros(IMAGES, 3, SIDE, SIDE, dtype=torch.uint8), members)
    seeded, listening, after = torch.Generator().manual_seed(0), collectors(), []
    with torch.no_grad(), Census() as held:
        for index in range(BLOCKS):
            scores = torch.randn(IMAGES, HEADS, tokens, tokens, generator=seeded)
            maps = AttentionMaps(Layer(index + 1, "probabilities"), scores.softmax(dim=-1), 1, CELLS)
            del scores
            for one in listening:
                one.see(batch, maps)
            del maps
            after.append(held._now)
    whole = IMAGES * HEADS * tokens**2 * 4
    assert 2 * whole < held.peak < 3.5 * whole
    assert after[0] < whole  # half of it rollouts
    growth = (after[-1] - after[0]) / (BLOCKS - 1)
    assert growth < 0.02 * whole  # numbers of images and heads, and sums over the images
