"""A suite's page of CKA: maps of all compared layers, of one backbone and of two, and where they are alike.

Sources: Nguyen et al., ICLR 2021, figure 1; Raghu et al., NeurIPS 2021, figures 1 and 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerboard.leaderboards.blocks.blocks import (
    Block,
    Heading,
    HeatMap,
    Matrix,
    Numbers,
    Page,
    Table,
    said,
    slug,
)
from layerboard.leaderboards.blocks.csv import csv_text, text_digest
from layerboard.leaderboards.blocks.display import fixed
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import BoardBackbone
from layerboard.leaderboards.sections.provenance import partial_line, units_text
from layerboard.leaderboards.sections.similarity import NOTE, CkaTable, cka_tables
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.spec import Layer

CELLS = 400_000  # maximum numbers on a page of the report
PAIRS = 28  # maximum pairs in one figure
SURE = 0.95
Z95 = NormalDist().inv_cdf(0.975)
SIDES = (["backbone", "layer", "tap"], ["other", "other_layer", "other_tap"])

READ = """\
A map has the layers of one backbone in its rows and those of the same or another one in its columns, in the
order of the forward pass, the first at the bottom and at the left. A layer is named by its block, and by what
was read inside it. The lighter, the more similar. The line over the map of two backbones runs through the
column that is most similar to each row."""

ALIKE = """\
Where the layers of each half of a backbone find their most similar layers in another one, as a share of its
depth, in the mean. In brackets: with 95 % between these ends. A layer may be the most similar one if its CKA
is below the highest by no more than the two standard errors together allow for all layers at once; this
holds however the errors go together, and is wide."""

LEFT_OUT = "The figure of pairs has the first {most}; the file below has all."
SEE = "The numbers as a matrix: [{file}]({file}), SHA-256 {digest}."


class LayerCka(NamedTuple):
    """CKA of the layers of one backbone with those of the same or of another one."""

    table: str  # what was compared, in words: tokens, dataset, protocol
    first: str  # label of the backbone of the rows
    second: str
    rows: tuple[Layer, ...]  # in forward order
    columns: tuple[Layer, ...]
    values: Floats  # [rows columns] in -1..1; NaN for none
    errors: Floats  # standard errors [rows columns]; NaN if unknown

    @property
    def turned(self) -> "LayerCka":
        """The same with rows and columns exchanged."""
        ends = self.second, self.first, self.columns, self.rows
        return LayerCka(self.table, *ends, self.values.T, self.errors.T)

    @property
    def coarse(self) -> "LayerCka":
        """One layer per block: its output, or the last tap that was read."""
        rows, columns = (_last_of_blocks(layers) for layers in (self.rows, self.columns))
        at = np.ix_(rows, columns)
        layers = tuple(self.rows[row] for row in rows), tuple(self.columns[column] for column in columns)
        return self._replace(
            rows=layers[0], columns=layers[1], values=self.values[at], errors=self.errors[at]
        )

    @property
    def nearest(self) -> NDArray[np.int64]:
        """For each row that has any number, the column that is most similar; the lower of equal ones."""
        there = np.isfinite(self.values).any(axis=1)
        return np.nanargmax(self.values[there], axis=1)


def _last_of_blocks(layers: Sequence[Layer]) -> list[int]:
    last = layers[-1].tap if layers else ""
    return [index for index, layer in enumerate(layers) if layer.tap == last]


@dataclass(frozen=True, eq=False)
class CkaMap:
    """CKA of all compared layers of all backbones by the same tokens of the same images."""

    table: CkaTable
    layers: dict[BoardBackbone, tuple[Layer, ...]]  # from block 1 on, with taps, in forward order; no floors
    values: Floats  # [layers layers] of all backbones in order, symmetric; NaN for none
    errors: Floats  # standard errors; NaN if unknown

    def between(self, first: BoardBackbone, second: BoardBackbone) -> LayerCka:
        """The part of two backbones, or of one with itself."""
        starts = dict(zip(self.layers, np.cumsum([0, *map(len, self.layers.values())]), strict=False))
        at = tuple(slice(starts[each], starts[each] + len(self.layers[each])) for each in (first, second))
        rows, columns = self.layers[first], self.layers[second]
        ends = self.table.title, first.label, second.label, rows, columns
        return LayerCka(*ends, self.values[at], self.errors[at])

    @property
    def own(self) -> list[LayerCka]:
        """The part of each backbone with itself."""
        return [each for each in (self.between(one, one) for one in self.layers) if _any(each)]

    @property
    def pairs(self) -> list[LayerCka]:
        """The parts of each two backbones, the one that is higher in tables first."""
        return [each for each in (self.between(*pair) for pair in combinations(self.layers, 2)) if _any(each)]


def _any(matrix: LayerCka) -> bool:
    return bool(np.isfinite(matrix.values).any())


def cka_maps(board: Board) -> list[CkaMap]:
    """The maps of a board, by tokens, dataset and protocol; without those in which nothing is known."""
    maps = (_map(table, [each for each in board.backbones if not each.floor]) for table in cka_tables(board))
    return [each for each in maps if np.isfinite(each.values).any()]


def _map(table: CkaTable, known: Sequence[BoardBackbone]) -> CkaMap:
    rows = table.rows
    ends = [rows[names].set_axis(SIDES[0], axis=1) for names in SIDES]
    compared = pd.concat(ends).drop_duplicates()
    compared = compared[(compared["layer"] >= 1) & (compared["tap"] != "final")]
    layers = {
        each: tuple(sorted((Layer(*at) for at in own[["layer", "tap"]].itertuples(index=False)), key=_place))
        for each in known
        if len(own := compared[compared["backbone"] == each.name])
    }
    order = [(each.name, layer.index, layer.tap) for each, own in layers.items() for layer in own]
    index = (
        pd.MultiIndex.from_tuples(order, names=SIDES[0]) if order else pd.MultiIndex.from_frame(ends[0][:0])
    )
    first, second = (index.get_indexer(pd.MultiIndex.from_frame(end)) for end in ends)
    there = (first >= 0) & (second >= 0)
    first, second = first[there], second[there]
    values, errors = (np.full((len(order),) * 2, np.nan) for _ in range(2))
    values[first, second] = values[second, first] = rows["value"].to_numpy(float)[there]
    wide = (rows["ci_high"] - rows["ci_low"]).to_numpy(float)[there]
    errors[first, second] = errors[second, first] = wide / 2 / Z95
    return CkaMap(table, layers, values, errors)


def _place(layer: Layer) -> tuple[object, ...]:
    return layer.place


def fitting(maps: Sequence[CkaMap], most: int = CELLS) -> tuple[list[LayerCka], int]:
    """The matrices of maps up to ``most`` numbers in total, and how many do not fit.

    They come map by map; if space is short, those of a backbone with itself come first.
    """
    every = [matrix for each in maps for matrix in (*each.own, *each.pairs)]
    sizes = sorted((matrix.first != matrix.second, place) for place, matrix in enumerate(every))
    total = np.cumsum([every[place].values.size for _, place in sizes])
    kept = sorted(place for (_, place), size in zip(sizes, total, strict=True) if size <= most)
    return [every[place] for place in kept], len(every) - len(kept)


class Depths(NamedTuple):
    """Mean share of the depth of a backbone at which another's layers find their most similar ones."""

    share: float  # above 0, at most 1
    low: float  # ends of its 95 % interval; NaN if unknown
    high: float

    def __str__(self) -> str:
        """In percent."""
        value, low, high = (fixed(100 * each, 0) for each in self)
        return f"{value} % ({low} to {high})" if low else f"{value} %"


