"""Evidence of an analysis for its drawing: numbers, arrays and their backbones.

A drawing is a function from `Evidence` to blocks, named in the analysis's entry. Numbers over depth are drawn
here: a line per backbone, or a panel per backbone or metric.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerboard.leaderboards.blocks.blocks import Block, HeatMap, Maps, Plot, SmallMap, Text, said, slug
from layerboard.leaderboards.blocks.display import POOLINGS, pooling_rank, task_display
from layerboard.leaderboards.board import frames
from layerboard.leaderboards.board.frames import BoardBackbone, RecordGroup
from layerboard.leaderboards.charts.pictures import FEW_ROWS
from layerboard.leaderboards.charts.raster import smaller
from layerboard.leaderboards.records.files import task_key
from layerboard.leaderboards.records.record import known_arrays
from layerboard.tasks.framework.registry import TaskEntry
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.spec import Layer

Array = NDArray[np.generic]
Drawn = TypeVar("Drawn", Plot, HeatMap, Maps)

TOKENS = POOLINGS | {
    "patch": "patch tokens",
    "all": "all tokens",
    "token": "single tokens",
    "interior": "patch tokens off the border",
    "border": "patch tokens on the border",
    "filters": "first filters",
    "positions": "position embeddings",
}  # the tokens of an analysis, in words

SHARES = {"first": 0.0, "last": 1.0, "1/2": 0.5, "1/4": 0.25, "3/4": 0.75}
"""Relative depths of the blocks that represent a network: 0 is the first block, 1 the last.

