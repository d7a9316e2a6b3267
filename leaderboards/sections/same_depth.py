"""The section on CKA of blocks at the same depth of every two backbones.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, figures 12
and G.1, which compare trainings of one network so.
"""

from itertools import product

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, said, section, slug
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import BoardBackbone, swapped
from layerboard.leaderboards.sections.similarity import CkaTable, cka_tables

TITLE = "How similar backbones are at the same depth (CKA)"
MOST = 12  # backbones of which every two are drawn
PRIMARY = "patch"  # pooling that is drawn if there is any

NOTE = """\
CKA of each block of a backbone (panels) with the block at the same depth of every other one (lines); of
networks with other numbers of blocks, the block that is nearest in relative depth."""
FEWER = "Of {count} backbones, the first {most} of the tables are drawn."


def same_depth_blocks(board: Board) -> list[Block]:
    """A figure for each dataset and protocol; empty if no two backbones were compared."""
    tables: dict[tuple[str, ...], CkaTable] = {}
    for table in sorted(cka_tables(board), key=lambda table: table.pooling != PRIMARY):
        tables.setdefault(table.source, table)
    figures = [figure for table in tables.values() if (figure := _figure(board, table))]
    count = max((figure.frame["panel"].nunique() for figure in figures), default=0)
    backbones = sum(not backbone.floor for backbone in board.backbones)
    fewer = said(FEWER, count=str(backbones), most=str(MOST)) if backbones > MOST <= count else said("")
    return section(Heading(2, TITLE), said(NOTE), fewer, *figures)


def _figure(board: Board, table: CkaTable) -> Plot | None:
    """A panel per backbone, a line per other one; None if no two were compared."""
    pairs = table.select(board.block_pairs)
    pairs = pairs[pairs["backbone"] != pairs["other"]].dropna(subset="value")
    both = pd.concat([pairs, swapped(pairs)])
    keys = zip(both["backbone"], both["layer"], both["other"], both["other_layer"], strict=True)
    cka = dict(zip(keys, both["value"], strict=True))
    compared = {*both["backbone"]}
    drawn = [each for each in board.backbones if each.name in compared and not each.floor][:MOST]
    points = [
        (first.label, second.label, block / first.depth, cka[key])
        for first, second in product(drawn, repeat=2)
        for block in range(1, first.depth + 1)
        if (key := (first.name, block, second.name, _nearest(block, first, second))) in cka
    ]
    if not points:
        return None
    title = f"Same depth of every two backbones: {table.title}"
    name = slug(f"{table.dataset_name}.{table.protocol}.same-depth")
    order = tuple(each.label for each in drawn)
    frame = pd.DataFrame(points, columns=["panel", "series", "x", "y"])
    return Plot(frame, "lines", title, "block / depth", "CKA", name=name, order=order)


def _nearest(block: int, first: BoardBackbone, second: BoardBackbone) -> int:
    """The block of the second backbone at the relative depth of one of the first."""
    return max(1, round(block * second.depth / first.depth))
