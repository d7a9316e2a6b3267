"""A suite's page of CKA: maps of all compared layers, of one backbone and of two, and where they are alike.

Sources: Nguyen et al., ICLR 2021, figure 1; Raghu et al., NeurIPS 2021, figures 1 and 2.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks import blocks
from layerboard.leaderboards.blocks.blocks import Block, Heading, HeatMap, Matrix, Page, Table, said
from layerboard.leaderboards.blocks.csv import numbers_text, text_digest
from layerboard.leaderboards.blocks.display import fixed
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import SIDES, BoardBackbone
from layerboard.leaderboards.sections.provenance import NO_REASON, partial_line, units_text
from layerboard.leaderboards.sections.similarity import NOTE, CkaTable, cka_tables
from layerboard.tasks.framework.registry import DIRECTIONS
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.spec import Layer

PAIRS = 28  # maximum pairs in one figure
FEW = 0.1  # of the median of a backbone's layers: layers with fewer directions have a star
SURE = 0.95
Z95 = NormalDist().inv_cdf(0.975)
SOURCE = ["dataset", "data", "protocol", "pooling"]

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

STARRED = """\
`*`: the variance of these layers lies in few directions, fewer than a tenth of the median of the layers of
their backbone (participation ratio of the eigenvalues of the covariance; metric `directions`). Linear CKA
weights directions by their variance, so it says little of all others: {layers}."""

BLANK = "Blank rows and columns ({reason}): {layers}."
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
    starred: frozenset[tuple[str, Layer]] = frozenset()  # labels and layers with few directions

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the rows and of the columns, with a star for few directions."""
        rows, columns = (
            tuple(f"{layer}{'*' * ((label, layer) in self.starred)}" for layer in layers)
            for label, layers in ((self.first, self.rows), (self.second, self.columns))
        )
        return rows, columns

    @property
    def turned(self) -> "LayerCka":
        """The matrix with rows and columns exchanged."""
        ends = self.second, self.first, self.columns, self.rows
        return LayerCka(self.table, *ends, self.values.T, self.errors.T, self.starred)

    @property
    def coarse(self) -> "LayerCka":
        """One layer per block: its output, or the last tap that was read."""
        sides = self.rows, self.columns
        kept = [[at for at, layer in enumerate(side) if layer.tap == side[-1].tap] for side in sides]
        rows, columns = (tuple(side[at] for at in there) for side, there in zip(sides, kept, strict=True))
        cells = np.ix_(*kept)
        numbers = self.values[cells], self.errors[cells]
        return self._replace(rows=rows, columns=columns, values=numbers[0], errors=numbers[1])

    @property
    def nearest(self) -> Floats:
        """For each row the column that is most similar, the lower of equal ones; NaN for a row of NaN."""
        there = np.isfinite(self.values).any(axis=1)
        return np.where(there, np.where(np.isnan(self.values), -np.inf, self.values).argmax(axis=1), np.nan)


@dataclass(frozen=True, eq=False)
class CkaMap:
    """CKA of all compared layers of all backbones by the same tokens of the same images."""

    table: CkaTable
    layers: dict[BoardBackbone, tuple[Layer, ...]]  # from block 1 on, with taps, in forward order; no floors
    values: Floats  # [layers layers] of all backbones in order, symmetric; NaN for none
    errors: Floats  # standard errors; NaN if unknown
    starred: frozenset[tuple[str, Layer]]  # labels and layers with few directions, as `FEW` says

    def matrices(self, *, own: bool) -> list[LayerCka]:
        """The parts with any number: of each backbone with itself, or of each two, the higher one first."""
        ends = np.cumsum([0, *map(len, self.layers.values())])
        places = [*zip(self.layers.items(), map(slice, ends[:-1], ends[1:]), strict=True)]
        pairs = [(each, each) for each in places] if own else combinations(places, 2)
        matrices = []
        for ((backbone, rows), down), ((other, columns), right) in pairs:
            names, values = (self.table.title, backbone.label, other.label), self.values[down, right]
            if np.isfinite(values).any():
                errors = self.errors[down, right]
                matrices.append(LayerCka(*names, rows, columns, values, errors, self.starred))
        return matrices


