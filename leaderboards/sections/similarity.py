"""The section on CKA: the similarity of last blocks, and the most similar blocks of two backbones."""

from dataclasses import dataclass

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said
from layerboard.leaderboards.blocks.display import number_text, pooling_name, pooling_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import INTERVAL, RecordGroup, groups_of
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
        blocks += [Heading(3, title), *_table_blocks(board, table, title)]
    drawn = board.pairs[board.pairs["value"].notna()]["family"].isin(FLOORS)
    there = said(ELSEWHERE if not drawn.all() else "", name=f"{board.page}.cka")
    return [Heading(2, TITLE), said(NOTE), there, *blocks] if blocks else []


def _table_blocks(board: Board, table: CkaTable, title: str) -> list[Block]:
    """The table of last blocks and the list of most similar blocks in one pooling."""
    similar, lasts = most_similar_blocks(board, table), last_table(board, table)
    if lasts.empty:
        return [said(NO_LAST_BLOCKS)]
    words = "CKA between the last blocks of all backbones{units}:"
    blocks: list[Block] = [said(words, units=units_text(table.rows))]
    blocks += [Table(lasts, caption=f"{title}: last blocks"), partial_line(table.rows)]
    if len(similar):
        note = said("The most similar blocks of every two backbones:")
        blocks += [note, Table(similar, caption=f"{title}: most similar blocks")]
    return blocks


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