If two depths fall on the same block, the first name is kept."""

DEPTHS = "Columns are blocks by how deep they lie, from the first to the last."

MOST_BLOCKS, MOST_ROWS, MOST_CELLS = 24, 16, 16  # of a wall: columns, rows, and cells along a side of a map
WALL = "Columns are all blocks, rows {rows}."
CUT = "Of more than {blocks} blocks or {rows} {what}, evenly spaced ones are shown."


@dataclass(frozen=True, eq=False)
class Evidence:
    """One analysis of one suite."""

    analysis: RecordGroup
    known: Sequence[BoardBackbone]  # of the suite, in the order of tables
    arrays: Path | None  # folder of stored arrays; None without any

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Records of single backbones that have a number: all metrics, layers, taps and heads."""
        return self._numbers[self._numbers["other"] == ""]

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Records that compare two whole backbones."""
        return self._numbers[self._numbers["other"] != ""]

    @cached_property
    def _numbers(self) -> pd.DataFrame:
        rows = self.analysis.rows
        # the layers of a floor are draws
        return rows[rows["value"].notna() & (rows["other_layer"] < 0) & ~frames.is_floor(rows)]

    @cached_property
    def entry(self) -> TaskEntry:
        """The analysis as its texts describe it."""
        return task_display(self.analysis.task)

    @property
    def title(self) -> str:
        """The analysis in words."""
        name, analysis = self.entry.title, self.analysis
        return f"{name[0].upper()}{name[1:]} on {analysis.dataset_name} ({analysis.protocol})"

    @property
    def key(self) -> str:
        """The name of its files of arrays."""
        return task_key(*self.analysis.source[:3])

    @property
    def labels(self) -> dict[str, str]:
        return {backbone.name: backbone.label for backbone in self.known}

    @cached_property
    def backbones(self) -> tuple[BoardBackbone, ...]:
        """The backbones with any number."""
        return among(self.known, self.rows if len(self.rows) else self.pairs)

    def named(self, what: str) -> str:
        """File name of a figure, unique on the page."""
        data = f".{self.analysis.data}" if self.analysis.apart else ""
        return slug(f"{self.key}{data}.{what}")

    def titled(self, picture: Drawn, what: str) -> Drawn:
        """A picture of the analysis; ``what`` ends the name of its file."""
        return replace(picture, name=self.named(what))

    def explained(self, text: str, parts: Sequence[object], picture: Drawn, what: str) -> list[Block]:
        """A picture of the parts below an explanation; empty without parts."""
        return [said(text, depths=DEPTHS), self.titled(picture, what)] if parts else []

    def walls(
        self, text: str, maps: Mapping[BoardBackbone, Floats], picture: Maps, what: str, rows: str = "heads"
    ) -> list[Block]:
        """All maps [blocks rows height width] below an explanation, a figure for each size of networks."""
        groups: dict[tuple[tuple[str, ...], int], list[SmallMap]] = {}
        orders = []
        for backbone, values in maps.items():
            names = self.texts(backbone, "tap") or [str(head + 1) for head in range(values.shape[1])]
            first, kinds = self.first_block(backbone, len(values)), self.kinds(backbone, values)
            wall = Wall(values, tuple(names), rows, first, kinds)
            orders.append(wall.order)
            if shown := wall.maps(backbone.label):
                groups.setdefault((wall.rows, len(values)), []).extend(shown)
        words = said(text, order=" ".join(dict.fromkeys(orders)))
        figures = [
            self.titled(replace(picture, maps=tuple(drawn), dense=True), f"{what}-{depth}x{len(names)}")
            for (names, depth), drawn in groups.items()
        ]
        return [words, *figures] if figures else []

    def select(self, metric: str, **where: str | int) -> pd.DataFrame:
        """Rows of one metric and of single blocks; of all heads together unless ``head`` says else."""
        rows = self.rows[(self.rows["metric"] == metric) & (self.rows["layer"] >= 0)]
        return frames.matching(rows, {"head": -1} | where)

    def of_heads(self, metric: str, **where: str | int) -> pd.DataFrame:
        """Rows of one metric and of single heads."""
        return frames.matching(self.rows[self.rows["head"] >= 0], {"metric": metric} | where)

    def array(self, name: str, axes: int, *backbones: str) -> Array | None:
        """An array with ``axes`` axes, of a backbone or of two by their names in order; None if missing."""
        stored = known_arrays(self.arrays, self.key, backbones, name) if self.arrays else {}
        array = stored.get(name)
        return array if array is not None and array.ndim == axes and array.size else None

    def numbers(self, name: str, axes: int) -> dict[BoardBackbone, Floats]:
        """An array of each backbone that has it, as float64."""
        arrays = {backbone: self.array(name, axes, backbone.name) for backbone in self.backbones}
        return {key: np.asarray(array, np.float64) for key, array in arrays.items() if array is not None}

    def texts(self, backbone: BoardBackbone, name: str) -> list[str]:
        """Names along an axis, from an array of one backbone; empty without it."""
        array = self.array(name, 1, backbone.name)
        return [] if array is None else [str(text) for text in array]

    def first_block(self, backbone: BoardBackbone, count: int) -> int:
        """Number of the first block in a backbone's arrays of ``count`` blocks: array ``block``, else 1."""
        blocks = self.array("block", 1, backbone.name)
        return 1 if blocks is None or len(blocks) != count else int(blocks[0])

    def kinds(self, backbone: BoardBackbone, maps: Floats) -> Array | None:
        """Kinds of all heads of a backbone, [blocks heads]; None if they are not those of its maps."""
        kinds = self.array("class", 2, backbone.name)
        return kinds if kinds is not None and kinds.shape == maps.shape[:2] else None

    def grid(self, backbone: BoardBackbone, patches: int) -> tuple[int, int]:
        """Rows and columns of a backbone's patches: array ``cells``, else a square, else one row."""
        cells = self.array("cells", 1, backbone.name)
        if cells is not None and cells.shape == (2,) and int(cells[0]) * int(cells[1]) == patches:
            return int(cells[0]), int(cells[1])
        side = round(patches**0.5)
        return (side, side) if side * side == patches else (1, patches)

    def depth_panels(self, panels: Mapping[str, pd.DataFrame], title: str, y: str, what: str) -> list[Plot]:
        """A line per backbone for several metrics or views; those of one metric share a vertical scale.

        A panel without a name is a plot of its own. The axis has block numbers if all backbones have equally
        many blocks, otherwise shares of the depth.
        """
        panels = {name: rows for name, rows in panels.items() if len(rows)}
        if not panels:
            return []
        shares = len({backbone.depth for backbone in among(self.known, *panels.values())}) > 1
        points = [
            (panel, backbone.label, layer / (backbone.depth if shares else 1), value, rows["metric"].iloc[0])
            for panel, rows in panels.items()
            for backbone in self.known
            for layer, value in frames.by_layer(rows, backbone.name)
        ]
        frame = pd.DataFrame(points, columns=[*frames.PANELS, "scale"])
        x = "block / depth" if shares else "block"
        if list(panels) == [""]:
            return [self.titled(Plot(frame.drop(columns="panel"), "lines", title, x, y), what)]
        order = tuple(backbone.label for backbone in self.backbones)
        return [self.titled(Plot(frame, "lines", title, x, y, shared=False, order=order), what)]

    def family_panels(self, metric: str, title: str, what: str) -> list[Plot]:
        """A number of every layer, a panel per family; empty unless a family has several backbones."""
        rows, families = self.select(metric), dict[str, list[str]]()
        for backbone in among(self.known, rows):
            families.setdefault(backbone.family, []).append(backbone.name)
        panels = {family: rows[rows["backbone"].isin(names)] for family, names in families.items()}
        several = max(map(len, families.values()), default=0) > 1
        return self.depth_panels(panels, f"{title} by family", metric, what) if several else []

    def token_panels(self, titles: Mapping[str, str], y: str, **where: str | int) -> list[Block]:
        """A figure with a title for each kind of token, with a panel per metric."""
        blocks: list[Block] = []
        for pooling, title in titles.items():
            chosen = {"pooling": pooling} | where
            panels = {metric: self.select(metric, **chosen) for metric in self.analysis.metrics}
            blocks += self.depth_panels(panels, title, y, pooling)
        return blocks

    def head_points(self, metric: str, what: str, **where: str | int) -> list[Plot]:
        """A point per head over depth, and the mean, a panel per backbone; empty without heads."""
        heads, means = self.of_heads(metric, **where), self.select(metric, **where)
        if heads.empty:
            return []
        series = {"one head": heads, "mean over heads": means[means["backbone"].isin(heads["backbone"])]}
        points = frames.backbone_points(self.known, series)
        return [self.titled(Plot(points, "points", "Every head", "block", metric), what)]

    def views(self, *metrics: str) -> dict[str, pd.DataFrame]:
        """Rows of metrics by view: taps and tokens are named if there are several."""
        rows = self.rows[self.rows["metric"].isin(metrics) & (self.rows["layer"] >= 0)]
        views = dict.fromkeys(zip(rows["metric"], rows["tap"], rows["pooling"], strict=True))
        keys = sorted(views, key=lambda key: (key[0], Layer(1, key[1]).place, pooling_rank(key[2])))
        several = [len({key[side] for key in keys}) > 1 for side in range(3)]
        by_view = {}
        for key in keys:
            words = (*key[:2], TOKENS.get(key[2], key[2]))
            name = ", ".join(part for part, named in zip(words, several, strict=True) if named) or key[0]
            by_view[name] = self.select(key[0], tap=key[1], pooling=key[2])
        return by_view

    def lacking(self, what: str, drawn: Mapping[BoardBackbone, object]) -> Text:
        """The sentence on backbones without arrays, which a figure leaves out; empty if there are none."""
        return not_drawn(what, ", ".join(each.label for each in self.backbones if each not in drawn))


