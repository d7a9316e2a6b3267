"""A pass over planted attention: what analyses are shown of a few images, without a network."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from layerboard.benchmark.passes.collectors import MeasuredCollector
from layerboard.benchmark.passes.loading import Batch, Member
from layerboard.benchmark.passes.shards import MeasuredLayers, Shards
from layerboard.tasks.framework.base import Findings, Outcome, Score, Source
from layerboard.tasks.framework.sources import ProbedImages
from layerboard.tasks.framework.task import AnalysisTask
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.doubles import SPEC, probed, source

Cells = tuple[int, int]
Pieces = Sequence[Sequence[slice]]
"""For each block, the pieces in which it shows the images."""


def probe(images: int, side: int) -> ProbedImages:
    """Some images in one group, each of its own colour."""
    one: Source = source([list(range(images))], view=ResizeCrop(side, side))
    return probed(one, 4)


def found_in(
    task: AnalysisTask, folder: Path, layers: Tensor, cells: Cells, pieces: Pieces | None = None
) -> Findings:
    """What an analysis says of attention [blocks images heads T T] of the images of its one group.

    Pieces are shown as where memory runs out: a block in pieces, and all blocks behind it, piece by piece.
    """
    blocks = task.feed.layers([Layer(index + 1) for index in range(len(layers))], SPEC)
    view = task.source.view
    collector = MeasuredCollector(task, task.source, blocks)
    count = layers.shape[1]
    for index, rows in order(len(layers), pieces or [[slice(0, count)]] * len(layers)):
        size = view.geometry((64, 64)).size
        members = tuple(Member(0, place, 1, size) for place in range(count)[rows])
        colours = torch.arange(count, dtype=torch.uint8)[rows].view(-1, 1, 1, 1)
        batch = Batch(colours.expand(-1, 3, size[1], size[0]), members)
        prefix = layers.shape[-1] - cells[0] * cells[1]
        maps = AttentionMaps(Layer(index + 1, "probabilities"), layers[index, rows], prefix, cells)
        collector.see(batch, maps)
    shards = Shards(folder, 1)
    shards.write(0, collector.finish(range(1)))
    return task.findings(MeasuredLayers(task.source, shards, blocks))


def order(blocks: int, pieces: Pieces) -> list[tuple[int, slice]]:
    """Block and images of each call: blocks of one piece first, then the others, piece by piece."""
    whole = [block for block in range(blocks) if len(pieces[block]) == 1]
    rest = [block for block in range(blocks) if len(pieces[block]) > 1]
    assert whole + rest == list(range(blocks))
    calls = [(block, pieces[block][0]) for block in whole]
    for piece in range(len(pieces[rest[0]]) if rest else 0):
        calls += [(block, pieces[block][piece]) for block in rest]
    return calls


def outcome_of(findings: Findings, index: int, pooling: str) -> Outcome:
    """What is said of one block (-1: the whole backbone) and pooling."""
    (one,) = (
        each.outcome for each in findings.outcomes if (each.layer.index, each.pooling) == (index, pooling)
    )
    return one


def scores_of(findings: Findings, index: int, pooling: str) -> dict[tuple[str, int], float]:
    """Values of one block and pooling by metric and head."""
    outcome = outcome_of(findings, index, pooling)
    assert not outcome.empty
    _check(outcome)
    return {(score.metric, score.head): score.value for score in outcome.scores}


def _check(outcome: Outcome) -> None:
    """Scores that have items are the means of their columns."""
    if outcome.items is None:
        return
    by_name: dict[str, Score] = {score.statistic: score for score in outcome.scores}
    for name, statistic in outcome.items.statistics.items():
        column = outcome.items.values[statistic.column]
        assert len(column) == len(outcome.items.keys) == by_name[name].n
        np.testing.assert_allclose(by_name[name].value, column.mean(), rtol=1e-12)
