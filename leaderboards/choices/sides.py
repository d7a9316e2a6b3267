"""The blocks of two backbones that are put beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.selection import best_rows
from leaderboards.records.items import Place
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class Side:
    """What one backbone brings to a comparison.

    Attributes:
        layer: Block, from 1.
        depth: Its number of blocks.
        pooling: Pooling of the features.
        score: Score of that layer, in percent.
    """

    layer: int
    depth: int
    pooling: str
    score: float

    @property
    def place(self) -> Place:
        """Where its items are."""
        return self.layer, "block", self.pooling

    @property
    def share(self) -> float:
        """Where in its depth the block is, above 0 to 1."""
        return self.layer / self.depth


def equal_shares(first: Sequence[Side], second: Sequence[Side]) -> list[tuple[Side, Side]]:
    """Blocks of two backbones at equal shares of their depth: each of the shallower one with its nearest.

    Of two that are equally near, the deeper one counts. Blocks that have no score have no partner.

    Raises:
        InputError: No two blocks are at the same share.
    """
    if first[0].depth > second[0].depth:
        return [(one, other) for other, one in equal_shares(second, first)]
    half_block = 0.5 / second[0].depth + 1e-9
    pairs = []
    for one in first:
        nearest = min(second, key=lambda other: (round(abs(other.share - one.share), 9), -other.layer))
        if abs(nearest.share - one.share) <= half_block:
            pairs.append((one, nearest))
    if not pairs:
        raise InputError("no two of the layers that were run are at the same share of the depth")
    return pairs


def sides_of(rows: pd.DataFrame) -> list[Side]:
    """The blocks of one backbone that have a score, in order."""
    fields = rows.sort_values("layer")[["layer", "depth", "pooling", "value"]]
    return [
        Side(int(layer), int(depth), str(pooling), float(value))
        for layer, depth, pooling, value in fields.itertuples(index=False, name=None)
    ]


def best_of(rows: pd.DataFrame, name: str) -> Side:
    """The best block of a backbone, the lower one of equal ones."""
    (best,) = sides_of(best_rows(rows[rows["backbone"] == name]))
    return best
