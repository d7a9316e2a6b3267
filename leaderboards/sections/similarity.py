"""The sections on CKA: last blocks, the most similar blocks, and blocks at the same depth of two backbones.

Source of the last: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS
2021, figures 12 and G.1, which compare trainings of one network so.
"""

from dataclasses import dataclass
from itertools import product

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, Table, said, section, slug
from layerboard.leaderboards.blocks.display import number_text, pooling_name, pooling_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import INTERVAL, RecordGroup, groups_of, swapped
from layerboard.leaderboards.sections.provenance import partial_line, units_text
from layerboard.leaderboards.sections.tables import cell_table
from layerboard.zoo.spec import FLOORS

TITLE = "How similar the backbones are (CKA)"

NOTE = """\
Linear CKA compares two layers, of one backbone or of two: 1 means equal up to rotation and scale, 0
unrelated. It measures how similar features are, not how good."""

NO_LAST_BLOCKS = "The last blocks were not compared, only other layers."
ELSEWHERE = (
    "Maps of all compared layers, and of what was read inside blocks, are on a page of their own: `{name}`."
)


@dataclass(frozen=True, kw_only=True)
class CkaTable(RecordGroup):
    """Comparisons of layers by the same tokens of the same images."""

    pooling: str  # the tokens that were compared

    @property
    def title(self) -> str:
        return f"{pooling_name(self.pooling)}, {self.dataset_name} ({self.protocol})"

    def select(self, records: pd.DataFrame) -> pd.DataFrame:
        """Comparisons like its own among some records."""
        rows = super().select(records)
        return rows[rows["pooling"] == self.pooling]


def cka_tables(board: Board) -> tuple[CkaTable, ...]:
    """One table for each dataset, protocol, pooling and set of images of comparisons, in order."""
    tables = [
        CkaTable(*group.source, group.apart, rows, pooling=str(pooling))
        for group in groups_of(board.pairs)
        for pooling, rows in group.rows.groupby("pooling")
    ]
    return tuple(sorted(tables, key=lambda table: (*table.rank, pooling_rank(table.pooling))))


def similarity_blocks(board: Board) -> list[Block]:
    """The section on CKA; empty if no layers were compared."""
    blocks: list[Block] = []
    for table in cka_tables(board):
        title = f"CKA: {table.title}{' †' if table.rows['partial'].any() else ''}"
        similar, lasts = most_similar_blocks(board, table), last_table(board, table)
        blocks.append(Heading(3, title))
        if lasts.empty:
            blocks.append(said(NO_LAST_BLOCKS))
            continue
        words = said("CKA between the last blocks of all backbones{units}:", units=units_text(table.rows))
        blocks += [words, Table(lasts, caption=f"{title}: last blocks"), partial_line(table.rows)]
        if len(similar):
            note = said("The most similar blocks of every two backbones:")
            blocks += [note, Table(similar, caption=f"{title}: most similar blocks")]
    drawn = board.pairs[board.pairs["value"].notna()]["family"].isin(FLOORS)
    there = said(ELSEWHERE if not drawn.all() else "", name=f"{board.page}.cka")
    return [Heading(2, TITLE), said(NOTE), there, *blocks] if blocks else []


def last_table(board: Board, table: CkaTable) -> pd.DataFrame:
    """CKA between last blocks of all backbones, symmetric, as text with intervals."""
    rows = table.select(board.last_blocks)
    cells: dict[tuple[str, str], str] = {}
    fields = rows[["backbone", "other", *INTERVAL]].itertuples(index=False, name=None)
    for first, second, value, low, high in fields:
        text = number_text(value) if first == second else number_text(value, low, high)
        cells[first, board.labels[second]] = cells[second, board.labels[first]] = text
    compared = {name for name, _ in cells}
    others = [label for name, label in board.labels.items() if name in compared]
    return cell_table(board.labels, others, cells, head="")


def most_similar_blocks(board: Board, table: CkaTable) -> pd.DataFrame:
    """The most similar blocks of each pair of backbones, as text, the most similar pair first.

    Blocks count from 1; ties go to the lower layers; the random floor takes no part.
    """
    depths = {backbone.name: backbone.depth for backbone in board.backbones}
    floors = {backbone.name for backbone in board.backbones if backbone.floor}
    rows = table.select(board.block_pairs).dropna(subset="value")
    rows = rows[(rows["backbone"] != rows["other"]) & ~rows[["backbone", "other"]].isin(floors).any(axis=1)]
    rows = rows.sort_values(["value", "layer", "other_layer"], ascending=[False, True, True], kind="stable")
    rows = rows.drop_duplicates(["backbone", "other"])
    return pd.DataFrame(
        {
            "backbone": board.labels[row["backbone"]],
            "block": f"{row['layer']}/{depths[row['backbone']]}",
            "other backbone": board.labels[row["other"]],
            "its block": f"{row['other_layer']}/{depths[row['other']]}",
            "CKA": number_text(*(row[name] for name in INTERVAL)),
        }
        for row in rows.to_dict("records")
    )


SAME_DEPTH = "How similar backbones are at the same depth (CKA)"
MOST = 12  # backbones of which every two are drawn
PRIMARY = "patch"  # pooling that is drawn if there is any

SAME_DEPTH_NOTE = """\
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
    return section(Heading(2, SAME_DEPTH), said(SAME_DEPTH_NOTE), fewer, *figures)


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
        for nearest in [max(1, round(block * second.depth / first.depth))]  # in relative depth
        if (key := (first.name, block, second.name, nearest)) in cka
    ]
    if not points:
        return None
    title = f"Same depth of every two backbones: {table.title}"
    name = slug(f"{table.dataset_name}.{table.protocol}.same-depth")
    order = tuple(each.label for each in drawn)
    frame = pd.DataFrame(points, columns=["panel", "series", "x", "y"])
    return Plot(frame, "lines", title, "block / depth", "CKA", name=name, order=order)
