"""Charts for Python: what a notebook shows, and what stands in files."""

import io
import json
import re

import pytest
from PIL import Image

from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.engine import MIME
from layerboard.leaderboards.report.figures import charts_of
from layerboard.zoo.errors import InputError
from tests.leaderboards.report.boards import content


@pytest.fixture(scope="module")
def charts():
    return {chart.name: chart for chart in charts_of(content(), ["*-none", "davis-best", "*-best"])}


def test_the_usual_one_comes_first(charts):
    names = [*charts]
    assert names[0] == "davis-best"
    assert {"layers", "knn-layers", "knn-cost-ms", "cost-ms", "mini-dino-tasks"} <= {*names}
    assert len({*names}) == len(names)


def test_the_cost_of_a_layer_is_the_measured_one(charts):
    for name, expected in (("cost-ms", [2.0, 4.0, 6.0]), ("cost-parameters", [1.0, 2.0, 3.0])):
        (rows,) = (part["data"]["values"] for part in charts[name].spec["layer"])
        assert {row["series"] for row in rows} == {"mini-clip"}
        assert [row["y"] for row in rows] == expected


def test_a_notebook_has_a_picture_and_the_specification(charts):
    shown, sizes = charts["knn-layers"]._repr_mimebundle_()
    picture = Image.open(io.BytesIO(shown["image/png"]))
    assert picture.size == tuple(2 * sizes["image/png"][side] for side in ("width", "height"))
    assert len(picture.convert("RGB").getcolors(2**20)) > 50  # drawn, in colours
    assert json.loads(json.dumps(shown[MIME], allow_nan=False)) == charts["knn-layers"].spec
    assert shown["text/plain"].startswith("chart knn-layers")


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_it_is_saved_by_the_ending_of_the_name(charts, tmp_path, ending, start):
    path = charts["knn-best"].save(tmp_path / "new" / f"best.{ending.upper()}")
    assert path.read_bytes().startswith(start)


def test_as_json_it_is_the_specification(charts, tmp_path):
    saved = charts["knn-best"].save(str(tmp_path / "best.json"))
    assert json.loads(saved.read_text(encoding="utf-8")) == charts["knn-best"].spec


def test_another_ending_is_refused(charts, tmp_path):
    with pytest.raises(InputError, match="there is no format 'jpg'; did you mean 'png'"):
        charts["knn-best"].save(tmp_path / "best.jpg")


@pytest.mark.parametrize("name", ["knn-panels", "layers"])
def test_altair_takes_it_and_gives_it_back(charts, name):
    altair = pytest.importorskip("altair")
    chart = altair.Chart.from_dict(charts[name].spec)
    assert isinstance(chart, altair.TopLevelMixin)
    drawn = (engine.render_chart(spec) for spec in (charts[name].spec, chart.to_dict()))
    assert len({re.sub(r"clip\d+|gradient_\d+", "", svg) for svg in drawn}) == 1


def test_some_backbones_keep_their_numbers():
    whole, names = content(), ["mini-dino", "mini-clip"]
    part = whole.only(names)
    assert part.scores.equals(whole.scores[whole.scores["backbone"].isin(names)])
    assert "mini-fs-tasks" not in {chart.name for chart in charts_of(part)}
