"""CKA as matrices: every block of one backbone against every block of another, or of itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leaderboards.board import Board
from leaderboards.scores.frames import BoardBackbone
from leaderboards.sections.similarity import CkaTable, cka_tables

CELLS = 400_000  # numbers that a page holds at most; matrices beyond it are left out and said


@dataclass(frozen=True, slots=True)
class BlockCka:
    """CKA of the blocks of two backbones."""

    table: str  # what was compared, in words: tokens, dataset, protocol
    first: str  # label of the backbone of the rows
    second: str  # label of the one of the columns
    # CKA [blocks of the first, blocks of the second] in -1..1; NaN where it was not computed
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BlockCkas:
    """The matrices of a page, and how many there was no room for.

    By table those of a backbone with itself come first, then the others, in the order of the tables.
    """

    matrices: tuple[BlockCka, ...]
    left_out: int


def cka_matrices(board: Board, most: int = CELLS) -> BlockCkas:
    """The matrices of a board, of which at most so many numbers are kept.

    Args:
        board: Comparisons of layers.
        most: Numbers that all matrices have together at most. Those of backbones with themselves come first.
    """
    backbones = [backbone for backbone in board.backbones if not backbone.floor]
    pairs = board.pairs[(board.pairs["tap"] == "block") & (board.pairs["other_tap"] == "block")]
    pairs = pairs[(pairs["layer"] >= 1) & (pairs["other_layer"] >= 1) & pairs["value"].notna()]
    every = [matrix for table in cka_tables(board.pairs) for matrix in _matrices(table, pairs, backbones)]
    fitting, count = set[int](), 0
    for index in sorted(range(len(every)), key=lambda index: every[index].first != every[index].second):
        count += every[index].values.size
        if count <= most:
            fitting.add(index)
    matrices = tuple(matrix for index, matrix in enumerate(every) if index in fitting)
    return BlockCkas(matrices, len(every) - len(matrices))


def _matrices(table: CkaTable, pairs: pd.DataFrame, backbones: Sequence[BoardBackbone]) -> Iterator[BlockCka]:
    """The matrices of one table in the order of its backbones; those with themselves first."""
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones)}
    grids: dict[tuple[int, int], NDArray[np.float64]] = {}
    for (name, other), rows in table.rows(pairs).groupby(["backbone", "other"], sort=False):
        if name not in ranks or other not in ranks:
            continue
        key = (ranks[str(name)], ranks[str(other)])
        cells, values = rows[["layer", "other_layer"]].to_numpy(int) - 1, rows["value"].to_numpy(float)
        if key[0] > key[1]:
            key, cells = key[::-1], cells[:, ::-1]
        shape = (backbones[key[0]].depth, backbones[key[1]].depth)
        grid = grids.setdefault(key, np.full(shape, np.nan))
        inside = (cells[:, 0] < shape[0]) & (cells[:, 1] < shape[1])
        grid[cells[inside, 0], cells[inside, 1]] = values[inside]
        if key[0] == key[1]:
            grid[cells[inside, 1], cells[inside, 0]] = values[inside]
    for first, second in sorted(grids, key=lambda key: (key[0] != key[1], key)):
        yield BlockCka(table.title, backbones[first].label, backbones[second].label, grids[first, second])
