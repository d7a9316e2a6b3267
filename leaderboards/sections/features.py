"""The sections on what is read of a block: scores by kind of vectors, and gains of other taps and poolings.

Sources of the first: Raghu et al., NeurIPS 2021, figures 11 and 13; Walmer et al., CVPR 2023, figures 7, 24
and 25.
"""

from collections.abc import Iterator

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, Table, said, section, slug
from layerboard.leaderboards.blocks.display import pooling_name, pooling_rank
from layerboard.leaderboards.board import differences
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.differences import Estimate, differences_of, sides_of
from layerboard.leaderboards.board.frames import backbone_points, candidates, is_floor, matching
from layerboard.leaderboards.sections.variants import NO_ITEMS, Gain, difference_text
from layerboard.zoo.spec import NORMED, READ_TAPS, Layer

VECTORS = "What is read of a block: class token, mean, and other vectors"

VECTORS_NOTE = """\
The score of each block by the vectors that are read of it, in a panel for each backbone. The tables of every
layer have these numbers."""
ONE = """ One patch token is tested on other images than the rest, so compare the shapes of its lines,
not their heights (after Raghu et al., NeurIPS 2021, figure 11)."""

PATCH = "one patch token"
ONE_TOKEN: dict[str, str | int] = {"task": "token-probes", "metric": "fewshot-10", "head": -1}


def vector_blocks(board: Board) -> list[Block]:
    """A figure for each column in which blocks have scores by several kinds of vectors; empty without any."""
    plots = []
    for column in board.columns:
        rows, same = column.family, {"dataset": column.dataset, "protocol": column.protocol}
        order = sorted(set(rows["pooling"]), key=pooling_rank)
        series = {pooling_name(pooling): rows[rows["pooling"] == pooling] for pooling in order}
        tokens = matching(candidates(board.analyses.records), ONE_TOKEN | same)
        series |= {PATCH: tokens} if column.task == "fewshot" and len(tokens) else {}
        parts = column.task, column.dataset_name, column.protocol, column.metric.split()[0], "vectors"
        if len(series) > 1:
            points, file = backbone_points(column.backbones, series), slug(".".join(parts))
            axis, names = f"{column.metric}, %", tuple(series)
            plots.append(Plot(points, "lines", column.title, "block", axis, name=file, order=names))
    words = VECTORS_NOTE + ONE * any(PATCH in plot.order for plot in plots)
    return section(Heading(2, VECTORS), said(words), *plots)


TITLE = "What other taps and poolings gain"
ADDED = ("cls+mean", "gem")  # poolings that are no part of a usual run

NOTE = """\
Other features of the same blocks, from the same forward passes: each row has the best layer of one tap, in
any pooling, or of one pooling. `gain` is its score minus that of the best block among class tokens, means and
grids, in points, with its 95 % interval over the same items; both layers were chosen on these items.
`held-out gain` is fair: both are chosen on one half of the items and scored on the other, both ways, in 100
splits."""

GEM = """\
`gem` is the cubic root of the mean of cubes over patch tokens, after values below 1e-6 were set to 1e-6. It
was made for features that follow a ReLU; tokens of transformers have both signs, and what is negative is
lost. `cls+mean` has the class token and the mean one after the other, at their own lengths."""

DEPTH = """\
`block-normed` is the output of a block after the network's own final norm, which was trained for the last
block alone. Points that it gains over the output of the same block as it is, by depth, in the pooling of the
best layer; each interval holds by itself."""


def feature_gains(board: Board) -> tuple[Gain, ...]:
    """The gain of each other tap and pooling, by column and backbone; empty if none was run."""
    return tuple(
        gain
        for column in board.columns
        if {*column.scored["tap"]} & {*READ_TAPS} or {*column.scored["pooling"]} & {*ADDED}
        for backbone in column.backbones
        if not backbone.floor
        for gain in _gains(board, column, backbone.name)
    )