def depths_of(matrix: LayerCka) -> tuple[Depths, Depths] | None:
    """Where the lower and the upper half of the rows find their most similar columns; None if too few.

    Columns that may be the most similar one to a row are not lower than the highest by more than the sum of
    both standard errors, times the normal quantile for all cells at once (Bonferroni). Since no difference
    of two numbers has a larger error, this holds whatever their correlation.
    """
    there = np.isfinite(matrix.values).any(axis=1)
    values, errors = matrix.values[there], matrix.errors[there]
    if len(values) < 2:
        return None
    top, count = matrix.nearest, values.shape[1]
    each = np.arange(len(values))
    wide = -NormalDist().inv_cdf((1 - SURE) / values.size)
    may = values[each, top][:, None] - values <= wide * (errors + errors[each, top][:, None])
    low, high = may.argmax(axis=1), count - 1 - may[:, ::-1].argmax(axis=1)
    known = np.isfinite(errors[np.isfinite(values)]).all()
    ends = [(where + 1) / count for where in (top, low, high)]
    halves = slice(None, len(values) // 2), slice(len(values) // 2, None)
    lower, upper = (
        Depths(*(float(end[half].mean()) if known or end is ends[0] else float("nan") for end in ends))
        for half in halves
    )
    return lower, upper


def alike_words(matrix: LayerCka) -> str:
    """The `depths_of` two backbones in a sentence; "" if they are one, or unknown."""
    if matrix.first == matrix.second or (depths := depths_of(matrix)) is None:
        return ""
    lower, upper = depths
    return (
        f"The lower half of {matrix.first} is most like {matrix.second} at {lower} of its depth, "
        f"the upper half at {upper}."
    )


def cka_page(board: Board) -> Page | None:
    """The page of the maps of one suite, and their numbers as a matrix; None without any."""
    if not (maps := cka_maps(board)):
        return None
    numbers = Numbers(cka_frame(maps), f"{board.page}.cka")
    file = f"{numbers.name}.csv"
    blocks = [said(NOTE), said(READ), *(block for each in maps for block in _map_blocks(each))]
    blocks += [said(SEE, file=file, digest=text_digest(csv_text(numbers.frame))), numbers]
    return Page(numbers.name, f"CKA of layers: {board.suite}", tuple(blocks))


def _map_blocks(cka: CkaMap) -> Iterator[Block]:
    table, pairs = cka.table, cka.pairs
    yield Heading(2, f"{table.title}{' †' if table.rows['partial'].any() else ''}")
    yield said("Linear CKA{units}.", units=units_text(table.rows))
    yield partial_line(table.rows)
    yield from map_pictures(cka)
    if len(pairs) > PAIRS:
        yield said(LEFT_OUT, most=str(PAIRS))
    rows = [
        {
            "backbone": each.first,
            "in": each.second,
            "its lower half": str(halves[0]),
            "its upper half": str(halves[1]),
        }
        for pair in pairs
        for each in (pair, pair.turned)
        if (halves := depths_of(each))
    ]
    if rows:
        yield said(ALIKE)
        yield Table(pd.DataFrame(rows), left=2, caption=f"{table.title}: most similar layers", folded=True)


def map_pictures(cka: CkaMap) -> Iterator[HeatMap]:
    """The figures of a map: each backbone with itself, and each two, with the line of most similar layers."""
    table = cka.table
    parts = {"own": cka.own, "pairs": cka.pairs[:PAIRS]}
    titles = {"own": "Layers of each backbone", "pairs": "Layers of each two backbones"}
    for name, matrices in parts.items():
        file = slug(f"{table.dataset_name}.{table.protocol}.{table.pooling}.{name}")
        panels = tuple(map(_panel, matrices))
        if panels:
            yield HeatMap(panels, f"{titles[name]}: {table.title}", "", "", "CKA", (0.0, 1.0), file)


def _panel(matrix: LayerCka) -> Matrix:
    """A matrix as a panel, whose first row is at the bottom."""
    rows, columns = ([*map(str, layers)] for layers in (matrix.rows, matrix.columns))
    line = np.full(len(rows), np.nan)
    if matrix.first != matrix.second:
        line[np.isfinite(matrix.values).any(axis=1)] = matrix.nearest
    return Matrix(
        "" if matrix.first != matrix.second else matrix.first,
        matrix.values[::-1],
        names=(tuple(rows[::-1]), tuple(columns)),
        titles=(matrix.first, matrix.second),
        line=tuple(line[::-1].tolist()),
    )


def cka_frame(maps: Sequence[CkaMap]) -> pd.DataFrame:
    """CKA as text: one row per layer and map, and one column per layer of each backbone."""
    frames = []
    for cka in maps:
        names = [(each.label, str(layer)) for each, own in cka.layers.items() for layer in own]
        source = {name: getattr(cka.table, name) for name in ("dataset", "data", "protocol", "pooling")}
        text = [[fixed(value, 4) for value in row] for row in cka.values.tolist()]
        cells = pd.DataFrame(text, columns=[f"{label} {layer}" for label, layer in names])
        cells.insert(0, "layer", [layer for _, layer in names])
        cells.insert(0, "backbone", [label for label, _ in names])
        for place, (name, value) in enumerate(source.items()):
            cells.insert(place, name, value)
        frames.append(cells)
    return pd.concat(frames, ignore_index=True).fillna("")
