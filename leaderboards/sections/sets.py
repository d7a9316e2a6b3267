"""The section on sets of layers: what taking layers together gains over the best single one."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import natural, score_text
from leaderboards.scores.column import Column
from leaderboards.scores.differences import Difference, ScoredLayer, Side, best_side, differences_of
from leaderboards.scores.frames import is_floor
from leaderboards.sections.transforms import NO_ITEMS, difference_text, empty_sentences, side_text
from tasks.blocks import Block, Bullets, Heading, Table, said
from tasks.sets import SETS, names_of
from zoo.spec import Layer

NOTE = """\
The same forwards, with layers taken together: the cosine of a set is the mean of its layers' cosines; probes
see the layers' unit vectors side by side. None of these scores stands in another table. `gain` is the set
less the best single layer, in points, with its 95 % interval over the same items. The best layer was chosen
on the items that score it, the blocks of `last4`, `quarters` and `all` were not, so their gains are a little
too low; the best pair was chosen among many more than the best layer, so its gain is too high. The last row
of a backbone is fair: set and layer are both chosen on one half of the data and scored on the other. The
temperature of a vote is the task's own: by a mean with a layer that says little it acts as a higher one."""

PAIR = "best pair of {count}"
CHOSEN = "chosen on other data, of {count}"


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


def set_gains(board: Board) -> tuple[SetGain, ...]:
    """The gains of all sets, by transform, column and backbone in the order of the tables.

    A backbone of which no single layer was scored so, or no set has a score, is left out.
    """
    gains: list[SetGain] = []
    for transform in sorted(set(board.sets["transform"]), key=natural):
        # seen alone they are scores like any others
        same = board.measured["transform"] == transform
        plain = board.only(board.measured[same].assign(transform=""))
        sets = board.sets[board.sets["transform"] == transform]
        for column in plain.columns:
            for backbone in board.backbones_in(sets):
                gains += _gains(board, column, column.select(sets), backbone.name, transform)
    return tuple(gains)


@dataclass(frozen=True, slots=True)
class _ScoredSet:
    """One set with its score."""

    layer: Layer
    depth: int
    pooling: str
    score: float

    @property
    def blocks(self) -> tuple[int, ...]:
        return tuple(member.index for member in self.layer.members)


def _gains(board: Board, column: Column, sets: pd.DataFrame, name: str, transform: str) -> Iterator[SetGain]:
    """The gains of one backbone in a column: the named sets, the best pair, the honest choice."""
    single = column.candidates[column.candidates["backbone"] == name]
    rows = sets[(sets["backbone"] == name) & (sets["metric"] == column.metric) & ~is_floor(sets)]
    rows = rows[(rows["pooling"] == column.poolings.get(name)) & rows["value"].notna()]
    if single.empty or rows.empty:
        return
    best = best_side(single, name)
    alone = ScoredLayer(name, best.place, best.score, transform)
    gain_of = partial(SetGain, column=column, backbone=name, transform=transform, best=best)
    for names, scored in _shown(_scored(rows)):
        position = scored.layer.index, str(scored.layer), scored.pooling
        together = ScoredLayer(name, position, scored.score, transform)
        (gain,) = differences_of(column, [together], alone, board.items)
        yield gain_of(names=names, blocks=scored.blocks, score=scored.score, gain=gain)
    chosen, before = _chosen(rows), column.honest.get(name)
    if chosen is not None and before is not None and len(rows) > 1:
        score, blocks = chosen
        gain = Difference(score - before.score)
        yield gain_of(names=(CHOSEN.format(count=len(rows)),), blocks=blocks, score=score, gain=gain)


def _scored(rows: pd.DataFrame) -> list[_ScoredSet]:
    """Sets with their scores, those of deeper blocks behind."""
    fields = rows[["layer", "tap", "depth", "pooling", "value"]].itertuples(index=False, name=None)
    sets = [
        _ScoredSet(Layer.of_record(int(layer), str(tap)), int(depth), str(pooling), float(value))
        for layer, tap, depth, pooling, value in fields
    ]
    return sorted(sets, key=lambda scored: scored.layer.place)


def _shown(sets: Sequence[_ScoredSet]) -> Iterator[tuple[tuple[str, ...], _ScoredSet]]:
    """The sets of fixed blocks, in the order of `SETS`, and the best pair, the shallower of equal ones."""
    names = {scored.blocks: names_of(scored.blocks, scored.depth) for scored in sets}
    pairs = [scored for scored in sets if len(scored.blocks) == 2]
    fixed = [scored for scored in sets if {*names[scored.blocks]} - {"pairs"}]
    for scored in sorted(fixed, key=lambda scored: SETS.index(names[scored.blocks][0])):
        yield tuple(name for name in names[scored.blocks] if name != "pairs"), scored
    if pairs and pairs != fixed:
        yield (PAIR.format(count=len(pairs)),), max(pairs, key=lambda scored: scored.score)


def _chosen(rows: pd.DataFrame) -> tuple[float, tuple[int, ...]] | None:
    """Mean score, on the other halves, of the sets that halves of the data chose, and the commonest."""
    some = rows[rows["chosen"] > 0]
    shares, scores = some["chosen"].astype(float).tolist(), some["held_out"].astype(float).tolist()
    score = math.fsum(share * value for share, value in zip(shares, scores, strict=True))
    if not math.isclose(math.fsum(shares), 1.0, abs_tol=1e-6) or math.isnan(score):
        return None
    commonest = some.iloc[shares.index(max(shares))]
    layer = Layer.of_record(int(commonest["layer"]), str(commonest["tap"]))
    return score, tuple(member.index for member in layer.members)


def set_blocks(board: Board) -> list[Block]:
    """The section on sets of layers; nothing where there are none."""
    if board.sets.empty:
        return []
    blocks: list[Block] = [Heading(2, "What sets of layers gain"), said(NOTE)]
    blocks += [] if board.items is not None else [said(NO_ITEMS)]
    gains = set_gains(board)
    if gains:
        frame = pd.DataFrame([_cells(gain, board.labels[gain.backbone]) for gain in gains])
        frame = frame if frame["transform"].any() else frame.drop(columns="transform")
        head = list(frame.columns).index("set")
        blocks.append(Table(frame, left=head + 2, caption="What sets of layers gain", head=head))
    sentences = tuple(empty_sentences(board, board.sets.assign(transform="sets of layers"), "set"))
    return [*blocks, *([Bullets(sentences)] if sentences else [])]


def _cells(gain: SetGain, label: str) -> dict[str, str]:
    return {
        "column": gain.column.heading,
        "backbone": label,
        "transform": gain.transform,
        "set": ", ".join(gain.names),
        "blocks": _blocks_text(gain.blocks),
        "score": score_text(gain.score),
        "best layer": side_text(gain.best),
        "gain": difference_text(gain.gain),
    }


def _blocks_text(blocks: tuple[int, ...]) -> str:
    """Blocks in short: ``9-12``, ``3, 6, 9, 12``."""
    first, last = blocks[0], blocks[-1]
    if len(blocks) > 2 and blocks == tuple(range(first, last + 1)):
        return f"{first}-{last}"
    return ", ".join(map(str, blocks))
