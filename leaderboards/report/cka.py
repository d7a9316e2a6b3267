"""CKA as matrices: every block of one backbone against every block of another, or of itself."""

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import BoardBackbone
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
