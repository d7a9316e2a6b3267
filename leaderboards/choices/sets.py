"""What sets of layers gain: each set of a backbone against the best of its single layers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from leaderboards.choices.gains import At, Difference, Measured, blocks_of, difference_of
from leaderboards.choices.honest import choices
from leaderboards.choices.selection import (
    Column,
    backbones_of,
    columns_of,
    is_analysis,
    is_floor,
    is_set,
    newest,
    primary_poolings,
    score_rows,
)
from leaderboards.choices.sides import Side, best_of
from leaderboards.display import natural
from tasks.sets import SETS, names_of
from zoo.spec import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGain:
    """What taking layers together gains one backbone in one column.

    Attributes:
        column: Task, dataset, data, protocol and metric.
        backbone: Name of the backbone.
        transform: What was done to the features of each layer; "" for nothing.
        names: What the set is called (`tasks.sets.SETS`); of the best pair, and of the best one that was
            chosen on other data, `PAIR` and `CHOSEN`.
        blocks: Its blocks, rising; of one that was chosen on other data, those that were chosen most often.
        score: Its score, in percent; of one that was chosen on other data, that on the data that did not
            choose.
        best: The best single block, chosen on the items that score it.
        gain: The set's score less that of the single block; of one that was chosen on other data, less that
            of single blocks that were chosen so, too.
    """

    column: Column
    backbone: str
    transform: str
    names: tuple[str, ...]
    blocks: tuple[int, ...]
    score: float
    best: Side
    gain: Difference


PAIR = "best pair of {count}"
CHOSEN = "chosen on other data, of {count}"


def set_rows(records: pd.DataFrame) -> pd.DataFrame:
    """The newest records of sets of layers that rank."""
    return newest(records[is_set(records) & ~is_analysis(records)])


def set_gains(records: pd.DataFrame, items: Path | None) -> tuple[SetGain, ...]:
    """The gains of all sets, by column, transform and backbone in the order of the tables.

    A backbone of which no single layer was scored so, or no set has a score, is left out.

    Args:
        records: Columns of `Record`, of one suite.
        items: The items of their run; None where they are not there, and nothing says how sure a gain is.
    """
    together = set_rows(records)
    found: list[SetGain] = []
    for transform in sorted({*together["transform"]}, key=natural):
        # seen alone they are scores like any others
        plain = score_rows(records[records["transform"] == transform].assign(transform=""))
        own = together[together["transform"] == transform]
        for column in columns_of(plain):
            for backbone in backbones_of(own):
                found += _of_backbone(plain, own, At(column, backbone.name, transform), items)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Scored:
    """One set with its score."""

    layer: Layer
    depth: int
    pooling: str
    score: float

    @property
    def blocks(self) -> tuple[int, ...]:
        return tuple(one.index for one in self.layer.members)


def _of_backbone(plain: pd.DataFrame, own: pd.DataFrame, at: At, items: Path | None) -> Iterator[SetGain]:
    """The gains of one backbone in a column: the named sets, the best pair, the honest choice."""
    single = blocks_of(plain, at)
    pooling = primary_poolings(plain, at.column).get(at.backbone)
    rows = at.column.rows(own)
    rows = rows[(rows["backbone"] == at.backbone) & (rows["metric"] == at.column.metric) & ~is_floor(rows)]
    rows = rows[(rows["pooling"] == pooling) & rows["value"].notna()]
    if single.empty or rows.empty:
        return
    best = best_of(single, at.backbone)
    alone = Measured(at.backbone, best.place, best.score, at.transform)
    made = partial(SetGain, column=at.column, backbone=at.backbone, transform=at.transform, best=best)
    for names, one in _shown(_scored(rows)):
        place = one.layer.index, str(one.layer), one.pooling
        fused = Measured(at.backbone, place, one.score, at.transform)
        gain = difference_of(at.column, fused, alone, items)
        yield made(names=names, blocks=one.blocks, score=one.score, gain=gain)
    chosen, before = _chosen(rows), choices(plain, at.column).get(at.backbone)
    if chosen is not None and before is not None and len(rows) > 1:
        score, blocks = chosen
        names, gain = (CHOSEN.format(count=len(rows)),), Difference(score - before.score)
        yield made(names=names, blocks=blocks, score=score, gain=gain)


def _scored(rows: pd.DataFrame) -> list[_Scored]:
    """Sets with their scores, those of deeper blocks behind."""
    fields = rows[["layer", "tap", "depth", "pooling", "value"]].itertuples(index=False, name=None)
    found = [
        _Scored(Layer.of_record(int(layer), str(tap)), int(depth), str(pooling), float(value))
        for layer, tap, depth, pooling, value in fields
    ]
    return sorted(found, key=lambda one: one.layer.place)


def _shown(sets: Sequence[_Scored]) -> Iterator[tuple[tuple[str, ...], _Scored]]:
    """The sets of fixed blocks, in the order of `SETS`, and the best pair, the shallower of equal ones."""
    names = {one.blocks: names_of(one.blocks, one.depth) for one in sets}
    pairs = [one for one in sets if len(one.blocks) == 2]
    fixed = [one for one in sets if {*names[one.blocks]} - {"pairs"}]
    for one in sorted(fixed, key=lambda one: SETS.index(names[one.blocks][0])):
        yield tuple(name for name in names[one.blocks] if name != "pairs"), one
    if pairs and pairs != fixed:
        yield (PAIR.format(count=len(pairs)),), max(pairs, key=lambda one: one.score)


def _chosen(rows: pd.DataFrame) -> tuple[float, tuple[int, ...]] | None:
    """Mean score, on the other halves, of the sets that halves of the data chose, and the commonest."""
    some = rows[rows["chosen"] > 0]
    shares, scores = some["chosen"].astype(float).tolist(), some["held_out"].astype(float).tolist()
    score = math.fsum(share * value for share, value in zip(shares, scores, strict=True))
    if not math.isclose(math.fsum(shares), 1.0, abs_tol=1e-6) or math.isnan(score):
        return None
    commonest = some.iloc[shares.index(max(shares))]
    layer = Layer.of_record(int(commonest["layer"]), str(commonest["tap"]))
    return score, tuple(one.index for one in layer.members)
