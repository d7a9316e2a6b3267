import base64
import re
from io import BytesIO
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from layerboard.leaderboards.blocks.blocks import HeatMap, Maps, Matrix, Page, Plot, SmallMap, alternative
from layerboard.leaderboards.blocks.csv import csv_page
from layerboard.leaderboards.charts.pictures import picture_spec
from layerboard.leaderboards.charts.style import series_look
from layerboard.leaderboards.charts.svg import svg_element, svg_file
from layerboard.leaderboards.writers.markdown import markdown_page
from tests.leaderboards.reader import page_html

NAN = float("nan")
HOSTILE = "<script>alert(1)</script>|\"'&lt;"
SVG = "{http://www.w3.org/2000/svg}"
GRID = np.arange(6.0).reshape(2, 3)
IMAGE = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3)


def frame(name="a", value=1.0):
    return pd.DataFrame({"panel": [name], "series": [name], "x": [1.0], "y": [value]})


def pictures(name="a", values=GRID, image=IMAGE):
    """One picture of each kind with that name wherever a name stands."""
    small = SmallMap(name, name, name, values)
    return (
        Plot(frame(name).drop(columns="panel"), "lines", name, name, name, name="figure"),
        Plot(frame(name), "points", name, name, name, name="facets"),
        HeatMap((Matrix(name, values),), name, name, name, name, name="heat"),
        Maps((small,), name, name, name="maps"),
        Maps((small,), name, name, name="gallery", images={name: image}),
    )


def texts(picture):
    return [element.text for element in ET.fromstring(svg_file(picture)).iter(f"{SVG}text")]


def images(text):
    return re.findall(r'href="(data:image/png;base64,[^"]+)"', text)


@pytest.mark.parametrize("picture", pictures(), ids=lambda one: one.name)
def test_every_kind_is_well_formed_deterministic_and_needs_nothing_else(picture):
    text = svg_file(picture)
    svg = ET.fromstring(text)
    assert (svg.get("role"), svg[0].text) == ("img", "a")
    assert int(svg.get("height")) > 0
    assert text == svg_file(picture)
    assert all(found.startswith(("data:image/png", "#")) for found in re.findall(r'href="([^"]*)', text))
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "prefers-color-scheme:dark" in text
    assert "<style>" not in svg_element(picture, (), "a")


@pytest.mark.parametrize("picture", pictures(HOSTILE), ids=lambda one: one.name)
def test_names_are_escaped_in_every_writer(picture):
    page = Page("p", "T", (picture,))
    for text in (svg_file(picture), page_html(page), markdown_page(page)):
        assert "<script" not in text
    assert ET.fromstring(svg_file(picture)).get("aria-label").startswith(HOSTILE)
    assert csv_page(page) == ""


@pytest.mark.parametrize("picture", pictures(), ids=lambda one: one.name)
def test_markdown_links_a_picture_with_a_name_and_says_it_in_words(picture):
    text = markdown_page(Page("mini.inside", "T", (picture,)))
    assert text == f"# T\n\n**a**\n\n![{alternative(picture)}](mini.inside/{picture.name}.svg)\n"


def test_alternatives_say_what_is_shown():
    assert [alternative(one) for one in pictures()] == [
        "a. a over a: a",
        "a. a over a: a; side by side: a",
        "a. a by a and a: a",
        "a. Maps; rows: a; columns: a",
        "a. Maps; rows: a; columns: a",
    ]


@pytest.mark.parametrize(
    "values", [np.full((2, 2), NAN), np.full((2, 2), np.inf), np.ones((1, 1)), np.zeros((3, 1)), GRID * NAN]
)
def test_holes_and_equal_numbers_can_be_drawn(values):
    for picture in pictures(values=values):
        text = svg_file(picture)
        assert ET.fromstring(text) is not None
        assert "nan" not in re.sub(r'href="[^"]*"', "", text).lower()


def test_characters_that_no_file_may_hold_are_replaced():
    for picture in pictures("a\0\x1b\uffffb"):
        assert ET.fromstring(svg_file(picture)).get("aria-label").startswith("a\ufffd\ufffd\ufffdb")


def test_nothing_can_be_drawn():
    empty = frame()[:0]
    for picture in (
        Plot(empty, "lines", "T", "x", "y"),
        HeatMap((), "T", "x", "y", "u"),
        Maps((), "T", "u"),
        Maps((), "T", "u", images={"i": IMAGE}),
    ):
        assert ET.fromstring(svg_file(picture)) is not None


