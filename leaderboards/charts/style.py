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
# shapes of marks as paths between -1 and 1: twice as many as colours, so that series are told apart in grey
SHAPES = ("M-.9 0a.9 .9 0 1 0 1.8 0a.9 .9 0 1 0-1.8 0Z", "M-.8-.8H.8V.8H-.8Z",
          "M0-1L1 .8H-1Z", "M0-1.1L.9 0L0 1.1L-.9 0Z", "M0 1L-1-.8H1Z",
          "M-.35-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z", "M1 0L-.8 1V-1Z",
          "M-1 0L.8 1V-1Z",
          "M-1-.5L-.5-1L0-.5L.5-1L1-.5L.5 0L1 .5L.5 1L0 .5L-.5 1L-1 .5L-.5 0Z",
          "M-1-1H1L.15 0L1 1H-1L-.15 0Z", "M-1-1L0-.15L1-1V1L0 .15L-1 1Z",
          "M-.3-1.2H.3V1.2H-.3Z", "M0-1.2L.3-.3L1.2 0L.3 .3L0 1.2L-.3 .3L-1.2 0L-.3-.3Z",
          "M0-1L1 1L0 .3L-1 1Z")  # fmt: skip
# one for each repetition of the colours
DASHES = ([1, 0], [5, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 2, 1, 2], [1, 3])

# colours of numbers from low to high
RAMP = ("#2a0d54", "#2f1f61", "#332e6d", "#383d7a", "#3a4c86", "#395f8c", "#34728d", "#2b848d",
        "#28958a", "#3da580", "#51b574", "#64c564", "#83d256", "#aeda50", "#d5e147", "#fae83c")  # fmt: skip


def series_look(position: int) -> Spec:
    """How the series at a position is drawn, by channels; the first 49 differ, 14 by shape alone."""
    turn, count = position // len(COLOURS), len(COLOURS)
    shape, dash = SHAPES[(position + turn // 2) % len(SHAPES)], DASHES[turn % count]
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
    axis["labelFlush"] = False  # each number stands at its tick
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
