"""CKA as matrices: every block of one backbone against every block of another, or of itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leaderboards.board import Board
from leaderboards.scores.frames import BoardBackbone
from leaderboards.sections.similarity import CkaTable, cka_tables

CELLS = 400_000
"""Numbers that a page holds at most; matrices beyond it are left out and said."""


@dataclass(frozen=True, slots=True)
class BlockCka:
    """CKA of the blocks of two backbones.

    Attributes:
        table: What was compared, in words: tokens, dataset, protocol.
        first: Label of the backbone of the rows.
        second: Label of the one of the columns.
        values: CKA [blocks of the first, blocks of the second] in -1..1; NaN where it was not computed.
    """

    table: str
    first: str
    second: str
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BlockCkas:
    """The matrices of a page.

    Attributes:
        matrices: By table, then those of a backbone with itself, then the others, in the order of the tables.
        left_out: How many there was no room for.
    """

    matrices: tuple[BlockCka, ...]
    left_out: int


def cka_matrices(board: Board, most: int = CELLS) -> BlockCkas:
    """The matrices of a board, of which at most so many numbers are kept.

    Args:
        board: Comparisons of layers.
        most: Numbers that all matrices have together at most. Those of backbones with themselves come first.
    """
    backbones = [one for one in board.backbones if not one.floor]
    pairs = board.pairs[(board.pairs["tap"] == "block") & (board.pairs["other_tap"] == "block")]
    pairs = pairs[(pairs["layer"] >= 1) & (pairs["other_layer"] >= 1) & pairs["value"].notna()]
    found = [one for table in cka_tables(board.pairs) for one in _matrices(table, pairs, backbones)]
    kept, count = [], 0
    for one in sorted(found, key=lambda matrix: matrix.first != matrix.second):
        count += one.values.size
        if count <= most:
            kept.append(one)
    order = {id(one): place for place, one in enumerate(found)}
    kept.sort(key=lambda matrix: order[id(matrix)])
    return BlockCkas(tuple(kept), len(found) - len(kept))


def _matrices(table: CkaTable, pairs: pd.DataFrame, backbones: Sequence[BoardBackbone]) -> Iterator[BlockCka]:
    """The matrices of one table in the order of its backbones; those with themselves first."""
    ranks = {one.name: rank for rank, one in enumerate(backbones)}
    cells: dict[tuple[int, int], NDArray[np.float64]] = {}
    for (name, other), rows in table.rows(pairs).groupby(["backbone", "other"], sort=False):
        if name not in ranks or other not in ranks:
            continue
        one, two = ranks[str(name)], ranks[str(other)]
        places, values = rows[["layer", "other_layer"]].to_numpy(int) - 1, rows["value"].to_numpy(float)
        straight, turned = (places, places[:, ::-1])
        key, where = ((one, two), straight) if one <= two else ((two, one), turned)
        shape = (backbones[key[0]].depth, backbones[key[1]].depth)
        grid = cells.setdefault(key, np.full(shape, np.nan))
        inside = (where[:, 0] < shape[0]) & (where[:, 1] < shape[1])
        grid[where[inside, 0], where[inside, 1]] = values[inside]
        if one == two:
            grid[where[inside, 1], where[inside, 0]] = values[inside]
    for one, two in sorted(cells, key=lambda key: (key[0] != key[1], key)):
        yield BlockCka(table.title, backbones[one].label, backbones[two].label, cells[one, two])