def test_keys_of_dashed_lines_have_no_outline():
    rows = [(f"net {net}", x, net * x) for net in range(9) for x in (1, 2)]
    text = svg_file(Plot(pd.DataFrame(rows, columns=["series", "x", "y"]), "lines", "", "block", ""))
    keys = [path for path in re.findall(r"<path[^>]*>", text) if "dasharray" in path and 'fill="#' in path]
    assert len(keys) == 2  # of nine series, those beyond the seven colours
    assert all('stroke-width="0"' in key for key in keys)


def test_facets_share_the_horizontal_axis_and_the_legend():
    points = [("p", "a", 1.0, 2.0), ("p", "b", 2.0, 3.0), ("q", "b", 4.0, 30.0), ("q", "a", 3.0, NAN)]
    points = pd.DataFrame(points, columns=["panel", "series", "x", "y"])
    shared = texts(Plot(points, "lines", "T", "block", "y"))
    assert shared.count("1") == shared.count("4") == 2
    assert shared.count("30") == 2
    assert [text for text in shared if text in ("a", "b", "p", "q")] == ["p", "q", "a", "b"]
    apart = texts(Plot(points, "lines", "T", "block", "y", shared=False))
    assert apart.count("30") == 1


def test_panels_of_one_scale_share_it_and_others_do_not():
    points = [("p", 1.0, "share"), ("q", 30.0, "share"), ("r", 2.0, "count")]
    points = pd.DataFrame(points, columns=["panel", "y", "scale"]).assign(series="a", x=1.0)
    panels = picture_spec(Plot(points, "lines", "T", "block", "y", shared=False), ())["concat"]
    first, second, third = (
        each["layer"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"] for each in panels
    )
    assert first == second == [1, 30]
    assert third != first


def test_names_are_broken_only_where_they_are_longer_than_a_line():
    panels = ["mini-fs64-untrained", "mini-beit-untrained, mini-resnet-untrained", "tf_efficientnet_lite" * 2]
    points = pd.concat([frame(name) for name in panels])
    titles = [each["title"]["text"] for each in picture_spec(Plot(points, "lines", "", "", ""), ())["concat"]]
    assert titles[:2] == [["mini-fs64-untrained"], ["mini-beit-untrained,", "mini-resnet-untrained"]]
    assert titles[2] == ["tf_efficientnet_litetf_", "efficientnet_lite"]


def test_rounding_errors_extend_neither_an_axis_nor_the_colours():
    line = pd.DataFrame({"series": "a", "x": [1.0, 2.0], "y": [0.35, 1 + 2e-7]})
    assert "1.2" not in texts(Plot(line, "lines", "T", "block", "CKA"))
    heat = HeatMap((Matrix("m", np.array([[1 + 2e-7, 0.5]])),), "T", "x", "y", "CKA", (0.0, 1.0))
    assert texts(heat)[-3:] == ["0", "1", "CKA"]


def test_an_axis_of_blocks_has_whole_numbers_alone():
    line = pd.DataFrame({"series": "a", "x": [0.0, 20.0, 40.0], "y": [2.0, 2.0, 3.0]})
    assert {text for text in texts(Plot(line, "lines", "T", "step", "best block")) if "." in text} == set()


def test_a_backbone_has_one_colour_whatever_is_drawn_beside_it():
    suite = ("one", "two", "three")
    for names in (["three"], ["three", "one"], ["other", "three"]):
        points = pd.DataFrame({"series": names, "x": [1.0] * len(names), "y": [2.0] * len(names)})
        text = svg_file(Plot(points, "points", "T", "x", "y"), suite)
        assert series_look(2)["color"] in text
        assert series_look(1)["color"] not in text


def test_a_heat_map_numbers_its_axes_and_says_what_lies_beyond_its_colours():
    heat = HeatMap((Matrix("m", GRID, (0, 1)),), "T", "block", "token", "ratio", (0.0, 4.0))
    words = texts(heat)
    assert words == ["1", "2", "3", "block", "0", "1", "token", "m", "0", "≥ 4", "ratio"]
    assert texts(HeatMap((Matrix("m", GRID),), "T", "x", "y", "u"))[-3:] == ["0", "5", "u"]


@pytest.mark.parametrize("rows", [("11", "12"), ("a", "b")], ids=["numbered", "named"])
def test_the_first_row_of_a_matrix_is_at_the_top_or_at_the_bottom(rows):
    names = ((), ()) if rows[0] == "11" else (rows, ("c", "d", "e"))
    drawn, heights = [], []
    for upward in (False, True):
        matrix = Matrix("m", GRID, (11, 1), names=names, upward=upward)
        text = svg_file(HeatMap((matrix,), "T", "", "", "u"))
        drawn.append(np.asarray(Image.open(BytesIO(base64.b64decode(images(text)[0].partition(",")[2])))))
        labels = {each.text: each.get("transform") for each in ET.fromstring(text).iter(f"{SVG}text")}
        heights.append([float(re.split("[,)]", labels[row])[1]) for row in rows])
    assert np.array_equal(drawn[0], drawn[1][::-1])
    assert not np.array_equal(*drawn)
    assert heights[0][0] < heights[0][1]
    assert heights[1][0] > heights[1][1]


def test_small_maps_name_rows_and_columns_and_state_their_scale():
    maps = tuple(SmallMap("p", row, column, GRID) for row in ("r", "s") for column in ("c", "d", "e"))
    assert texts(Maps(maps, "T", "u")) == [
        *("c", "d", "e", "r", "s", "p"),
        *("lowest", "highest", "u, each map by itself"),
    ]
    assert texts(Maps(maps, "T", "u", (0.0, 5.0)))[-3:] == ["0", "5", "u"]
    assert len(images(svg_file(Maps(maps, "T", "u")))) == 1  # one sheet


def test_frames_of_small_maps_have_a_legend_beside_the_scale():
    kinds = ("near", "far")
    maps = tuple(SmallMap("p", "r", column, GRID, kind) for column, kind in (("c", "far"), ("d", "")))
    framed = Maps(maps, "T", "u", kinds=kinds, dense=True)
    assert texts(framed)[-6:] == ["lowest", "highest", "u, each map by itself", "near", "far", "frame"]
    assert len(images(svg_file(framed))) == 2  # the maps, and the frames
    assert svg_file(framed).count("#0072b2") >= 1


def test_dense_maps_share_a_line():
    maps = tuple(SmallMap(panel, "1", str(column), GRID) for panel in "pq" for column in range(12))
    sparse, dense = (ET.fromstring(svg_file(Maps(maps, "T", "u", dense=dense))) for dense in (False, True))
    assert int(dense.get("height")) < int(sparse.get("height"))


def test_colours_need_no_scale():
    text = svg_file(Maps((SmallMap("", "1", "1", IMAGE),), "T", ""))
    assert len(images(text)) == 1


def test_long_names_are_read_to_their_end():
    """Those of two networks of timm differ at the end; a line that is too long is broken."""
    long = "timm:vit_base_patch16_224.augreg_in21k_ft_in1k"
    maps = tuple(SmallMap(long, long, str(at), GRID) for at in range(12))
    points = pd.concat([frame(long).assign(panel=panel) for panel in (long, "b", "c")])
    panel = Matrix(f"{long}\nmlp", GRID, names=(("1", "2"), ("1", "2", "3")), titles=(long, long))
    for picture, count in (
        (Maps(maps, "T", "u"), 2),
        (Plot(points, "lines", "T", "x", "y"), 2),
        (HeatMap((panel,) * 3, "T", "", "", "u"), 9),
    ):
        svg = ET.fromstring(svg_file(picture))
        words = "".join("".join(part.itertext()) for part in svg.iter(f"{SVG}text"))
        assert "".join(words.split()).count(long) == count
        assert "…" not in words


def test_a_gallery_shows_each_image_under_veils_and_bare():
    maps = tuple(SmallMap(panel, row, "last", GRID) for panel in ("i", "j") for row in ("a", "b"))
    picture = Maps(maps, "T", "u", images={"i": IMAGE, "j": IMAGE[::-1]})
    assert len(images(svg_file(picture))) == 2 + 2  # an image and a sheet of veils for each panel
    assert texts(picture)[:5] == ["image", "last", "a", "b", "i"]
    assert texts(picture)[-1] == "Bright: high; dark: low; each map by itself. u"


def test_ids_differ_between_the_pictures_of_a_page():
    kinds = pictures()
    text = page_html(Page("p", "T", (*kinds, *kinds)))
    ids = re.findall(r' id="([^"]+)"', text)
    assert ids
    assert len(ids) == len(set(ids))
    assert {name[1:] for name in re.findall(r'href="(#[^"]+)"', text)} <= set(ids)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)


def test_maps_of_few_rows_are_large_and_their_legends_have_room_in_any_font():
    def drawn(rows):
        places = [(panel, str(row), str(at)) for panel in "ab" for row in range(rows) for at in range(12)]
        return picture_spec(
            Maps(tuple(SmallMap(*each, GRID) for each in places), "T", "u" * 40, dense=True), ()
        )

    few, many = drawn(2), drawn(12)
    assert (few["columns"], many["columns"]) == (1, 2)
    assert few["concat"][0]["width"] > 1.9 * many["concat"][0]["width"]
    legends = [layer["encoding"]["color"]["legend"] for layer in few["concat"][0]["layer"][1:]]
    assert all(legend["gradientLength"] > 40 * 7 for legend in legends)
