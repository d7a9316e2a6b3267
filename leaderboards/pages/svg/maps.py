"""Small maps in rows and columns, and images with what is looked at in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leaderboards.pages.svg.frame import LETTER, MARGIN, WIDTH, Drawn, colour_bar, fitting, image, words
from leaderboards.pages.svg.raster import GAP, Sheet, colours_png, image_png, merged, sheet_png
from tasks.blocks import Gallery, Maps, SmallMap

HEAD, PANEL_GAP = 16, 18
SMALLEST, LARGEST = 30.0, 60.0
"""Sides of a map, in pixels."""

CELL = 32
"""Pixels of a map's width on its sheet, at least; a multiple of its cells, so that they are equally wide."""

WIDEST_LABEL = 170.0
MOST_PANELS = 4


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where maps stand: ``side`` is a map's width, ``label`` that of the names of rows."""

    panels: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cell: tuple[int, int]
    side: float
    label: float
    in_line: int

    @property
    def scale(self) -> float:
        """Size of a pixel of a sheet."""
        return self.side / self.cell[1]

    @property
    def width(self) -> float:
        """Of a panel."""
        return self.label + self.sheet.shape[1] * self.scale

    @property
    def height(self) -> float:
        """Of a panel with its head."""
        return self.head + self.sheet.shape[0] * self.scale + PANEL_GAP

    @property
    def head(self) -> float:
        """Of the names of a panel and its columns."""
        return HEAD * (1 + any(self.panels)) + 2

    @property
    def bottom(self) -> float:
        """Where the last line of panels ends."""
        return -(-len(self.panels) // self.in_line) * self.height

    @property
    def sheet(self) -> Sheet:
        """The maps of a panel."""
        return Sheet(len(self.rows), len(self.columns), self.cell)

    def corner(self, panel: str) -> tuple[float, float]:
        """Where a panel begins."""
        line, place = divmod(self.panels.index(panel), self.in_line)
        return MARGIN / 2 + place * (self.width + PANEL_GAP), line * self.height

    def spot(self, one: SmallMap) -> tuple[int, int]:
        """Row and column of a map."""
        return self.rows.index(one.row), self.columns.index(one.column)

    def place(self, panel: str, row: int, column: int) -> tuple[float, float]:
        """Where a map begins, across and down."""
        left, top = self.corner(panel)
        down, right = ((size + GAP) * self.scale for size in self.cell)
        return left + self.label + column * right, top + self.head + row * down

    def over(self, panel: str, address: str) -> str:
        """A sheet over the maps of a panel."""
        height, width = (side * self.scale for side in self.sheet.shape)
        return image(*self.place(panel, 0, 0), (width, height), address)


def maps_parts(maps: Maps) -> Drawn:
    """Maps with the names of their rows, columns and groups, and what their colours say."""
    layout = _layout(maps.maps)
    parts = _names(layout)
    for panel in layout.panels:
        own = {layout.spot(one): one.values for one in maps.maps if one.panel == panel}
        numbers = {spot: values for spot, values in own.items() if values.ndim == 2}
        colours = {spot: values for spot, values in own.items() if values.ndim == 3}
        if numbers:
            parts.append(layout.over(panel, sheet_png(numbers, layout.sheet, maps.span)))
        if colours:
            parts.append(layout.over(panel, colours_png(colours, layout.sheet)))
    if not any(one.values.ndim == 2 for one in maps.maps):
        return Drawn(parts, layout.bottom)
    ends = ("lowest", "highest") if maps.span is None else (f"{maps.span[0]:.3g}", f"{maps.span[1]:.3g}")
    each = f"{maps.unit}, each map by itself" if maps.span is None else maps.unit
    return Drawn([*parts, *colour_bar(layout.bottom + 4, ends, each)], layout.bottom + 24)


def gallery_parts(gallery: Gallery, prefix: str) -> Drawn:
    """Images under veils, each image also bare; a prefix tells its images from those of other pictures."""
    firsts = {one.panel: one for one in reversed(gallery.maps)}
    bare = [
        SmallMap(panel, firsts[panel].row, "image", np.zeros(pixels.shape[:2]))
        for panel, pixels in gallery.images.items()
        if panel in firsts
    ]
    layout = _layout([*bare, *gallery.maps])
    size = (layout.side, layout.cell[0] * layout.scale)
    parts = _names(layout)
    for place, panel in enumerate(layout.panels):
        name = f"{prefix}{place}"
        drawn = image(0, 0, size, image_png(gallery.images[panel]), f' id="{name}"')
        parts.append(f"<defs>{drawn}</defs>")
        own = {layout.spot(one): one.values for one in gallery.maps if one.panel == panel}
        for row, column in [*(layout.spot(one) for one in bare if one.panel == panel), *own]:
            x, y = layout.place(panel, row, column)
            parts.append(f'<use href="#{name}" x="{x:.1f}" y="{y:.1f}"/>')
        parts.append(layout.over(panel, sheet_png(own, layout.sheet, None, veil=True)))
    parts.append(
        words(MARGIN / 2, layout.bottom + 8, f"Bright: high; dark: low; each map by itself. {gallery.unit}")
    )
    return Drawn(parts, layout.bottom + 20)


def _layout(maps: Sequence[SmallMap]) -> _Layout:
    """Names in their order, and the largest maps that let several panels stand in a line."""
    panels, rows, columns = (
        tuple(dict.fromkeys(getattr(one, side) for one in maps)) for side in ("panel", "row", "column")
    )
    label = min(max((LETTER * len(row) for row in rows), default=0.0) + 8, WIDEST_LABEL)
    shapes = [one.values.shape for one in maps]
    tall = max((shape[0] / max(shape[1], 1) for shape in shapes), default=1.0)
    cells = max((-(-shape[1] // merged(max(shape[:2]))) for shape in shapes), default=1)
    width = cells * -(-CELL // cells)
    side, in_line = _side(label, len(columns), len(panels))
    return _Layout(panels, rows, columns, (max(1, round(width * tall)), width), side, label, in_line)


def _side(label: float, columns: int, panels: int) -> tuple[float, int]:
    """Width of a map, and how many panels stand in a line."""
    for in_line in range(min(MOST_PANELS, max(1, panels)), 0, -1):
        room = (WIDTH - MARGIN - (in_line - 1) * PANEL_GAP) / in_line - label
        side = min(room / max(1, columns) / (1 + GAP / CELL), LARGEST)
        if side >= SMALLEST:
            return side, in_line
    return side, 1


def _names(layout: _Layout) -> list[str]:
    """The names of panels, rows and columns."""
    parts = []
    small = ' font-size="10"'
    for panel in layout.panels:
        left, top = layout.corner(panel)
        if panel:
            parts.append(words(left, top + HEAD - 4, fitting(panel, layout.width), more=' font-weight="600"'))
        for place, column in enumerate(layout.columns):
            x, _ = layout.place(panel, 0, place)
            name = fitting(column, 1.2 * (layout.side + 4))
            parts.append(words(x + layout.side / 2, top + layout.head - 4, name, "middle", small))
        for place, row in enumerate(layout.rows):
            _, y = layout.place(panel, place, 0)
            middle = y + layout.cell[0] * layout.scale / 2 + 4
            parts.append(words(left + layout.label - 5, middle, fitting(row, layout.label), "end"))
    return parts
