"""The section on CKA: the similarity of layers, within and across backbones; and all CKA as matrices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said
from layerboard.leaderboards.blocks.display import number_text, pooling_name, pooling_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import INTERVAL, BoardBackbone, RecordGroup, groups_of
from layerboard.leaderboards.sections.provenance import partial_line, units_text
from layerboard.leaderboards.sections.tables import cell_table

SIMILARITY_TITLE = "How similar the backbones are (CKA)"

NOTE = """\
Linear CKA compares two layers, of one backbone or of two: 1 means equal up to rotation and scale, 0
unrelated. It measures how similar features are, not how good."""

CELLS = 400_000  # maximum numbers on a page; matrices beyond it are left out and reported

NO_LAST_BLOCKS = "The last blocks were not compared, only other layers, whose numbers are in the records."


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
    return [Heading(2, SIMILARITY_TITLE), said(NOTE), *blocks] if blocks else []


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


class BlockCka(NamedTuple):
    """CKA of blocks of two backbones, [blocks of the first, blocks of the second] in -1..1; NaN for none."""

    table: str  # what was compared, in words: tokens, dataset, protocol
    first: str  # label of the backbone of the rows
    second: str
    values: NDArray[np.float64]


def cka_matrices(board: Board, most: int = CELLS) -> tuple[tuple[BlockCka, ...], int]:
    """The matrices of a board up to ``most`` numbers in total, and how many do not fit.

    They come by table; if space is short, those of a backbone with itself come first.
    """
    backbones = [backbone for backbone in board.backbones if not backbone.floor]
    pairs = board.block_pairs.dropna(subset="value")
    every = [matrix for table in cka_tables(board) for matrix in _matrices(table, pairs, backbones)]
    fitting, count = set[int](), 0
    for index in sorted(range(len(every)), key=lambda index: every[index].first != every[index].second):
        count += every[index].values.size
        if count <= most:
            fitting.add(index)
    matrices = tuple(matrix for index, matrix in enumerate(every) if index in fitting)
    return matrices, len(every) - len(matrices)


def _matrices(table: CkaTable, pairs: pd.DataFrame, backbones: Sequence[BoardBackbone]) -> Iterator[BlockCka]:
    """The matrices of one table in the order of its backbones; those with themselves first."""
    rows_of = dict(iter(table.select(pairs).groupby(["backbone", "other"])))
    every = combinations_with_replacement(backbones, 2)
    for first, second in sorted(every, key=lambda pair: pair[0] != pair[1]):
        if (rows := rows_of.get((first.name, second.name))) is None:
            continue
        wide = rows.pivot_table("value", "layer", "other_layer")
        wide = wide.reindex(index=range(1, first.depth + 1), columns=range(1, second.depth + 1))
        values = wide.to_numpy(float)
        if first == second:
            values = np.where(np.isnan(values), values.T, values)
        yield BlockCka(table.title, first.label, second.label, values)
