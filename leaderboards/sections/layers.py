"""The section on every layer: the tables of each column."""

from collections.abc import Iterator
from math import isnan

import pandas as pd

from layerboard.leaderboards.blocks import display
from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, Text, said, wrapped
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.differences import best_side, items_of, sides_of
from layerboard.leaderboards.sections import tables
from layerboard.leaderboards.sections.provenance import partial_line, units_text

HUNDRED = 100.0  # points: no difference of scores in percent is larger
SHOWN_SHARE = 0.05  # blocks chosen by a smaller share of the splits are not listed

NOTE = """\
Layer k is the output of block k, before any final norm. The bold score of each row is the one in the table
above; tables of other poolings have none. {maybe}{choices}`final` is the output of the final norm; it is
shown for comparison and is never chosen as the best layer. Cells beyond the last block of a backbone, and
`final` of a backbone without a final norm, are empty."""

MAYBE = """\
`≈` marks blocks that are {not_worse} than the best block of their backbone in any pooling: its best
on average is among these and the bold one (95 %; each backbone holds by itself). """

CHOICES_NOTE = """\
A short table follows: the held-out score, how much lower it is (optimism), and how often each block was
chosen over the random halves (if at least {least}). """

RESOLVES = """\
These {units} tell layers apart from the best that are {points} points worse (80 % of the time, 95 %
confidence, all layers at once)."""
RESOLVES_NOTHING = "These {units} are too few to tell layers apart."
WHY_NONE = "none holds in simulations, or it is wider than ± 40 points."

CHOICES = "How often each block is chosen on random halves of the data:"

KINDS = "{metric} by kind, at the best layer overall:"
OF_KEYPOINTS = """\
By kind, at the best layer overall: viewpoint and scale difference, truncation, occlusion, and keypoints
whose target image also shows a repeated part that may be confused with them."""

AZIMUTHS = "`azimuth` is how many eighths of a turn lie between the two viewpoints."


def layer_blocks(board: Board) -> list[Block]:
    """For each column its scores of every layer, in each pooling, and its task's other metrics."""
    if not board.columns:
        return []
    least = f"{display.fixed(100 * SHOWN_SHARE, 0)} %"
    choices = CHOICES_NOTE.format(least=least) if any(column.held_out for column in board.columns) else ""
    maybe = MAYBE.format(not_worse=display.NOT_WORSE) if board.has_intervals else ""
    blocks: list[Block] = [Heading(2, "Every layer"), wrapped(NOTE.format(maybe=maybe, choices=choices))]
    for column in board.columns:
        blocks += _column_blocks(board, column)
    return blocks


def _column_blocks(board: Board, column: Column) -> list[Block]:
    title = column.title
    blocks: list[Block] = [Heading(3, title), *_certainty(board, column)]
    blocks += _pooling_blocks(board, column, None, title)
    chosen, metrics, kinds = choice_table(column), tables.metrics_table(column), tables.kind_table(column)
    if not chosen.empty:
        blocks += [said(CHOICES), Table(chosen, caption=f"{title}: blocks chosen on random halves")]
    for pooling in column.other_poolings:
        blocks += _pooling_blocks(board, column, pooling, title)
    if not metrics.empty:
        note = said("All metrics, each at its own best layer:")
        blocks += [note, Table(metrics, caption=f"{title}: all metrics")]
        every, caption = tables.metric_layers_table(column), f"{title}: every layer by the other metrics"
        blocks.append(Table(every, left=2, caption=caption, head=1, folded=True))
    if not (alone := tables.at_best_table(column)).empty:
        note = said("At the best layer of {metric}:", metric=column.metric)
        blocks += [note, Table(alone, caption=f"{title}: at the best layer")]
    if not kinds.empty:
        named = {*kinds["kind"]} - {tables.LAYER}
        turned = named & {*tables.TURNS}
        known = f"{OF_KEYPOINTS}\n{AZIMUTHS}" if turned else OF_KEYPOINTS
        note = said(known if named <= {*tables.KIND_NAMES} else KINDS, metric=column.metric)
        blocks += [note, Table(kinds, left=1, caption=f"{column.heading} by kind")]
    return blocks


def _certainty(board: Board, column: Column) -> Iterator[Text]:
    """What the items of a column resolve; and that its scores lack intervals, though others have some.

    What was sampled is counted; if that is unknown, the items of the scores are named.
    """
    units, rows, standing = board.bounds[column.key].units, column.family, board.standings.get(column.key)
    if standing and not isnan(standing.smallest):
        words = RESOLVES if standing.smallest < HUNDRED else RESOLVES_NOTHING
        yield said(words, units=units, points=display.fixed(standing.smallest, 1))
    units = units or " or ".join(sorted({*rows["unit"]} - {""})).capitalize()
    if units and board.has_intervals and not any(map(display.narrow, rows["ci_low"], rows["ci_high"])):
        yield said(f"{display.TOO_FEW}: {WHY_NONE}", units=units)


def _pooling_blocks(board: Board, column: Column, pooling: str | None, title: str) -> list[Block]:
    rows, floor = tables.every_layer(column, pooling), tables.floor_sentence(column, pooling)
    if rows.empty:
        return [said("{floor}", floor=floor)]
    names = sorted({str(name) for name in rows["pooling"]}, key=display.pooling_rank)
    caption = ", ".join(map(display.pooling_name, names))
    bold, units = f"{caption[:1].upper()}{caption[1:]}", units_text(rows)
    if board.items and len(column.best):
        best = sides_of(column.best[:1], column.best["backbone"].iloc[0])
        measured = items_of(column, best, board.items).values()
        count = len({cluster for items in measured for cluster in items.clusters})
        if any(count != len(items.keys) for items in measured):  # such as videos
            units += f" in {count:,} independent groups"
    return [
        said("**{caption}**{units}. {floor}", caption=bold, units=units, floor=floor),
        Table(tables.layer_table(column, pooling), caption=f"{title}: every layer, {caption}"),
        partial_line(rows),
    ]


def choice_table(column: Column) -> pd.DataFrame:
    """Held-out score, optimism and chosen blocks of each backbone in one column; empty without a split."""
    return pd.DataFrame(
        {
            "backbone": backbone.label,
            "best": best_side(column.best, backbone.name).text,
            "held out": display.score_text(choice.score),
            "optimism": display.score_text(choice.optimism),
            "blocks chosen": ", ".join(
                f"{at} ({display.fixed(100 * share, 0)} %)"
                for at, share in choice.shares
                if share >= SHOWN_SHARE
            ),
        }
        for backbone in column.backbones
        if (choice := column.held_out.get(backbone.name))
    )