def _gains(board: Board, column: Column, name: str) -> Iterator[Gain]:
    rows = column.scored[(column.scored["backbone"] == name) & column.scored["value"].notna()]
    rows = rows[rows["layer"] >= 1]
    blocks = rows[rows["tap"] == "block"]
    parts = {f"tap {tap}": rows[rows["tap"] == tap] for tap in READ_TAPS}
    if {*blocks["pooling"]} & {*ADDED}:
        poolings = sorted({*blocks["pooling"]}, key=pooling_rank)
        parts |= {f"pooling {each}": blocks[blocks["pooling"] == each] for each in poolings}
    base = sides_of(blocks[~blocks["pooling"].isin(ADDED)], name)
    others = {what: sides_of(part, name) for what, part in parts.items() if len(part)}
    if not base or not others:
        return
    best, every = _best(base), {side for part in others.values() for side in part}
    measured = differences.items_of(column, [*{*base} | every], board.items)
    for what, sides in others.items():
        side = _best(sides)
        (gain,) = differences_of(column, [side], best, board.items)
        held_out = differences.held_out_difference(column, sides, base, measured)
        yield Gain(column, best, side, gain, held_out=held_out, names=(what,))


def _best(sides: list[Side]) -> Side:
    """The highest score; of equal ones the lower layer, then the usual pooling."""
    return min(sides, key=lambda side: (-side.score, side.layer, pooling_rank(side.pooling)))


def normed_gains(board: Board, column: Column) -> dict[str, dict[int, Estimate]]:
    """What the final norm adds to the score of each block, by backbone and block."""
    rows = column.in_pooling()
    rows = rows[(rows["metric"] == column.metric) & rows["value"].notna() & ~is_floor(rows)]
    gains: dict[str, dict[int, Estimate]] = {}
    for backbone in column.backbones:
        taps = {tap: sides_of(rows[rows["tap"] == tap], backbone.name) for tap in ("block", NORMED)}
        plain = {side.layer: side for side in taps["block"]}
        for side in taps[NORMED]:
            if side.layer in plain:
                (gain,) = differences_of(column, [side], plain[side.layer], board.items)
                gains.setdefault(backbone.name, {})[side.layer] = gain
    return gains


def feature_blocks(board: Board) -> list[Block]:
    """The section on other taps and poolings; empty if there are none."""
    gains = feature_gains(board)
    if not gains:
        return []
    frame = pd.DataFrame(
        {
            "column": gain.column.heading,
            "backbone": board.labels[gain.best.backbone],
            "features": gain.names[0],
            "score": gain.best.text,
            "best block": gain.plain.text,
            "gain": difference_text(gain.gain),
            "held-out gain": difference_text(gain.held_out),
        }
        for gain in gains
    )
    blocks: list[Block] = [Heading(2, TITLE), said(NOTE)]
    blocks += [said(GEM)] if {gain.best.pooling for gain in gains} & {*ADDED} else []
    blocks += [] if board.items is not None else [said(NO_ITEMS)]
    return [*blocks, Table(frame, left=3, caption=TITLE, head=2), *_depth_blocks(board)]


def _depth_blocks(board: Board) -> Iterator[Block]:
    """What the final norm adds by depth: a plot of all columns, and a table of each."""
    by_column = {column: gains for column in board.columns if (gains := normed_gains(board, column))}
    if not by_column:
        return
    yield Heading(3, "Behind the final norm, by depth")
    yield said(DEPTH)
    points = [
        (column.heading, board.labels[name], layer, gain.value)
        for column, gains in by_column.items()
        for name, of_layers in gains.items()
        for layer, gain in of_layers.items()
    ]
    title = "Gain of block-normed over the block"
    frame = pd.DataFrame(points, columns=["panel", "series", "x", "y"])
    yield Plot(frame, "lines", title, "block", "gain, points", shared=False, name="block-normed")
    for column, gains in by_column.items():
        layers = sorted({layer for of_layers in gains.values() for layer in of_layers})
        table = [
            {"backbone": board.labels[name]}
            | {str(Layer(layer)): difference_text(of_layers.get(layer, Estimate())) for layer in layers}
            for name, of_layers in gains.items()
        ]
        yield Table(pd.DataFrame(table), caption=f"{title}: {column.heading}", folded=True)
