"""What all charts share: the look of series, colours of numbers, and the style of axes and text.

Numbers go from dark blue through green to light yellow in equal steps of lightness, so that they can be read
with any colour vision, and in grey. The steps are equal in Oklab (Ottosson, 2020, "A perceptual color space
for image processing").
"""

from collections.abc import Iterable, Sequence
from typing import Any

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # the grammar's name; nothing is read from there
FONT = "Helvetica, Arial, sans-serif"  # of figures in files

# colours that people with any colour vision can distinguish (Okabe and Ito), the last one grey
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#888888")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
# one for each repetition of the colours
DASHES = ([1, 0], [5, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2, 1, 2], [1, 3])

# the shapes as paths in a square of 17 pixels
SWATCHES = {
    "circle": "M8 5a3.5 3.5 0 1 0 .01 0Z",
    "square": "M5 5h7v7h-7Z",
    "triangle-up": "M8.5 4l4 8h-8Z",
    "diamond": "M8.5 3.5l4 5-4 5-4-5Z",
    "triangle-down": "M8.5 13l4-8h-8Z",
    "triangle-right": "M13 8.5l-8-4v8Z",
    "cross": "M7 4h3v3h3v3h-3v3h-3v-3h-3v-3h3Z",
}

# colours of numbers from low to high
RAMP = ("#2a0d54", "#2f1f61", "#332e6d", "#383d7a", "#3a4c86", "#395f8c", "#34728d", "#2b848d",
        "#28958a", "#3da580", "#51b574", "#64c564", "#83d256", "#aeda50", "#d5e147", "#fae83c")  # fmt: skip


def series_look(position: int) -> Spec:
    """How the series at a position is drawn, by channels of a chart; the first 49 are all different."""
    turn, count = position // len(COLOURS), len(COLOURS)
    shape, dash = SHAPES[(position + turn) % count], DASHES[turn % count]
    return {"color": COLOURS[position % count], "shape": shape, "strokeDash": dash}


def kind_colours(kinds: Sequence[str]) -> dict[str, str]:
    """Colours of frames by kind; the last kind, which is the usual one, is grey."""
    return dict(zip(kinds, (*COLOURS[: len(kinds) - 1], COLOURS[-1]), strict=True)) if kinds else {}


def looks(names: Iterable[str], backbones: Sequence[str] = ()) -> dict[str, Spec]:
    """The looks of series: of backbones by their position in the suite, of others by that among the names."""
    places = {name: position for position, name in enumerate(dict.fromkeys(names))}
    places |= {name: index for index, name in reversed([*enumerate(backbones)]) if name in places}
    return {name: series_look(index) for name, index in places.items()}


def config(ink: str, font: str) -> Spec:
    """The style of all charts: quiet axes, no frame, text and lines in one colour."""
    text = {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "titleFontSize": 12}
    axis = {"domain": False, "ticks": False, "gridColor": ink, "gridOpacity": 0.13, "labelPadding": 6}
    return {
        "background": None,
        "font": font,
        "range": {"ramp": [*RAMP], "heatmap": [*RAMP]},
        "view": {"stroke": None},
        "axis": text | axis | {"titleFontWeight": "normal", "labelLimit": 230, "titlePadding": 8},
        "legend": text | {"titleFontWeight": "normal", "labelLimit": 230},
        "header": text,
        "title": {"color": ink, "anchor": "start", "fontSize": 13, "fontWeight": 600},
    }