@lru_cache(maxsize=1)
def cka_maps(board: Board) -> list[CkaMap]:
    """The maps of a board, by tokens, dataset and protocol; without those in which nothing is known.

    They are kept, since a page and its report ask for the same ones.
    """
    known = [each for each in board.backbones if not each.floor]
    directions = board.plain[board.plain["metric"] == DIRECTIONS]  # over which a layer's variance is spread
    maps = [_map(table, known, table.select(directions)) for table in cka_tables(board)]
    return [each for each in maps if np.isfinite(each.values).any()]


def _map(table: CkaTable, known: Sequence[BoardBackbone], directions: pd.DataFrame) -> CkaMap:
    rows = table.rows
    ends = [pd.MultiIndex.from_frame(rows[names]) for names in SIDES]
    compared = [(name, Layer(index, tap)) for name, index, tap in ends[0].union(ends[1]).unique()]
    there = [(name, layer) for name, layer in compared if layer.index >= 1 and layer.tap != "final"]
    there.sort(key=lambda pair: pair[1].place)
    layers = {each: tuple(layer for name, layer in there if name == each.name) for each in known}
    order = [(each.name, layer.index, layer.tap) for each, own in layers.items() for layer in own]
    at = {layer: index for index, layer in enumerate(order)}
    first, second = (np.array([at.get(layer, -1) for layer in end], np.intp) for end in ends)
    values, errors = np.full((2, len(order) + 1, len(order) + 1), np.nan)  # the last for all others
    values[first, second] = values[second, first] = rows["value"]
    errors[first, second] = errors[second, first] = (rows["ci_high"] - rows["ci_low"]) / 2 / Z95
    layers = {each: own for each, own in layers.items() if own}
    spread = directions.set_index([*SIDES[0]])["value"]
    few = spread[spread < FEW * spread.groupby(level=0).transform("median")].index
    starred = frozenset(
        (each.label, layer)
        for each, own in layers.items()
        for layer in own
        if (each.name, layer.index, layer.tap) in few
    )
    return CkaMap(table, layers, values[:-1, :-1], errors[:-1, :-1], starred)


class Depths(NamedTuple):
    """Mean share of the depth of a backbone at which another's layers find their most similar ones."""

    share: float  # above 0, at most 1
    low: float  # ends of its 95 % interval; NaN if unknown
    high: float

    def __str__(self) -> str:
        """In percent."""
        value, low, high = (fixed(100 * each, 0) for each in self)
        return f"{value} % ({low} to {high})" if low else f"{value} %"


