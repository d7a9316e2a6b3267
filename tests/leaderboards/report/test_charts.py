from itertools import combinations
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.answer.choice import pareto_of
from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.style import COLOURS, looks, series_look
from layerboard.leaderboards.report import charts
from layerboard.leaderboards.report.views import VIEWS, view_named
from tests.leaderboards.answer.test_candidates import answered, candidates
from tests.leaderboards.colours import VISIONS, lab, pixels_of


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_can_be_told_apart_by_all_readers(vision):
    # 2.3 is what is just noticed side by side; shapes tell series apart, too
    apart = [np.linalg.norm(one - other) for one, other in combinations(lab(pixels_of(COLOURS), vision), 2)]
    assert min(apart) > 9


def test_no_two_series_have_one_colour_and_one_shape():
    series = [series_look(place) for place in range(49)]
    assert len({(one["color"], one["shape"]) for one in series}) == 49
    assert len({(one["color"], str(one["strokeDash"])) for one in series}) == 49
    assert len({one["color"] for one in series[:7]}) == 7
    assert len({one["shape"] for one in series[:14]}) == 14  # in print without colours


def test_a_backbone_looks_as_its_place_in_the_suite_says():
    suite = ["a", "b", "c"]
    assert looks(["c", "a"], suite) == {"c": series_look(2), "a": series_look(0)}
    assert looks(["one", "two", "two"], suite) == {"one": series_look(0), "two": series_look(1)}


def test_open_places_are_filled_once():
    spec = {"a": "{rows}", "b": ["{x}, %", 3, None], "c": "{x} and {y}", "d": "at({=z}, {=y})"}
    words = {"rows": [1, 2], "x": "{y}", "y": "z"} | {"z": ["'", '"', True]}
    assert charts.fill_placeholders(spec, words) == {
        "a": [1, 2],
        "b": ["{y}, %", 3, None],
        "c": "{y} and z",
    } | {"d": """at(["'", "\\\"", true], "z")"""}


def test_every_chart_draws_its_rows_and_reads_no_address():
    for view in VIEWS:
        assert view.spec["data"] == {"values": "{rows}"}, view.name
        assert "url" not in str(view.spec.get("layer", view.spec.get("spec"))), view.name


def test_many_rows_are_lower():
    ranking, curves = view_named("ranking"), view_named("curves")
    assert (ranking.row(40), ranking.row(90), curves.row(90)) == (24, 14, 0)
    assert ranking.room(90) - ranking.room(0) == 90 * 14


def test_a_backbone_beside_itself_keeps_every_line_of_a_tooltip():
    words = dict.fromkeys(("rows", "ink", "font", "mark", "font_size", "angle", "cell"), "")
    words |= {"first": "a", "second": "a"}
    spec = charts.fill_placeholders(charts.alike(), words)
    titles = [tip["title"] for tip in spec["layer"][0]["encoding"]["tooltip"]]
    assert titles == ["row: layer of a", "column: layer of a", "CKA"]


def computed(transforms, rows, *fields):
    """Some fields of the rows that transforms leave, as the charting library computes them."""
    text = " + ' ' + ".join(f"datum.{field}" for field in fields)
    spec = {"data": {"values": rows}, "transform": [*transforms, {"calculate": text, "as": "said"}]}
    spec |= {"mark": "text", "encoding": {"text": {"field": "said", "type": "nominal"}}}
    texts = ET.fromstring(engine.render_chart(spec)).iter("{http://www.w3.org/2000/svg}text")
    return [text.text.split(" ") for text in texts]


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [([50, 20], [50, 20]), ([50, 51, 49], [46, 51, 41]), ([51, 20, 49, 47], [51, 20, 46, 41])],
)
def test_labels_at_the_ends_of_lines_keep_apart(ends, wanted):
    spread = max(ends)
    rows = [
        {"backbone": f"b{number}", "layer": layer, "value": value, "place": ""}
        for number, end in enumerate(ends)
        for layer, value in ((1, 0), (2, end))
    ]
    height = charts.LABEL * spread / 5  # labels are 5 units apart
    found = computed(charts.spaced_labels(height), rows, "backbone", "end")
    assert {name: round(float(end), 6) for name, end in found} == {
        f"b{number}": end for number, end in enumerate(wanted)
    }


def test_labels_that_are_apart_along_the_axis_stay_at_their_ends():
    rows = [
        {"backbone": name, "layer": 1, "value": value, "place": "", "across": across, "width": 1}
        for name, value, across in (("a", 50, 0), ("b", 51, 0.9), ("c", 0, 0.95))
    ]
    found = computed(charts.spaced_labels(13, ["near"]), rows, "backbone", "end")
    assert {name: float(end) for name, end in found} == {"a": 50, "b": 51, "c": 0}


def test_labels_at_nearly_one_place_keep_apart_wherever_it_is_on_the_axis():
    for place in (0.05, 0.24, 0.49, 0.74):
        ends = (("a", 50, place), ("b", 50.5, place + 0.02), ("c", 0, 1))
        rows = [
            {"backbone": name, "layer": 1, "value": value, "place": "", "across": across, "width": 1}
            for name, value, across in ends
        ]
        found = dict(computed(charts.spaced_labels(130, ["near"]), rows, "backbone", "end"))
        assert float(found["b"]) - float(found["a"]) == pytest.approx(0.1 * 50.5)


def test_names_of_panels_are_read_to_their_end():
    names = ["timm:tf_efficientnet_lite0", "timm:tf_efficientnet_lite1", "mini-fs"]
    rows = [{"backbone": name, "value": 1.0, "layer": 1, "depth": 1} for name in names]
    words = dict.fromkeys(("mark", "metric", "axis"), "") | {
        "ink": "#000000",
        "font": "Arial",
        "legend": None,
    }
    words |= {"rows": rows, "backbones": names, "colours": ["#000000"] * 3, "shapes": ["circle"] * 3}
    words |= {"dashes": [[1, 0]] * 3, "across": "layer", "depth": "layer", "tick": 1, "floor": []}
    words |= {"order": names, "width": 110, "columns": 3, "letters": 16}
    svg = ET.fromstring(engine.render_chart(charts.fill_placeholders(charts.panels(), words)))
    texts = ["".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {*names} <= {*texts}
    assert not any("…" in text for text in texts)


def test_the_front_of_the_chart_is_the_one_that_is_computed():
    random = np.random.default_rng(0)
    costs, values = random.integers(1, 20, 60), random.integers(0, 12, 60)
    names = [f"b{number}" for number in range(60)]
    frame = pd.DataFrame({"backbone": names, "ms": costs, "value": values + costs})
    words = dict.fromkeys(("rows", "ink", "font", "mark", "legend", "metric", "axis"), "")
    words |= {name: [] for name in ("backbones", "colours", "shapes", "dashes", "picked")}
    words |= {"cost": "ms", "cost_title": "", "cost_scale": {}, "log": True}
    transforms = charts.fill_placeholders(charts.tradeoff(), words)["transform"]
    rows = frame.assign(layer=1, depth=1).to_dict("records")
    ahead = {name for name, front in computed(transforms, rows, "backbone", "front") if front == "true"}
    rows = zip(names, [1] * 60, frame["value"], frame["ms"], strict=True)
    front = [choice.deepest for choice in pareto_of(answered(candidates(*rows)))]
    # of rows that are equal in both, either may be taken
    assert len(ahead) == len(front) > 3
    fields = ["ms", "value"]
    taken = frame[frame["backbone"].isin(ahead)].sort_values("ms")
    assert taken[fields].to_numpy().tolist() == [[each.ms, each.value] for each in front]
