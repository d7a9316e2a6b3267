"""The section on transformed features: what each transform gains, beside the layers as they are."""

import math
from dataclasses import dataclass, replace

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import fixed, natural, score_text, signed_text
from leaderboards.scores.column import Column
from leaderboards.scores.differences import Difference, Side, best_side, differences_of, sides_of
from tasks.blocks import Block, Bullets, Heading, Table, said

NOTE = """\
The same forwards, with something done to the features before they were scored: `debias:K` removes from tokens
K directions in which they show their position, as a black image shows it; `whiten` and `zscore` fit vectors
to the spread of those of other images, without labels. None of these scores stands in another table.
`gain` is the best layer with the transform less the best one without it, in points, with its 95 % interval
over the same items; the interval is of that gain alone, so of twenty about one lies off 0 by chance. Both
layers were chosen on the items that score them. `at the plain layer` keeps the layer that is best as it is;
`held-out gain` is of layers that were chosen on other data than they are scored on."""

NO_ITEMS = """\
No gain has an interval: the measurements of single images were not there when this page was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What a transform gains one backbone in one column."""

    column: Column
    backbone: str
    transform: str
    plain: Side  # the best block as it is
    best: Side  # the best block with the transform
    gain: Difference  # both layers were chosen on the items that score them
    same_layer: Difference | None  # at the block that is best as it is; None where it has no score
    honest: float  # on halves of the data on which no layer was chosen; NaN where no choice is recorded


def gains_of(board: Board) -> tuple[Gain, ...]:
    """The gains of all transforms, by column, transform and backbone that was scored with and without it."""
    rows = board.transformed
    scores = {
        transform: board.only(rows[rows["transform"] == transform].assign(transform="")).scores
        for transform in sorted(set(rows["transform"]), key=natural)
    }  # seen alone they are scores like any others
    gains: list[Gain] = []
    for column in board.columns:
        for transform, others in scores.items():
            changed = replace(column, rows=column.select(others))
            both = {*column.candidates["backbone"]} & {*changed.candidates["backbone"]}
            names = [backbone.name for backbone in changed.backbones if backbone.name in both]
            gains += [_gain(board, column, changed, name, transform) for name in names]
    return tuple(gains)


def _gain(board: Board, plain: Column, changed: Column, name: str, transform: str) -> Gain:
    before, after = best_side(plain.candidates, name), best_side(changed.candidates, name, transform)
    sides = sides_of(changed.candidates, name, transform)
    same = [side for side in sides if side.layer == before.layer]
    gain, *others = differences_of(plain, [after, *same], before, board.items)
    honest = plain.honest.get(name), changed.honest.get(name)
    return Gain(
        column=plain,
        backbone=name,
        transform=transform,
        plain=before,
        best=after,
        gain=gain,
        same_layer=others[0] if others else None,
        honest=honest[1].score - honest[0].score if honest[0] and honest[1] else math.nan,
    )


def transform_blocks(board: Board) -> list[Block]:
    """The section on transformed features; nothing where there are none."""
    if board.transformed.empty:
        return []
    blocks: list[Block] = [Heading(2, "What transforms of the features gain"), said(NOTE)]
    blocks += [] if board.items is not None else [said(NO_ITEMS)]
    if gains := gains_of(board):
        frame = pd.DataFrame(
            {
                "column": gain.column.heading,
                "transform": gain.transform,
                "backbone": board.labels[gain.backbone],
                "best as it is": side_text(gain.plain),
                "best transformed": side_text(gain.best),
                "gain": difference_text(gain.gain),
                "at the plain layer": difference_text(gain.same_layer),
                "held-out gain": signed_text(gain.honest),
            }
            for gain in gains
        )
        frame = frame if frame["held-out gain"].any() else frame.drop(columns="held-out gain")
        blocks.append(Table(frame, left=3, caption="What transforms gain", head=2))
    return [*blocks, *missing_blocks(board, board.transformed)]


def side_text(side: Side) -> str:
    """A score with its layer: ``61.2 (9/12)``."""
    return f"{score_text(side.score)} ({side.layer}/{side.depth})"


def difference_text(difference: Difference | None) -> str:
    """A difference with its interval: ``+1.2 (0.3 to 2.1)``; "" where there is none."""
    if difference is None:
        return ""
    low, high = fixed(difference.low, 1), fixed(difference.high, 1)
    return signed_text(difference.value) + (f" ({low} to {high})" if low else "")


def missing_blocks(board: Board, rows: pd.DataFrame, unit: str = "layer") -> list[Block]:
    """For each backbone, task, transform and reason how many layers, or units, have no score, if any."""
    missing = rows[rows["value"].isna() & rows["primary"].astype(bool)]
    keys = ["backbone", "task", "dataset", "protocol", "transform", "reason"]
    sentences = []
    for key, part in missing.groupby(keys, sort=True):
        name, task, dataset, protocol, transform, reason = map(str, key)
        what = f"{board.labels[name]}: {task} on {dataset} ({protocol}) with {transform}"
        sentences.append(f"{what}, {len(part)} {unit}{'' if len(part) == 1 else 's'}: {reason}.")
    return [Bullets(tuple(sentences))] if sentences else []
