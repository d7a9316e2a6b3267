"""CKA as matrices: every block of one backbone against every block of another, or of itself."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerboard.leaderboards.board import Board
from layerboard.leaderboards.scores.frames import BoardBackbone
from layerboard.leaderboards.sections.similarity import CkaTable, cka_tables

CELLS = 400_000  # maximum numbers on a page; matrices beyond it are left out and reported


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
    pairs = board.pairs[(board.pairs["tap"] == "block") & (board.pairs["other_tap"] == "block")]
    pairs = pairs[(pairs["layer"] >= 1) & (pairs["other_layer"] >= 1) & pairs["value"].notna()]
    every = [matrix for table in cka_tables(board.pairs) for matrix in _matrices(table, pairs, backbones)]
    fitting, count = set[int](), 0
    for index in sorted(range(len(every)), key=lambda index: every[index].first != every[index].second):
        count += every[index].values.size
        if count <= most:
            fitting.add(index)
    matrices = tuple(matrix for index, matrix in enumerate(every) if index in fitting)
    return matrices, len(every) - len(matrices)


def _matrices(table: CkaTable, pairs: pd.DataFrame, backbones: Sequence[BoardBackbone]) -> Iterator[BlockCka]:
    """The matrices of one table in the order of its backbones; those with themselves first."""
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones)}
    grids: dict[tuple[int, int], NDArray[np.float64]] = {}
    for (name, other), rows in table.select(pairs).groupby(["backbone", "other"], sort=False):
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
