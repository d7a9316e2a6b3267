"""The section on kinds of vectors: what each block scores by what is read of it, side by side.

Sources: Raghu et al., NeurIPS 2021, figures 11 and 13; Walmer et al., CVPR 2023, figures 7, 24 and 25.
"""

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, said, section, slug
from layerboard.leaderboards.blocks.display import pooling_name, pooling_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.frames import backbone_points, candidates, matching

TITLE = "What is read of a block: class token, mean, and other vectors"

NOTE = """\
The score of each block by the vectors that are read of it, in a panel for each backbone. The tables of every
layer have these numbers."""
ONE = """ One patch token is tested on other images than the rest, so compare the shapes of its lines,
not their heights (after Raghu et al., NeurIPS 2021, figure 11)."""

PATCH = "one patch token"
ONE_TOKEN: dict[str, str | int] = {"task": "token-probes", "metric": "fewshot-10", "head": -1}


def vector_blocks(board: Board) -> list[Block]:
    """A figure for each column in which blocks have scores by several kinds of vectors; empty without any."""
    plots = [plot for column in board.columns if (plot := _plot(board, column))]
    words = NOTE + ONE * any(PATCH in plot.order for plot in plots)
    return section(Heading(2, TITLE), said(words), *plots)


def _plot(board: Board, column: Column) -> Plot | None:
    """A panel for each backbone, a line for each kind of vectors; None for a single kind."""
    rows, same = column.family, {"dataset": column.dataset, "protocol": column.protocol}
    order = sorted(set(rows["pooling"]), key=pooling_rank)
    series = {pooling_name(pooling): rows[rows["pooling"] == pooling] for pooling in order}
    tokens = matching(candidates(board.analyses.records), ONE_TOKEN | same)
    series |= {PATCH: tokens} if column.task == "fewshot" and len(tokens) else {}
    parts = column.task, column.dataset_name, column.protocol, column.metric.split()[0], "vectors"
    points, name = backbone_points(column.backbones, series), slug(".".join(parts))
    plot = Plot(points, "lines", column.title, "block", f"{column.metric}, %", name=name, order=tuple(series))
    return plot if len(series) > 1 else None
