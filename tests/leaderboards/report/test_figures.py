import io
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import vl_convert
from PIL import Image

from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.style import looks
from layerboard.leaderboards.report.figures import figures_of, without_figure, write_figures
from tests.leaderboards.builder import frame, layers
from tests.leaderboards.report.boards import SCORES, content

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def figures():
    return dict(figures_of(content()))


def test_there_is_one_for_each_view_of_each_task(figures):
    tasks = {name.removeprefix("knn-") for name in figures if name.startswith("knn-")}
    assert tasks == {"best", "layers", "panels", "depth", "cost-ms", "cost-parameters", "cost-dim"}
    assert sum(name.endswith("-tasks") for name in figures) == len(SCORES)
    assert sum(name.startswith("cka-") for name in figures) == 2
    assert all(re.fullmatch(r"[\w.-]+", name) for name in figures)


KINDS = (
    *("knn-best", "knn-layers", "knn-panels", "layers", "davis-depth", "knn-cost-ms", "davis-cost-dim"),
    *("mini-dino-tasks", "cka-"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_shows_its_numbers_inside_of_its_frame_and_is_not_blank_nor_black(figures, kind):
    spec = next(spec for name, spec in figures.items() if name.startswith(kind))
    svg = engine.render_chart(spec)
    root = ET.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    assert width < 800
    texts = [*placed(root)]
    assert len(texts) > 5
    assert all(0 <= x <= width and 0 <= y <= height for _, x, y in texts)
    assert sum(1 for part in root.iter() if part.tag in (f"{SVG}path", f"{SVG}image", f"{SVG}line")) >= 5
    drawn = vl_convert.svg_to_png(svg)
    pixels = np.asarray(Image.open(io.BytesIO(drawn)).convert("RGB"), float)
    assert pixels.std() > 10
    assert (pixels.min(axis=2) > 250).mean() > 0.2  # paper
    assert (np.ptp(pixels, axis=2) > 40).mean() > 0.001  # colour
    edges = [pixels[:3], pixels[-3:], pixels[:, :3], pixels[:, -3:]]
    assert min(edge.min() for edge in edges) > 250  # no label is cut off


def placed(element, x=0.0, y=0.0):
    """Texts with their place on the sheet."""
    moved = re.search(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)", element.get("transform", ""))
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    if element.tag == f"{SVG}text" and element.text:
        yield element.text, x, y
    for child in element:
        yield from placed(child, x, y)


def test_labels_say_the_scores_the_highest_first(figures):
    root = ET.fromstring(engine.render_chart(figures["knn-best"]))
    labels = [text for text, *_ in placed(root) if "layer" in text]
    assert labels == [
        "62.2 ± 1.0, layer 3/3 cls",
        "61.5 ± 1.0, layer 2/3 cls",
        "60.1 ± 1.0, layer 3/3 cls",
        "12.0 ± 1.0, layer 3/3 cls",
    ]


def test_files_have_the_names_of_their_figures(tmp_path):
    both = [*layers([50.0, 60.0], backbone="mini-fs"), *layers([50.0], backbone="mini fs")]
    written = write_figures(content(frame(both)), tmp_path, ("svg", "pdf"))
    assert {path.parent for path in written} == {tmp_path / "mini"}
    names = {path.name for path in written}
    assert {"knn-best.svg", "knn-best.pdf", "layers.pdf", "mini-fs-tasks.pdf", "mini-fs-tasks-2.pdf"} <= names
    assert len(names) == len(written)
    assert (tmp_path / "mini" / "knn-layers.pdf").read_bytes().startswith(b"%PDF")


def test_what_has_no_figure_is_said():
    inside = [replace(one, tap="norm1") for one in layers([50.0, 60.0])]
    inside += [replace(one, tap="mlp") for one in layers([50.0], task="davis", metric="J&F")]
    only = content(frame(inside))
    assert [*figures_of(only)] == []
    assert without_figure(only) == [
        "mini: knn top-1 has no figure: curves are of blocks, and only norm1 has a score",
        "mini: davis J&F has no figure: curves are of blocks, and only mlp has a score",
    ]
    assert without_figure(content(frame(layers([50.0, 60.0])))) == []


def test_every_metric_over_layers_has_a_figure():
    others = [replace(one, metric="top-5", primary=False) for one in layers([70.0, 60.0])]
    figures = dict(figures_of(content(frame(layers([50.0, 60.0]), others))))
    assert "knn-layers-top-5" in figures
    shown = engine.render_chart(figures["knn-layers-top-5"])
    assert "knn top-5, %" in shown
    assert "knn top-1, %" not in shown


def test_names_of_figures_stay_when_a_folder_gets_another_digest(tmp_path):
    for digest in ("0a1b2c3d", "99999999"):
        both = [*layers([50.0], dataset=f"photos-{digest}"), *layers([60.0], dataset=f"cats-{digest}")]
        names = {name for name, _ in figures_of(content(frame(both)))}
        assert {"knn-photos-standard-layers", "knn-cats-standard-layers"} <= names


def test_a_highlighted_backbone_stands_out_and_all_tasks_share_a_legend():
    figures = dict(figures_of(content(highlight="mini-fs")))
    colour = looks(["mini-fs"], content().labels)["mini-fs"]["color"]
    for name in ("knn-layers", "layers"):
        lines = re.findall(r'<path[^>]*stroke-width="1.8"[^>]*>', engine.render_chart(figures[name]))
        assert {colour in line for line in lines if "0.15" not in line} == {True}, name
        assert sum("0.15" in line for line in lines) == len(lines) * 3 // 4
    assert engine.render_chart(figures["layers"]).count(">mini-clip<") == 1
