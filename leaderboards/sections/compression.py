"""The section on compressed vectors: their scores against their bytes."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, said
from layerboard.leaderboards.blocks.display import fixed, signed_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Side
from layerboard.leaderboards.board.costs import Vector, bytes_of
from layerboard.leaderboards.sections.transforms import (
    Gain,
    difference_text,
    gain_blocks,
    gains_of,
    missing_blocks,
    side_text,
)

NOTE = """\
Scores of compressed vectors and of float32 vectors from the same forward passes. A compression is fitted,
without labels, on the images that a task knows before the queries (training images, the database); queries
are only compressed. If every image is tested by the others, it is fitted on all. `pca:N`: the N directions of
largest variance; `rp:N`: N random directions; `first:N`: the first N channels; `int8`: 255 levels per
channel; `binary`: above or below the mean, compared by Hamming distance; `pq:M`: product quantisation to M
bytes; `+`: one after the other. Bytes are those of one stored vector. `difference` is the score of the best
layer with compression minus that of the best layer in float32, in points, with its 95 % interval over the
same items; `times smaller` compares the same two vectors, which may differ in dimension. Intervals are not
corrected for multiple comparisons: about one in twenty excludes 0 by chance. Both layers were chosen on the
test data. `at the float32 layer` keeps the layer that is best in float32; `held-out difference` is between
layers that were chosen on held-out data."""


def compression_blocks(board: Board) -> list[Block]:
    """The section on compressed vectors; empty if there are none."""
    if board.compressed.empty:
        return []
    sizes = bytes_of(board.compressed)

    def place(gain: Gain) -> tuple[float, ...]:
        column, backbone = board.columns.index(gain.column), board.ranks[gain.best.backbone]
        return column, backbone, -sizes[_vector(gain.best)]

    gains = sorted(gains_of(board, board.compressed), key=place)
    frame = pd.DataFrame(
        {
            "column": gain.column.heading,
            "backbone": board.labels[gain.best.backbone],
            "compression": gain.best.transform,
            "bytes": fixed(sizes[_vector(gain.best)], 0),
            "times smaller": fixed(sizes.get(_vector(gain.plain), math.nan) / sizes[_vector(gain.best)], 1),
            "float32": side_text(gain.plain),
            "compressed": side_text(gain.best),
            "difference": difference_text(gain.gain),
            "at the float32 layer": difference_text(gain.same_layer),
            "held-out difference": signed_text(gain.honest),
        }
        for gain in gains
    )
    title = "What a vector costs"
    return [
        *(Heading(2, title), said(NOTE), *gain_blocks(board, frame, "Scores of compressed vectors")),
        *([_plot(board, gains, sizes)] if gains else []),
        *missing_blocks(board, board.compressed),
    ]


def _vector(side: Side) -> Vector:
    return side.backbone, side.layer, side.pooling, side.transform


def _plot(board: Board, gains: Sequence[Gain], sizes: Mapping[Vector, float]) -> Plot:
    """Scores against bytes, one panel per column; a layer with unknown float32 size has no point."""
    points = [
        (gain.column.heading, board.labels[side.backbone], sizes.get(_vector(side), math.nan), side.score)
        for gain in gains
        for side in (gain.best, gain.plain)
    ]
    frame = pd.DataFrame(points, columns=["panel", "series", "x", "y"]).drop_duplicates()
    title = "Scores against the bytes of a vector"
    return Plot(frame, "points", title, "bytes", "score, %", shared=False, name="bytes", log=True)
