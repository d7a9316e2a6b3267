"""The section on transformed features: what each transform gains, beside the layers as they are."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import fixed, natural, score_text, signed_text
from leaderboards.scores.column import Column
from leaderboards.scores.differences import Difference, ScoredLayer, Side, best_side, differences_of, sides_of
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
    """What a transform gains one backbone in one column.

    Attributes:
        column: Task, dataset, data, protocol and metric.
        backbone: Name of the backbone.
        transform: What was done to its features.
        plain: Its best block as it is.
        best: Its best block with the transform.
        gain: The one less the other; both layers were chosen on the items that score them.
        same_layer: The gain where the block stays that is best without the transform; None where that has
            no score.
        honest: Difference of the scores on halves of the data on which no layer was chosen; NaN where no
            choice is recorded.
    """

    column: Column
    backbone: str
    transform: str
    plain: Side
    best: Side
    gain: Difference
    same_layer: Difference | None
    honest: float


def gains_of(board: Board) -> tuple[Gain, ...]:
    """The gains of all transforms, by column, transform and backbone in the order of the tables.

    A backbone that was not scored without the transform, or has no score with it, is left out.
    """
    boards = {
        transform: board.only(
            board.transformed[board.transformed["transform"] == transform].assign(transform="")
        )
        for transform in sorted(set(board.transformed["transform"]), key=natural)
    }  # seen alone they are scores like any others
    return tuple(
        gain
        for column in board.columns
        for transform, changed in boards.items()
        for gain in _gains(board, column, column.on(changed.scores), transform)
    )


def _gains(board: Board, plain: Column, changed: Column, transform: str) -> Iterator[Gain]:
    """What a transform gains in a column, backbone by backbone."""
    for backbone in changed.backbones:
        name = backbone.name
        before, after = sides_of(plain.candidates, name), sides_of(changed.candidates, name)
        if not before or not after:
            continue
        best, best_changed = best_side(plain.candidates, name), best_side(changed.candidates, name)
        same = [side for side in after if side.layer == best.layer]
        scores = [ScoredLayer(name, side.place, side.score, transform) for side in (best_changed, *same)]
        gain, *others = differences_of(plain, scores, ScoredLayer(name, best.place, best.score), board.items)
        honest = plain.honest.get(name), changed.honest.get(name)
        yield Gain(
            column=plain,
            backbone=name,
            transform=transform,
            plain=best,
            best=best_changed,
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
    gains = gains_of(board)
    if gains:
        frame = pd.DataFrame([_cells(gain, board.labels[gain.backbone]) for gain in gains])
        frame = frame if frame["held-out gain"].any() else frame.drop(columns="held-out gain")
        blocks.append(Table(frame, left=3, caption="What transforms gain", head=2))
    sentences = tuple(empty_sentences(board, board.transformed))
    return [*blocks, *([Bullets(sentences)] if sentences else [])]


def _cells(gain: Gain, label: str) -> dict[str, str]:
    return {
        "column": gain.column.heading,
        "transform": gain.transform,
        "backbone": label,
        "best as it is": side_text(gain.plain),
        "best transformed": side_text(gain.best),
        "gain": difference_text(gain.gain),
        "at the plain layer": "" if gain.same_layer is None else difference_text(gain.same_layer),
        "held-out gain": signed_text(gain.honest),
    }


def side_text(side: Side) -> str:
    """A score with its layer: ``61.2 (9/12)``."""
    return f"{score_text(side.score)} ({side.layer}/{side.depth})"


def difference_text(difference: Difference) -> str:
    """A difference with its interval: ``+1.2 (0.3 to 2.1)``."""
    low, high = fixed(difference.low, 1), fixed(difference.high, 1)
    return signed_text(difference.value) + (f" ({low} to {high})" if low else "")


def empty_sentences(board: Board, rows: pd.DataFrame, unit: str = "layer") -> Iterator[str]:
    """A sentence for each backbone, task, transform and reason for which layers, or units, have no score."""
    missing = rows[rows["value"].isna() & rows["primary"].astype(bool)]
    keys = ["backbone", "task", "dataset", "protocol", "transform", "reason"]
    for key, part in missing.groupby(keys, sort=True):
        name, task, dataset, protocol, transform, reason = map(str, key)
        layers = f"{len(part)} {unit}{'' if len(part) == 1 else 's'}"
        label = board.labels[name]
        yield f"{label}: {task} on {dataset} ({protocol}) with {transform}, {layers}: {reason}."
