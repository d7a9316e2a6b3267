import re
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from leaderboards.pages.svg.colours import SERIES as PALETTE
from leaderboards.pages.svg.draw import draw
from leaderboards.pages.svg.frame import SHAPES
from leaderboards.pages.svg.scales import round_ticks, whole_ticks
from tasks.blocks import Plot

NAN = float("nan")
SVG = "{http://www.w3.org/2000/svg}"


def figure(points, kind="lines", **changes):
    frame = pd.DataFrame(points, columns=["series", "x", "y"])
    return Plot(frame, kind, **({"title": "T", "x": "block", "y": "top-1, %"} | changes))


def drawn(points, kind="lines", **changes):
    return ET.fromstring(draw(figure(points, kind, **changes)))


def words(svg):
    return [element.text for element in svg.iter(f"{SVG}text")]


def test_a_figure_names_itself_its_axes_and_its_series():
    svg = drawn([("a", 1, 10.0), ("a", 2, 20.0), ("b", 1, 15.0)])
    assert (svg.get("role"), svg.get("aria-label"), svg[0].text) == ("img", "T", "T")
    assert words(svg) == ["10", "12", "14", "16", "18", "20", "1", "2", "block", "top-1, %", "a", "b"]
    tips = [element.text for element in svg.iter(f"{SVG}title")]
    assert tips[1:] == ["a: block 1, top-1, % 10", "a: block 2, top-1, % 20", "b: block 1, top-1, % 15"]


def test_a_missing_number_breaks_the_line():
    lines = re.findall(
        r'<path d="(M[^"]+)" fill="none" stroke="#',
        draw(figure([("a", x, y) for x, y in enumerate([1, 2, NAN, 4, 5], 1)])),
    )
    assert [line.count("M") for line in lines] == [2]
    assert [line.count("L") for line in lines] == [2]


def test_points_are_where_their_numbers_are():
    text = draw(figure([("a", 1, 0.0), ("a", 3, 10.0), ("a", 2, 5.0)], "points"))
    places = [
        tuple(map(float, place.split()))
        for place in re.findall(r'translate\(([\d.]+ [\d.]+)\)"><title>', text)
    ]
    (left, bottom), (right, top), (middle, centre) = places
    assert left < middle < right
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert (bottom, centre, top) == (262.0, 137.0, 12.0)
    assert 'fill="none" stroke="#' not in text


def test_series_differ_by_colour_and_shape_and_later_ones_by_dashes():
    count = len(PALETTE) + 1
    text = draw(figure([(f"s{place}", x, place) for place in range(count) for x in (1, 2)]))
    looks = {(PALETTE[place % len(PALETTE)], SHAPES[place % len(SHAPES)]) for place in range(count)}
    assert len(looks) == count
    assert text.count("stroke-dasharray") == 1


def test_zeros_lie_on_the_axis():
    assert words(drawn([("a", 1, 0.0), ("a", 2, 0.0)]))[:6] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (1, 3, 8, [1, 2, 3]),
        (1, 12, 8, [2, 4, 6, 8, 10, 12]),
        (1, 24, 8, [5, 10, 15, 20]),
        (0, 64, 7, [0, 10, 20, 30, 40, 50, 60]),
        (0, 196, 7, [0, 50, 100, 150]),
        (7, 7, 1, [7]),
    ],
)
def test_few_whole_numbers_are_written_at_round_steps(low, high, most, ticks):
    assert whole_ticks(low, high, most) == ticks


@pytest.mark.parametrize("points", [[], [("a", 1, NAN)], [("a", 1, 5.0)], [("a", 1, 0.0), ("a", 40, 0.0)]])
def test_few_or_equal_numbers_can_be_drawn(points):
    assert "nan" not in draw(figure(points)).lower()
    assert drawn(points).get("viewBox")


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 77.3, (0, 20, 40, 60, 80)),
        (0.216, 0.567, (0.2, 0.3, 0.4, 0.5, 0.6)),
        (-3, 3, (-4, -2, 0, 2, 4)),
        (0.5, 0.5, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)),
        (1000, 1001, (1000, 1000.2, 1000.4, 1000.6, 1000.8, 1001)),
    ],
)
def test_ticks_are_round_and_hold_the_ends(low, high, ticks):
    assert round_ticks(low, high) == pytest.approx(ticks)


def test_long_legends_take_more_lines():
    short, long = (drawn([("n" * 60 + str(place), 1, 1.0) for place in range(count)]) for count in (1, 4))
    heights = [int(svg.get("viewBox").split()[3]) for svg in (short, long)]
    assert heights[1] == heights[0] + 60
