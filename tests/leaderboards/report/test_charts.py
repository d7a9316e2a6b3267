from itertools import combinations

import numpy as np
import pytest

from layerboard.leaderboards.charts.style import COLOURS, looks, series_look
from layerboard.leaderboards.report import charts

# Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency,
# IEEE TVCG 2009, table 1, full severity, on linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                   [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip
WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour, vision):
    """CIE L*a*b* of an sRGB colour as somebody with that vision sees it."""
    share = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / WHITE
    bent = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * bent[1] - 16, 500 * (bent[0] - bent[1]), 200 * (bent[1] - bent[2])])


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_can_be_told_apart_by_all_readers(vision):
    # 2.3 is what is just noticed side by side; shapes tell series apart, too
    apart = [np.linalg.norm(lab(one, vision) - lab(other, vision)) for one, other in combinations(COLOURS, 2)]
    assert min(apart) > 9


def test_no_two_series_have_one_colour_and_one_shape():
    series = [series_look(place) for place in range(49)]
    assert len({(one["color"], one["shape"]) for one in series}) == 49
    assert len({(one["color"], str(one["strokeDash"])) for one in series}) == 49
    assert len({one["color"] for one in series[:7]}) == len({one["shape"] for one in series[:7]}) == 7


def test_a_backbone_looks_as_its_place_in_the_suite_says():
    suite = ["a", "b", "c"]
    assert looks(["c", "a"], suite) == {"c": series_look(2), "a": series_look(0)}
    assert looks(["one", "two", "two"], suite) == {"one": series_look(0), "two": series_look(1)}


def test_open_places_are_filled_once():
    spec = {"a": "{rows}", "b": ["{x}, %", 3, None], "c": "{x} and {y}"}
    words = {"rows": [1, 2], "x": "{y}", "y": "z"}
    assert charts.fill_placeholders(spec, words) == {"a": [1, 2], "b": ["{y}, %", 3, None], "c": "{y} and z"}


def test_every_chart_names_the_rows_and_reads_no_address():
    found = charts.all_charts()
    assert set(charts.STEPS) < set(found)
    for name, spec in found.items():
        assert spec["data"] == {"name": charts.ROWS}, name
        assert "url" not in str(spec.get("layer", spec.get("spec"))), name


def test_many_rows_are_lower():
    assert charts.height("ranking", 40) == 40 * 24
    assert charts.height("ranking", 90) == 90 * 14
    assert charts.height("curves", 90) == 0


def test_a_backbone_beside_itself_keeps_every_line_of_a_tooltip():
    spec = charts.fill_placeholders(
        charts.alike(), {"first": "a", "second": "a", "ink": "", "font": "", "mark": ""}
    )
    titles = [tip["title"] for tip in spec["layer"][0]["encoding"]["tooltip"]]
    assert titles == ["row: layer of a", "column: layer of a", "CKA"]


def test_labels_at_the_ends_of_lines_keep_apart_where_they_are_near():
    assert charts.spaced_labels([(1.0, 50.0), (1.0, 20.0)], 5.0) == [50.0, 20.0]
    assert charts.spaced_labels([(1.0, 50.0), (1.0, 51.0), (1.0, 49.0)], 5.0) == [46.0, 51.0, 41.0]
    assert charts.spaced_labels([(0.1, 50.0), (1.0, 51.0)], 5.0) == [50.0, 51.0]
