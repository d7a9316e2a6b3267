"""The section on kinds of vectors: what each block scores by what is read of it, side by side.

Sources: Raghu et al., NeurIPS 2021, figures 11 and 13; Walmer et al., CVPR 2023, figures 7, 24 and 25.
"""

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, said, section, slug
from layerboard.leaderboards.blocks.display import pooling_name, pooling_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.frames import candidates

TITLE = "What is read of a block: class token, mean, and other vectors"

NOTE = """\
The score of each block by the vectors that are read of it, in a panel for each backbone. The tables of every
layer have these numbers."""

TOKENS = """\
One patch token is tested on other images than the rest, so compare the shapes of the lines, not their heights
(after Raghu et al., NeurIPS 2021, figure 11)."""

PATCH = "one patch token"
COMPARED = ["backbone", "layer", "value"]


def vector_blocks(board: Board) -> list[Block]:
    """A figure for each column in which blocks have scores by several kinds of vectors; empty without any."""
    plots = [plot for column in board.columns if (plot := _plot(board, column))]
    tokens = any(PATCH in set(plot.frame["series"]) for plot in plots)
    return section(Heading(2, TITLE), said(NOTE), said(TOKENS if tokens else ""), *plots)


def _plot(board: Board, column: Column) -> Plot | None:
    """A panel for each backbone, a line for each kind of vectors; None for a single kind."""
    rows = column.family.dropna(subset="value")
    order = sorted(set(rows["pooling"]), key=pooling_rank)
    series = {pooling_name(pooling): rows.loc[rows["pooling"] == pooling, COMPARED] for pooling in order}
    if len(tokens := _tokens(board, column)):
        series[PATCH] = tokens
    if len(series) < 2:
        return None
    points = [
        (backbone.label, name, int(layer), float(value))
        for backbone in column.backbones
        for name, part in series.items()
        for _, layer, value in sorted(part[part["backbone"] == backbone.name].itertuples(index=False))
    ]
    frame = pd.DataFrame(points, columns=["panel", "series", "x", "y"])
    data = f".{column.data}" * column.apart
    name = slug(f"{column.task}.{column.dataset}{data}.{column.protocol}.{column.metric.split()[0]}.vectors")
    return Plot(frame, "lines", column.title, "block", f"{column.metric}, %", name=name, order=tuple(series))


def _tokens(board: Board, column: Column) -> pd.DataFrame:
    """Scores of single patch tokens, of the backbones of a column of few-shot probes; else no rows."""
    rows = candidates(board.analyses.records)
    same = {"dataset": column.dataset, "protocol": column.protocol, "head": -1}
    for name, value in ({"task": "token-probes", "metric": "fewshot-10"} | same).items():
        rows = rows[rows[name] == value]
    scored = column.family["backbone"] if column.task == "fewshot" else ()
    return rows.loc[rows["backbone"].isin(scored), COMPARED].dropna()