@dataclass(frozen=True, eq=False)
class Wall:
    """All maps of one backbone, [blocks rows height width], with the names of the rows."""

    values: Floats
    rows: tuple[str, ...]
    what: str  # what a row is, in the plural
    first: int = 1  # number of the first block
    kinds: Array | None = None  # of each map, [blocks rows], by which they are framed

    @property
    def order(self) -> str:
        """What rows and columns are, and which of them are shown, in a sentence or two."""
        order = WALL.format(rows=self.what)
        if len(self.values) <= self.most and len(self.rows) <= MOST_ROWS:
            return order
        return f"{order} {CUT.format(blocks=self.most, rows=MOST_ROWS, what=self.what)}"

    @property
    def most(self) -> int:
        """The most blocks that are shown: half as many in few rows, so that maps are twice as large."""
        return MOST_BLOCKS if len(self.rows) > FEW_ROWS else MOST_BLOCKS // 2

    def maps(self, panel: str) -> list[SmallMap]:
        """Small maps of a panel; maps without a number are left out."""
        kinds = np.full(self.values.shape[:2], "") if self.kinds is None else self.kinds
        return [
            SmallMap(panel, self.rows[row], str(self.first + block), cells, str(kinds[block, row]))
            for row in evenly(len(self.rows), MOST_ROWS)
            for block in evenly(len(self.values), self.most)
            for cells in [smaller(self.values[block, row], MOST_CELLS)]
            if np.isfinite(cells).any()
        ]


def not_drawn(what: str, names: str) -> Text:
    """The sentence on what a figure leaves out because arrays are missing; empty without names."""
    lacking = "{what} of {names} cannot be drawn: their arrays are not beside the records."
    return said(lacking, what=what, names=names) if names else Text(())


def among(known: Sequence[BoardBackbone], *frames: pd.DataFrame) -> tuple[BoardBackbone, ...]:
    """The known backbones with rows in any of the frames."""
    names = {name for rows in frames for name in rows["backbone"]}
    return tuple(backbone for backbone in known if backbone.name in names)


def in_depth_order(places: dict[str, int]) -> dict[str, int]:
    """Named indices in ascending order, each once; of two names for one index the first is kept."""
    names = {index: name for name, index in reversed(places.items())}
    return {names[index]: index for index in sorted(names)}


def deep(count: int) -> dict[str, int]:
    """Indices of the representative blocks (`SHARES`) among ``count`` blocks, by depth."""
    return in_depth_order({name: round(share * (count - 1)) for name, share in SHARES.items()})


def at_depths(panel: str, row: str, maps: Floats) -> list[SmallMap]:
    """Maps of the representative blocks in ``maps``, a column each."""
    return [SmallMap(panel, row, name, maps[block]) for name, block in deep(len(maps)).items()]


def evenly(count: int, most: int) -> list[int]:
    """At most ``most`` evenly spaced indices below ``count``, including the first and the last."""
    return sorted({round(step * (count - 1) / (most - 1)) for step in range(most)})