def depths_of(matrix: LayerCka) -> list[Depths]:
    """Where the lower and the upper half of the rows find their most similar columns; empty for one row.

    Columns that may be the most similar one to a row are not lower than the highest by more than the sum of
    both standard errors, times the normal quantile for all cells at once (Bonferroni). Since no difference
    of two numbers has a larger error, this holds whatever their correlation.
    """
    there = np.isfinite(matrix.nearest)
    values, errors, top = matrix.values[there], matrix.errors[there], matrix.nearest[there].astype(int)
    rows, count = np.arange(len(values)), values.shape[1]
    if len(values) < 2:
        return []
    wide = -NormalDist().inv_cdf((1 - SURE) / values.size)
    gaps, sums = values[rows, top][:, None] - values, errors + errors[rows, top][:, None]
    may = gaps <= wide * sums
    shares = np.array([top + 1, may.argmax(axis=1) + 1, count - may[:, ::-1].argmax(axis=1)]) / count
    shares[1:] = np.nan if np.isnan(sums[np.isfinite(values)]).any() else shares[1:]
    halves = np.split(shares, [len(values) // 2], axis=1)
    return [Depths(*half.mean(axis=1).tolist()) for half in halves]


def cka_page(board: Board) -> Page | None:
    """The page of the maps of one suite, and their numbers as a matrix; None without any."""
    if not (maps := cka_maps(board)):
        return None
    numbers = blocks.Numbers(cka_frame(maps), f"{board.page}.cka")
    file = f"{numbers.name}.csv"
    parts = [said(NOTE), said(READ), *(block for each in maps for block in _map_blocks(each))]
    parts += [said(SEE, file=file, digest=text_digest(numbers_text(numbers))), numbers]
    return Page(numbers.name, f"CKA of layers: {board.suite}", tuple(parts))


def _map_blocks(cka: CkaMap) -> Iterator[Block]:
    table, pairs = cka.table, cka.matrices(own=False)
    yield Heading(2, f"{table.title}{' †' if table.rows['partial'].any() else ''}")
    yield said("Linear CKA{units}.", units=units_text(table.rows))
    yield partial_line(table.rows)
    yield from map_pictures(cka)
    yield from _remarks(cka)
    if len(pairs) > PAIRS:
        yield said(LEFT_OUT, most=str(PAIRS))
    turned = [each for pair in pairs for each in (pair, pair.turned)]
    rows = [(each.first, each.second, *map(str, halves)) for each in turned if (halves := depths_of(each))]
    if rows:
        yield said(ALIKE)
        table_of_halves = pd.DataFrame(rows, columns=["backbone", "in", "its lower half", "its upper half"])
        yield Table(table_of_halves, left=2, caption=f"{table.title}: most similar layers", folded=True)


def _remarks(cka: CkaMap) -> Iterator[Block]:
    """What the pictures cannot say: which layers have few directions, and why rows and columns are blank."""
    every = [(each, layer) for each, own in cka.layers.items() for layer in own]
    starred = [key for each, layer in every if (key := (each.label, layer)) in cka.starred]
    yield said(STARRED if starred else "", layers=_named(starred))
    first, second = (pd.MultiIndex.from_frame(cka.table.rows[names]) for names in SIDES)
    reasons = pd.Series(cka.table.rows["reason"].to_numpy(), first)[first == second].to_dict()
    blank, drawn = defaultdict(list), {each.first for each in cka.matrices(own=True)}
    for (each, layer), values in zip(every, cka.values, strict=True):
        if each.label in drawn and not np.isfinite(values).any():
            blank[reasons.get((each.name, layer.index, layer.tap), NO_REASON)].append((each.label, layer))
    yield from (said(BLANK, reason=reason, layers=_named(layers)) for reason, layers in blank.items())


def _named(layers: Iterable[tuple[str, Layer]]) -> str:
    """Layers by backbone: ``clip: 8.mlp, 9.mid; dino: 3``."""
    owners = groupby(layers, key=lambda each: each[0])
    return "; ".join(f"{label}: {', '.join(str(layer) for _, layer in own)}" for label, own in owners)


def map_pictures(cka: CkaMap) -> Iterator[HeatMap]:
    """The figures of a map: each backbone with itself, and each two, with the line of most similar layers."""
    table = cka.table
    for name, title in (("own", "Layers of each backbone"), ("pairs", "Layers of each two backbones")):
        if panels := tuple(map(_panel, cka.matrices(own=name == "own")[:PAIRS])):
            file = blocks.slug(f"{table.dataset_name}.{table.protocol}.{table.pooling}.{name}")
            yield HeatMap(panels, f"{title}: {table.title}", "", "", "CKA", (0.0, 1.0), file)


def _panel(matrix: LayerCka) -> Matrix:
    own, ends = matrix.first == matrix.second, (matrix.first, matrix.second)
    line = () if own else tuple(matrix.nearest.tolist())
    title = matrix.first if own else ""
    return Matrix(title, matrix.values, names=matrix.names, titles=ends, line=line, upward=True)


def cka_frame(maps: Sequence[CkaMap]) -> pd.DataFrame:
    """CKA as text: one row per layer and map, and one column per layer of each backbone."""
    frames = []
    for cka in maps:
        names = [(each.label, str(layer)) for each, own in cka.layers.items() for layer in own]
        texts = [[fixed(value, 4) for value in row] for row in cka.values.tolist()]
        source = [getattr(cka.table, name) for name in SOURCE]
        rows = [[*source, *name, *text] for name, text in zip(names, texts, strict=True)]
        frames.append(pd.DataFrame(rows, columns=[*SOURCE, "backbone", "layer", *map(" ".join, names)]))
    return pd.concat(frames, ignore_index=True).fillna("")
