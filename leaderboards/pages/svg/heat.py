"""Matrices in colours, with numbered axes."""

from leaderboards.pages.svg.frame import MARGIN, WIDTH, Drawn, colour_bar, fitting, image, upright, words
from leaderboards.pages.svg.raster import map_png
from leaderboards.pages.svg.scales import whole_ticks
from tasks.blocks import HeatMap, Matrix, Span, own_span

LEFT, HEAD, FOOT = 46, 22, 38
SHORTEST, TALLEST = 110.0, 200.0
MOST_PANELS = 4
MOST_TICKS = 7
MOST_CELLS = 256
"""Rows and columns that are drawn one by one."""


def heat_parts(heat: HeatMap) -> Drawn:
    """Panels in lines of up to four, each with its name above and its axes, and one bar of colours."""
    span = heat.span or own_span([one.values for one in heat.panels])
    columns = min(MOST_PANELS, max(1, len(heat.panels)))
    width = min((WIDTH - MARGIN) / columns - LEFT, 2 * TALLEST)
    height = _height(heat, width)
    step = height + HEAD + FOOT
    parts = []
    for place, one in enumerate(heat.panels):
        left = MARGIN + (place % columns) * (width + LEFT) + LEFT - MARGIN
        top = (place // columns) * step + HEAD
        parts += _panel(heat, one, span, (left, top, width - 12, height))
    bottom = -(-len(heat.panels) // columns) * step
    ends = ("", "") if span is None else _ends(heat, span)
    return Drawn([*parts, *colour_bar(bottom + 8, ends, heat.unit)], bottom + 30)


def _height(heat: HeatMap, width: float) -> float:
    """As tall as the panels' shapes ask, within limits."""
    shapes = [one.values.shape for one in heat.panels if one.values.size]
    ratio = max((rows / columns for rows, columns in shapes), default=1.0)
    return min(max(ratio * (width - 12), SHORTEST), TALLEST)


def _panel(
    heat: HeatMap, one: Matrix, span: Span | None, place: tuple[float, float, float, float]
) -> list[str]:
    """One matrix with its name, its axes and their numbers."""
    left, top, width, height = place
    rows, columns = one.values.shape
    parts = [
        words(left, top - 7, fitting(one.title, width + LEFT - 8), more=' font-weight="600"'),
        image(left, top, (width, height), map_png(one.values, span, MOST_CELLS)),
        words(left + width / 2, top + height + 30, heat.x, "middle", ' font-size="11"'),
        upright(left - LEFT + 20, top + height / 2, heat.y).replace("<text", '<text font-size="11"'),
    ]
    for number in whole_ticks(one.first[1], one.first[1] + columns - 1, MOST_TICKS):
        x = left + (number - one.first[1] + 0.5) / columns * width
        parts.append(words(x, top + height + 14, str(number), "middle", ' font-size="10"'))
    for number in whole_ticks(one.first[0], one.first[0] + rows - 1, MOST_TICKS):
        y = top + (number - one.first[0] + 0.5) / rows * height
        parts.append(words(left - 4, y + 3.5, str(number), "end", ' font-size="10"'))
    return parts


def _ends(heat: HeatMap, span: Span) -> tuple[str, str]:
    """The numbers at both ends of the bar, and whether cells lie beyond them."""
    own = own_span([one.values for one in heat.panels]) or span
    low = f"{'≤ ' if own[0] < span[0] else ''}{span[0]:.3g}"
    return low, f"{'≥ ' if own[1] > span[1] else ''}{span[1]:.3g}"
