"""The section on variants: each is compared with the plain backbone on the same items.

A variant is a backbone shown otherwise (its name says how, `zoo.spec.Variant`) or trained again, or the
features of its layers, transformed or compressed (the records' column ``transform``).
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Bullets, Heading, Plot, Table, said, section, slug
from layerboard.leaderboards.blocks.display import fixed, narrow, natural, signed_text, task_display
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.costs import bytes_of
from layerboard.leaderboards.board.differences import MISSING, Estimate, best_side, differences_of, sides_of
from layerboard.leaderboards.board.frames import candidates
from layerboard.leaderboards.sections.provenance import units_text
from layerboard.leaderboards.sections.trainings import training_blocks, trainings_of
from layerboard.tasks.framework.registry import DRIFT
from layerboard.tasks.framework.transforms import is_compression
from layerboard.zoo.spec import Variant

TITLE = "What variants of a backbone change"

NOTE = """\
Each variant is compared with the backbone beside it. A cell is the score of the variant's best layer minus
that of the best layer of that backbone, in points, with its paired 95 % interval over the same items.
Intervals are not corrected for multiple comparisons: about one in twenty excludes 0 by chance. Both layers
were chosen on these items; a second table keeps the layer that is best in the backbone, and a third, where
there are held-out data, has layers that were chosen on these. `alike`: all layers score the same, as where a
protocol fixes the size of images."""

NAMED = """\
Names end in what is unusual: the input size (`@448px`; without one it is the backbone's own), the number
format (`@bfloat16`; `amp-` is mixed precision, with weights in float32; without one it is float32), and
`@fast-resize` for images resized by torch, not by Pillow. Sizes are compared with the backbone's own, or the
smallest, formats and resizings with the widest format and Pillow at the same size. In the other tables each
has a row of its own. Tokens, and so costs, grow with the square of the input size."""

TRANSFORMS = """\
Transforms change the vectors of the same forward passes: `whiten` and `zscore` normalise them with statistics
of other images, without labels. These scores are in no other table."""

COMPRESSIONS = """\
Compressions make the vectors of the same forward passes smaller. They are fitted, without labels, on the
images that a task knows before the queries (training images, the database); queries are only compressed. If
every image is tested by the others, they are fitted on all. `pca:N`: the N directions of largest variance;
`rp:N`: N random directions; `first:N`: the first N channels; `int8`: 255 levels per channel; `binary`: above
or below the mean, compared by Hamming distance; `pq:M`: product quantisation to M bytes; `+`: one after the
other. These scores are in no other table."""

BYTES = """\
Bytes of one stored vector of the best layer with the compression, and how many times the best layer's vector
in float32, which may be another layer of another dimension, is larger."""

DRIFT_NOTE = """\
Drift of vectors: the norm of the difference relative to the vector of the reference, in percent, as the
median over images and, in brackets, the maximum. `beyond 1 %` is the first layer whose median exceeds 1 %, or
whose numbers are not finite in one of the two. Vectors are class tokens (`cls`) and means of the patch tokens
(`mean`); the chart shows class tokens where there are any."""

FAR = 0.01  # relative difference of vectors that readers should know of
NOT_FINITE = "not finite"

NO_ITEMS = """\
No difference has an interval: per-item scores were missing when this page was written."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What a variant of a backbone, or a set of its layers, gains over the plain one in one column.

    The last gain of a backbone from sets is chosen on held-out data, both the set and the single block: their
    scores are on data that did not choose them. All others are chosen on the items that score them, but for
    ``held_out``.
    """

    column: Column
    plain: Side  # the best plain block, or that which was chosen most often, and the score
    best: Side  # the best block of the variant; for sets the best, or that which was chosen most often
    gain: Estimate
    same_layer: Estimate = MISSING  # at the best plain block; NaN if it has no score
    held_out: Estimate = MISSING  # of layers, or sets, chosen on other data; NaN without a choice
    alike: bool = False  # whether all layers have the same scores
    names: tuple[str, ...] = ()  # of a set, of how it was chosen, or of a tap or pooling


def references_of(names: Collection[str]) -> dict[str, str]:
    """The backbone that each variant among some names is compared with.

    At its own input size, or the smallest, it is compared with the widest format that was run with Pillow's
    resizing; the first at another size with the first of these.
    """
    plain: dict[str, str] = {}
    sized: dict[tuple[str, int | None], str] = {}
    references = {}
    for name in sorted(names, key=lambda name: Variant.of(name).rank):
        variant = Variant.of(name)
        first = plain.setdefault(variant.entry, name)
        at_size = sized.setdefault((variant.entry, variant.input_size), name)
        references[name] = first if at_size == name else at_size
    return {name: reference for name, reference in references.items() if name != reference}


def gains_of(board: Board) -> tuple[Gain, ...]:
    """What every variant gains, by column, wherever it and what it is compared with have a score."""
    named = references_of(board.labels)
    for reference, others in trainings_of(board).items():
        named |= dict.fromkeys(others, reference)
    itself = {name: name for name in board.labels}
    changed = {
        transform: board.only(rows.assign(transform="")).scores  # on their own, they are scores like any
        for transform, rows in board.changed.groupby(board.changed["transform"].astype(str))
    }
    gains: list[Gain] = []
    for column in board.columns:
        gains += _gains(board, column, column, named)
        for transform, scores in changed.items():
            gains += _gains(board, column, replace(column, rows=column.select(scores)), itself, transform)

    def place(gain: Gain) -> tuple[object, ...]:
        plain, best = board.ranks[gain.plain.backbone], board.ranks[gain.best.backbone]
        return plain, natural(gain.best.transform), best

    return tuple(sorted(gains, key=place))


def _gains(
    board: Board, column: Column, changed: Column, references: Mapping[str, str], transform: str = ""
) -> Iterator[Gain]:
    """The gains of the backbones of a changed column, or of the same one, over their references."""
    plain, there = {*column.candidates["backbone"]}, {*changed.candidates["backbone"]}
    for name, reference in references.items():
        if name in there and reference in plain:
            before = best_side(column.candidates, reference)
            best = best_side(changed.candidates, name, transform)
            scored = candidates(changed.scored)  # in every pooling
            sides = sides_of(scored[scored["pooling"] == before.pooling], name, transform)
            same = [side for side in sides if side.layer == before.layer]
            gain, *others = differences_of(column, [best, *same], before, board.items)
            chosen, again = column.held_out.get(reference), changed.held_out.get(name)
            held_out = Estimate(again.score - chosen.score) if chosen and again else MISSING
            alike = _values(column, reference) == _values(changed, name)
            yield Gain(column, before, best, gain, others[0] if others else MISSING, held_out, alike)


def _values(column: Column, name: str) -> list[tuple[object, ...]]:
    """The scores of a backbone in a column, of every layer and pooling."""
    rows = column.scored[(column.scored["backbone"] == name) & column.scored["value"].notna()]
    return sorted(rows[["layer", "tap", "pooling", "value"]].itertuples(index=False, name=None))


def variant_blocks(board: Board) -> list[Block]:
    """The section on variants; empty if there are none."""
    gains, missing = gains_of(board), missing_blocks(board, board.changed)
    named = references_of(board.labels)
    parts = [*_drift_blocks(board, named), *training_blocks(board)]
    compressed = [gain for gain in gains if is_compression(gain.best.transform)]
    notes = {
        NOTE: bool(gains),
        NAMED: any(named.get(gain.best.backbone) == gain.plain.backbone for gain in gains),
        TRANSFORMS: len(board.compressed) < len(board.changed),
        COMPRESSIONS: len(board.compressed) > 0,
        NO_ITEMS: bool(gains) and board.items is None,
    }
    words = (said(note) for note, fits in notes.items() if fits)
    sizes = _bytes_blocks(board, compressed) if compressed else ()
    return section(Heading(2, TITLE), *words, *_tables(board, gains), *missing, *sizes, *parts)


def _tables(board: Board, gains: Sequence[Gain]) -> Iterator[Block]:
    """Differences of the best layers, of layers chosen otherwise, and the scores behind them."""
    plain = {(gain.column, gain.plain): replace(gain, best=gain.plain) for gain in gains}
    yield from _table(board, gains, lambda gain: "alike" if gain.alike else difference_text(gain.gain), TITLE)
    for words, rows, text in (
        ("At the best layer of the backbone:", gains, lambda gain: difference_text(gain.same_layer)),
        ("With layers chosen on held-out data:", gains, lambda gain: difference_text(gain.held_out)),
        ("Scores and best layers:", [*plain.values(), *gains], lambda gain: gain.best.text),
    ):
        for table in _table(board, rows, text, f"{TITLE}: {words[:1].lower()}{words[1:-1]}"):
            yield from (said(words), table)


def _table(board: Board, gains: Sequence[Gain], text: Callable[[Gain], str], caption: str) -> Iterator[Table]:
    """One row per variant, one column per task, with a text of each gain; none if all are empty."""
    every = chain.from_iterable(others.items() for others in trainings_of(board).values())
    changes = {name: training.change for name, training in every}
    headings = [column.heading for column in board.columns if any(gain.column == column for gain in gains)]
    body: dict[tuple[str, str], dict[str, str]] = {}
    for gain in sorted(gains, key=lambda gain: board.ranks[gain.plain.backbone]):
        name = gain.best.backbone
        label = f"{board.labels[name]} ({changes[name]})" if name in changes else board.labels[name]
        variant = gain.best.transform or ("as it is" if name == gain.plain.backbone else label)
        start = {"backbone": board.labels[gain.plain.backbone], "variant": variant}
        row = body.setdefault((start["backbone"], variant), start | dict.fromkeys(headings, ""))
        row[gain.column.heading] = text(gain)
    frame = pd.DataFrame(body.values())
    if len(frame) and frame[headings].any(axis=None):
        yield Table(frame, left=2, caption=caption, head=1)


def _bytes_blocks(board: Board, gains: Sequence[Gain]) -> Iterator[Block]:
    """The part on compressions: what their vectors cost, and scores against bytes."""
    sizes = bytes_of(board.changed)

    def size(side: Side) -> float:
        return sizes.get((side.backbone, side.layer, side.pooling, side.transform), math.nan)

    def text(gain: Gain) -> str:
        times = fixed(size(gain.plain) / size(gain.best), 1)
        return fixed(size(gain.best), 0) + (f" ({times})" if times else "")

    title = "Scores against the bytes of a vector"
    yield Heading(3, "What a vector costs")
    yield said(BYTES)
    yield from _table(board, gains, text, "Bytes of a vector, and times smaller")
    points = [
        (gain.column.heading, board.labels[side.backbone], size(side), side.score)
        for gain in sorted(gains, key=lambda gain: board.columns.index(gain.column))
        for side in (gain.best, gain.plain)
    ]
    # a layer whose size in float32 is unknown has no point
    frame = pd.DataFrame(points, columns=["panel", "series", "x", "y"]).drop_duplicates()
    yield Plot(frame, "points", title, "bytes", "score, %", shared=False, name="bytes", log=True)


def _drift_blocks(board: Board, references: Mapping[str, str]) -> Iterator[Block]:
    """Lines and tables of the drift of vectors from each backbone's reference, by dataset and protocol."""
    rows = board.plain[board.plain["task"] == DRIFT]
    rows = rows[rows["other"] == rows["backbone"].map(references)]
    median, _ = task_display(DRIFT).metrics
    for (dataset, protocol), group in rows.groupby(["dataset", "protocol"], sort=True):
        medians = group[group["metric"] == median]
        title = f"Drift of vectors: {dataset} ({protocol})"
        lines = medians[(medians["tap"] == "block") & medians["primary"].astype(bool)]
        frame = pd.DataFrame(
            {"series": lines["backbone"].map(board.labels), "x": lines["layer"], "y": 100 * lines["value"]}
        )
        yield Heading(3, title)
        yield said(DRIFT_NOTE)
        yield Plot(frame, "lines", title, "block", "median difference, %", name=slug(title))
        yield Table(_drift_table(board, group), caption=f"{title}{units_text(medians)}", head=1)


def _drift_table(board: Board, rows: pd.DataFrame) -> pd.DataFrame:
    """One row per backbone and pooling: first layer beyond `FAR`, then median and maximum, in percent."""
    medians, largests = (rows[rows["metric"] == metric] for metric in task_display(DRIFT).metrics)
    most = largests.set_index(["backbone", "pooling", "layer", "tap"])["value"]
    body = []
    for (name, pooling), layers in medians.groupby(["backbone", "pooling"], sort=False):
        cells = {"backbone": board.labels[str(name)], "vectors": str(pooling), "beyond 1 %": "none"}
        for layer, tap, value in layers[["layer", "tap", "value"]].itertuples(index=False, name=None):
            heading = str(layer) if tap == "block" else str(tap)
            largest = most.loc[str(name), str(pooling), layer, tap]
            text = f"{fixed(100 * value, 2)} ({fixed(100 * largest, 2)})"
            cells[heading] = NOT_FINITE if math.isnan(value) else text
            if not value <= FAR and cells["beyond 1 %"] == "none":
                cells["beyond 1 %"] = heading
        body.append(cells)
    table = pd.DataFrame(body).fillna("")
    columns = [str(column) for column in table]
    blocks = sorted(filter(str.isdecimal, columns), key=int)  # of backbones of any depth, then `final`
    others = [column for column in columns if not column.isdecimal()]
    return table[[*others[:3], *blocks, *others[3:]]]


def difference_text(difference: Estimate) -> str:
    """A difference with its interval, if that is `narrow`: ``+1.2 (0.3 to 2.1)``; "" without a difference."""
    low, high = fixed(difference.low, 1), fixed(difference.high, 1)
    interval = f" ({low} to {high})" if narrow(difference.low, difference.high) else ""
    return f"{signed_text(difference.value)}{interval}"


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
