from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from layerboard.leaderboards.blocks.blocks import Plot
from layerboard.leaderboards.charts.pictures import whole_ticks
from layerboard.leaderboards.charts.style import COLOURS
from layerboard.leaderboards.charts.svg import svg_file

NAN = float("nan")
SVG = "{http://www.w3.org/2000/svg}"


def figure(points, kind="lines", **changes):
    frame = pd.DataFrame(points, columns=["series", "x", "y"])
    return Plot(frame, kind, **({"title": "T", "x": "block", "y": "top-1, %"} | changes))


def drawn(points, kind="lines", **changes):
    return ET.fromstring(svg_file(figure(points, kind, **changes)))


def words(svg):
    return [element.text for element in svg.iter(f"{SVG}text")]


def places(svg):
    """Where the markers of a plot are, in the order of drawing."""
    return [(float(mark.get("x")), float(mark.get("y"))) for mark in svg.iter(f"{SVG}use")]


def lines(svg):
    """The paths of its lines."""
    return [path for path in svg.iter(f"{SVG}path") if not path.get("id") and not path.get("transform")]


def test_a_figure_names_itself_its_axes_and_its_series():
    svg = drawn([("a", 1, 10.0), ("a", 2, 20.0), ("b", 1, 15.0)])
    assert (svg.get("role"), svg.get("aria-label"), svg[0].text) == ("img", "T", "T")
    assert words(svg) == ["1", "2", "block", "10", "12", "14", "16", "18", "20", "top-1, %", "a", "b"]


def test_a_missing_number_breaks_the_line():
    svg = drawn([("a", x, y) for x, y in enumerate([1, 2, NAN, 4, 5], 1)])
    assert [(line.get("d").count("M"), line.get("d").count("L")) for line in lines(svg)] == [(2, 2)]
    assert len(places(svg)) == 4


def test_points_are_where_their_numbers_are():
    svg = drawn([("a", 1, 0.0), ("a", 3, 10.0), ("a", 2, 5.0)], "points")
    (left, bottom), (right, top), (middle, centre) = places(svg)
    assert left < middle < right
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert (bottom, centre, top) == (250, 125, 0)
    assert not lines(svg)


def test_series_differ_by_colour_and_shape_and_later_ones_by_dashes():
    count = len(COLOURS) + 1
    svg = drawn([(f"s{place}", x, place) for place in range(count) for x in (1, 2, 3)])
    marks = [path for path in svg.iter(f"{SVG}path") if path.get("id")]
    assert len({(mark.get("d"), mark.get("fill")) for mark in marks}) == count
    dashes = [line.get("stroke-dasharray") for line in lines(svg)]
    assert len(dashes) == count
    assert dashes[0] != dashes[-1] == "5,3"


def test_zeros_lie_on_the_axis():
    assert words(drawn([("a", 1, 0.0), ("a", 2, 0.0)]))[3:9] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]


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
    assert "nan" not in svg_file(figure(points)).lower()
    assert drawn(points).get("viewBox")


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [
        (0, 77.3, "0", "80"),
        (0.216, 0.567, "0.20", "0.60"),
        (-3, 3, "\N{MINUS SIGN}3", "3"),
        (1000, 1001, "1,000", "1,001"),
    ],
)
def test_ticks_are_round_and_hold_the_ends(low, high, first, last):
    ticks = words(drawn([("a", 1, low), ("a", 2, high)]))[3:-2]
    assert (ticks[0], ticks[-1]) == (first, last)


def test_long_legends_take_more_lines():
    short, long = (drawn([("n" * 60 + str(place), 1, 1.0) for place in range(count)]) for count in (1, 4))
    heights = [int(svg.get("viewBox").split()[3]) for svg in (short, long)]
    assert heights[1] > heights[0] + 30
