"""Small maps in rows and columns, and images with what is looked at in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leaderboards.pages.pictures import Gallery, Maps, SmallMap
from leaderboards.pages.svg.frame import LETTER, MARGIN, WIDTH, Drawn, colour_bar, fitting, image, words
from leaderboards.pages.svg.raster import image_png, map_png, veil_png

GAP, HEAD, PANEL_GAP = 3, 16, 18
SMALLEST, LARGEST = 30.0, 64.0
"""Sides of a map, in pixels."""

WIDEST_LABEL = 170.0
MOST_PANELS = 4


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where maps stand: sizes of a map, of the names of rows, and panels in a line."""

    panels: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cell: tuple[float, float]
    label: float
    in_line: int

    @property
    def width(self) -> float:
        """Of a panel."""
        return self.label + len(self.columns) * (self.cell[0] + GAP)

    @property
    def height(self) -> float:
        """Of a panel with its head."""
        return self.head + len(self.rows) * (self.cell[1] + GAP) + PANEL_GAP

    @property
    def head(self) -> float:
        """Of the names of a panel and its columns."""
        return HEAD * (1 + any(self.panels)) + 2

    @property
    def bottom(self) -> float:
        """Where the last line of panels ends."""
        return -(-len(self.panels) // self.in_line) * self.height

    def corner(self, panel: str) -> tuple[float, float]:
        """Where a panel begins."""
        place = self.panels.index(panel)
        return MARGIN / 2 + (place % self.in_line) * (self.width + PANEL_GAP), (
            place // self.in_line
        ) * self.height

    def spot(self, panel: str, row: str, column: str) -> tuple[float, float]:
        """Where a map begins."""
        left, top = self.corner(panel)
        return (
            left + self.label + self.columns.index(column) * (self.cell[0] + GAP),
            top + self.head + self.rows.index(row) * (self.cell[1] + GAP),
        )


def maps_parts(maps: Maps) -> Drawn:
    """Maps with the names of their rows, columns and groups, and what their colours say."""
    layout = _layout(maps.maps)
    parts = _names(layout)
    for one in maps.maps:
        address = image_png(one.values) if one.values.ndim == 3 else map_png(one.values, maps.span)
        tip = ", ".join(name for name in (one.panel, one.row, one.column) if name)
        parts.append(image(*layout.spot(one.panel, one.row, one.column), layout.cell, address, tip))
    if any(one.values.ndim == 2 for one in maps.maps):
        ends = ("lowest", "highest") if maps.span is None else (f"{maps.span[0]:.3g}", f"{maps.span[1]:.3g}")
        each = f"{maps.unit}, each map by itself" if maps.span is None else maps.unit
        parts += colour_bar(layout.bottom + 4, ends, each)
    return Drawn(parts, layout.bottom + 24)


def gallery_parts(gallery: Gallery, prefix: str) -> Drawn:
    """Images under veils; a ``prefix`` that no other picture of the page has tells its images apart."""
    bare = [
        SmallMap(panel, row, "image", np.zeros(pixels.shape[:2]))
        for panel, pixels in gallery.images.items()
        for row in [next((one.row for one in gallery.maps if one.panel == panel), "")]
    ]
    layout = _layout([*bare, *gallery.maps])
    parts = ["<defs>"]
    for place, pixels in enumerate(gallery.images.values()):
        drawn = image(0, 0, layout.cell, image_png(pixels)).replace(
            "<image ", f'<image id="{prefix}-{place}" ', 1
        )
        parts.append(drawn)
    parts += ["</defs>", *_names(layout)]
    ids = {panel: f"{prefix}-{place}" for place, panel in enumerate(gallery.images)}
    for one in [*bare, *gallery.maps]:
        x, y = layout.spot(one.panel, one.row, one.column)
        parts.append(f'<use href="#{ids[one.panel]}" x="{x:.1f}" y="{y:.1f}"/>')
    for one in gallery.maps:
        spot = layout.spot(one.panel, one.row, one.column)
        tip = f"{one.panel}, {one.row}, {one.column}"
        parts.append(image(*spot, layout.cell, veil_png(one.values), tip))
    parts.append(words(MARGIN / 2, layout.bottom + 8, f"Bright: high; dark: low. {gallery.unit}"))
    return Drawn(parts, layout.bottom + 20)


def _layout(maps: Sequence[SmallMap]) -> _Layout:
    """Names in their order, and the largest cells that let several panels stand in a line."""
    panels, rows, columns = (
        tuple(dict.fromkeys(getattr(one, side) for one in maps)) for side in ("panel", "row", "column")
    )
    label = min(max((LETTER * len(row) for row in rows), default=0.0) + 8, WIDEST_LABEL)
    shapes = [one.values.shape for one in maps]
    tall = max((shape[0] / max(shape[1], 1) for shape in shapes), default=1.0)
    most = min(MOST_PANELS, max(1, len(panels)))
    for in_line in range(most, 0, -1):
        room = (WIDTH - MARGIN - (in_line - 1) * PANEL_GAP) / in_line - label
        side = min(room / max(1, len(columns)) - GAP, LARGEST)
        if side >= SMALLEST or in_line == 1:
            break
    return _Layout(panels, rows, columns, (side, side * tall), label, in_line)


def _names(layout: _Layout) -> list[str]:
    """The names of panels, rows and columns."""
    parts = []
    small = ' font-size="10"'
    for panel in layout.panels:
        left, top = layout.corner(panel)
        if panel:
            parts.append(words(left, top + HEAD - 4, fitting(panel, layout.width), more=' font-weight="600"'))
        for column in layout.columns:
            x, _ = layout.spot(panel, layout.rows[0], column)
            name = fitting(column, layout.cell[0] + 6)
            parts.append(words(x + layout.cell[0] / 2, top + layout.head - 4, name, "middle", small))
        for row in layout.rows:
            _, y = layout.spot(panel, row, layout.columns[0])
            name = fitting(row, layout.label)
            parts.append(words(left + layout.label - 5, y + layout.cell[1] / 2 + 4, name, "end"))
    return parts
