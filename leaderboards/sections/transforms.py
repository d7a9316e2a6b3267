"""The sections on the gains of transforms, and of layer sets, over plain single layers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Bullets, Heading, Table, said
from layerboard.leaderboards.blocks.display import fixed, natural, score_text, signed_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column, Side, chosen_elsewhere
from layerboard.leaderboards.board.differences import MISSING, Estimate, best_side, differences_of, sides_of
from layerboard.leaderboards.board.frames import backbones_of, is_floor
from layerboard.tasks.framework.sets import SETS, names_of
from layerboard.zoo.spec import Layer

NOTE = """\
Scores of transformed features, from the same forward passes. `debias:K` removes the K directions of
patch tokens that encode position, estimated on a black image; `whiten` and `zscore` normalise vectors
with statistics of other images, without labels. These scores are in no other table. `gain` is the score of
the best layer with the transform minus that of the best layer without it, in points, with its 95 % interval
over the same items. Intervals are not corrected for multiple comparisons: about one in twenty excludes 0 by
chance. Both layers were chosen on the test data. `at the plain layer` keeps the layer that is best without
the transform; `held-out gain` is between layers that were chosen on held-out data."""

NO_ITEMS = """\
No gain has an interval: per-item scores were missing when this page was written."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of a transform, or of a layer set, for one backbone in one column.

    The last gain of a backbone from sets is chosen on held-out data, both the set and the single block: their
    scores are on data that did not choose them. All others are chosen on the items that score them.
    """

    column: Column
    plain: Side  # the best plain block, or that which was chosen most often, and the score
    best: Side  # the best block with the transform; for sets the best, or that which was chosen most often
    gain: Estimate
    same_layer: Estimate = MISSING  # at the best plain block; NaN if it has no score
    honest: float = math.nan  # of a transform, with layers chosen on held-out data; NaN without a choice
    names: tuple[str, ...] = ()  # name of a set (`tasks.sets.SETS`), or `PAIR`, or `CHOSEN`


def gains_of(board: Board, rows: pd.DataFrame) -> tuple[Gain, ...]:
    """The gains of all transforms, by column, transform and backbone that was scored with and without it.

    ``rows`` are the transformed or the compressed ones of the board.
    """
    scores = {
        transform: board.only(rows[rows["transform"] == transform].assign(transform="")).scores
        for transform in sorted(set(rows["transform"]), key=natural)
    }  # on their own, they are scores like any others
    gains: list[Gain] = []
    for column in board.columns:
        for transform, others in scores.items():
            changed = replace(column, rows=column.select(others))
            both = {*column.candidates["backbone"]} & {*changed.candidates["backbone"]}
            names = [backbone.name for backbone in changed.backbones if backbone.name in both]
            gains += [gain_of(board, column, name, changed, name, transform) for name in names]
    return tuple(gains)


def gain_of(board: Board, plain: Column, base: str, changed: Column, name: str, transform: str = "") -> Gain:
    """What a backbone in a changed column gains over another one, or itself, in the plain column."""
    before, after = best_side(plain.candidates, base), best_side(changed.candidates, name, transform)
    same = [side for side in sides_of(changed.candidates, name, transform) if side.layer == before.layer]
    gain, *others = differences_of(plain, [after, *same], before, board.items)
    chosen, again = plain.honest.get(base), changed.honest.get(name)
    honest = again.score - chosen.score if chosen and again else math.nan
    return Gain(plain, before, after, gain, others[0] if others else MISSING, honest)


def transform_blocks(board: Board) -> list[Block]:
    """The section on transformed features; empty if there are none."""
    if board.transformed.empty:
        return []
    frame = pd.DataFrame(
        {
            "column": gain.column.heading,
            "transform": gain.best.transform,
            "backbone": board.labels[gain.best.backbone],
            "best as it is": side_text(gain.plain),
            "best transformed": side_text(gain.best),
            "gain": difference_text(gain.gain),
            "at the plain layer": difference_text(gain.same_layer),
            "held-out gain": signed_text(gain.honest),
        }
        for gain in gains_of(board, board.transformed)
    )
    heading = Heading(2, "What transforms of the features gain")
    tables = gain_blocks(board, frame, "What transforms gain")
    return [heading, said(NOTE), *tables, *missing_blocks(board, board.transformed)]


def gain_blocks(board: Board, frame: pd.DataFrame, caption: str) -> list[Block]:
    """The table of gains, without empty optional columns."""
    blocks: list[Block] = [] if board.items is not None else [said(NO_ITEMS)]
    idle = [name for name in frame if name in ("transform", "held-out gain") and not frame[name].any()]
    frame = frame.drop(columns=idle)
    head = [*frame].index("set") if "set" in frame else 2
    left = head + 2 if "set" in frame else 3
    return [*blocks, *([Table(frame, left=left, caption=caption, head=head)] if len(frame) else [])]


def side_text(side: Side) -> str:
    """A score with its layer: ``61.2 (9/12)``."""
    return f"{score_text(side.score)} ({side.layer}/{side.depth})"


def difference_text(difference: Estimate) -> str:
    """A difference with its interval: ``+1.2 (0.3 to 2.1)``; "" without a difference."""
    low, high = fixed(difference.low, 1), fixed(difference.high, 1)
    return signed_text(difference.value) + (f" ({low} to {high})" if low else "")


def missing_blocks(board: Board, rows: pd.DataFrame, unit: str = "layer") -> list[Block]:
    """Numbers of layers (or units) without a score, by backbone, task, transform and reason."""
    missing = rows[rows["value"].isna() & rows["primary"].astype(bool)]
    keys = ["backbone", "task", "dataset", "protocol", "transform", "reason"]
    sentences = []
    for key, part in missing.groupby(keys, sort=True):
        name, task, dataset, protocol, transform, reason = map(str, key)
        what = f"{board.labels[name]}: {task} on {dataset} ({protocol}) with {transform}"
        sentences.append(f"{what}, {len(part)} {unit}{'' if len(part) == 1 else 's'}: {reason}.")
    return [Bullets(tuple(sentences))] if sentences else []


SET_NOTE = """\
Scores of sets of layers, from the same forward passes. The similarity of a set is the mean of the cosine
similarities of its layers; probes get the concatenated unit vectors. These scores are in no other table.
`gain` is the score of the set minus that of the best single layer, in points, with its 95 % interval over the
same items. The best layer was chosen on the test data, but the blocks of `last4`, `quarters` and `all` were
not, so their gains are a little too low; the best pair was chosen among many more candidates than the best
layer, so its gain is too high. The last row of a backbone is fair: set and layer are both chosen on one half
of the data and scored on the other. The temperature of a vote is the task's own; averaging with an
uninformative layer has the effect of a higher one."""

PAIR = "best pair of {count}"
CHOSEN = "chosen on other data, of {count}"


def set_gains(board: Board) -> tuple[Gain, ...]:
    """The gains of all sets, by transform, column and backbone; empty without scores of single layers."""
    gains: list[Gain] = []
    for transform in sorted(set(board.sets["transform"]), key=natural):
        rows, sets = (frame[frame["transform"] == transform] for frame in (board.measured, board.sets))
        plain = board.only(rows.assign(transform=""))  # on their own, they are scores like any others
        for column in plain.columns:
            for backbone in backbones_of(sets):
                gains += _gains(board, column, column.select(sets), backbone.name, transform)
    return tuple(gains)


def _gains(board: Board, column: Column, sets: pd.DataFrame, name: str, transform: str) -> Iterator[Gain]:
    """The gains of one backbone in a column: the named sets, the best pair, the honest choice."""
    single = column.candidates[column.candidates["backbone"] == name]
    rows = sets[(sets["backbone"] == name) & (sets["metric"] == column.metric) & ~is_floor(sets)]
    rows = rows[(rows["pooling"] == column.poolings.get(name)) & rows["value"].notna()]
    if single.empty or rows.empty:
        return
    best = best_side(single, name, transform)
    for names, side in _shown(sides_of(rows, name, transform)):
        (gain,) = differences_of(column, [side], best, board.items)
        yield Gain(column, best, side, gain, names=names)
    score, chosen = chosen_elsewhere(rows)
    before = column.honest.get(name)
    if not math.isnan(score) and before is not None and len(rows) > 1:
        side = replace(sides_of(chosen.head(1), name)[0], score=score)
        honest = replace(best, layer=before.shares[0][0], score=before.score)
        names = (CHOSEN.format(count=len(rows)),)
        yield Gain(column, honest, side, Estimate(score - before.score), names=names)


def blocks_of(side: Side) -> tuple[int, ...]:
    """The blocks of a set, ascending."""
    return tuple(member.index for member in Layer.of_record(side.layer, side.tap).members)


def _shown(sets: Sequence[Side]) -> Iterator[tuple[tuple[str, ...], Side]]:
    """The sets of fixed blocks, in the order of `SETS`, and the best pair, the shallower of equal ones."""
    sets = sorted(sets, key=lambda side: Layer.of_record(side.layer, side.tap).place)
    by_side = {side: names_of(blocks_of(side), side.depth) for side in sets}
    names = {side: tuple(name for name in every if name != "pairs") for side, every in by_side.items()}
    fixed = [side for side in sets if names[side]]
    for side in sorted(fixed, key=lambda side: SETS.index(names[side][0])):
        yield names[side], side
    pairs = [side for side in sets if len(blocks_of(side)) == 2]
    if pairs and pairs != fixed:
        yield (PAIR.format(count=len(pairs)),), max(pairs, key=lambda side: side.score)


def set_blocks(board: Board) -> list[Block]:
    """The section on layer sets; empty if there are none."""
    if board.sets.empty:
        return []
    frame = pd.DataFrame(
        {
            "column": gain.column.heading,
            "backbone": board.labels[gain.best.backbone],
            "transform": gain.plain.transform,
            "set": ", ".join(gain.names),
            "blocks": _blocks_text(blocks_of(gain.best)),
            "score": score_text(gain.best.score),
            "best layer": side_text(gain.plain),
            "gain": difference_text(gain.gain),
        }
        for gain in set_gains(board)
    )
    title, lacking = "What sets of layers gain", board.sets.assign(transform="sets of layers")
    tables = gain_blocks(board, frame, title)
    return [Heading(2, title), said(SET_NOTE), *tables, *missing_blocks(board, lacking, "set")]


def _blocks_text(blocks: tuple[int, ...]) -> str:
    """Blocks in short: ``9-12``, ``3, 6, 9, 12``."""
    first, last = blocks[0], blocks[-1]
    if len(blocks) > 2 and blocks == tuple(range(first, last + 1)):
        return f"{first}-{last}"
    return ", ".join(map(str, blocks))
