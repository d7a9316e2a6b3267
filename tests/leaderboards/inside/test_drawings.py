import re
from functools import cache
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from layerboard.leaderboards.blocks.blocks import HeatMap, Maps, Page, Picture, Plot, Text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.charts.pictures import picture_spec
from layerboard.leaderboards.charts.svg import svg_file
from layerboard.leaderboards.inside.drawings.attention import HEADS
from layerboard.leaderboards.inside.evidence import Evidence, Wall
from layerboard.leaderboards.inside.page import DRAWINGS, analysis_blocks, inside_page
from layerboard.leaderboards.records.arrays import write_arrays
from layerboard.leaderboards.records.files import scored_path
from layerboard.leaderboards.writers.markdown import markdown_page
from layerboard.tasks.analyses.attention_maps import HeadClass
from tests.leaderboards.builder import frame
from tests.leaderboards.planted import DATASET, arrays, compared, metrics, plant, records
from tests.leaderboards.reader import page_html

TWO = {"mini-dino": "DINO", "mini-mae": "MAE"}
SIZES = {"depth": 5, "heads": 3, "grid": 4}
PICTURES = {
    "attention-distance": ([Plot, Plot, Plot], 3),
    "attention-maps": ([Maps, Maps, Maps, Maps, Plot, Maps], 1),
    "attention-shares": ([Plot, Plot], 2),
    "saliency": ([Plot, Plot, Maps], 2),
    "residuals": ([HeatMap, Plot, Plot], 2),
    "residual-cka": ([HeatMap, Plot], 1),
    "receptive-field": ([Maps, Plot], 1),
    "localisation": ([Maps, Plot], 1),
    "position-audit": ([Plot, Plot], 2),
    "label-free": ([Plot, Plot], 2),
    "token-probes": ([Maps, Plot], 1),
    "locality": ([Plot], 0),
    "inspect": ([Maps, Maps], 0),
}
"""The kinds of figures of each analysis, and how many of them need no arrays."""


@cache
def found(task, backbones=("mini-dino", "mini-mae"), depth=5, heads=3):
    rows = records(task, {name: TWO[name] for name in backbones}, depth=depth, heads=heads)
    return frame(rows, compared("mini-dino") if task == "locality" else [])


def page(task, folder: Path | None, *facts):
    """A page of one analysis alone, without provenance."""
    analyses = Board.of(found(task, *facts), "mini", arrays=folder).analyses
    (analysis,) = analyses.groups
    evidence = Evidence(analysis, analyses.backbones, analyses.arrays)
    return Page("mini.inside", "", tuple(analysis_blocks(evidence)))


@cache
def drawn_page(task, folder):
    """The page of the two backbones, made once for all tests that look at it."""
    return page(task, folder)


def pictures(page):
    return [block for block in page.blocks if isinstance(block, Picture)]


def words(page):
    return " ".join(
        "".join(piece for piece in block.pieces if isinstance(piece, str))
        for block in page.blocks
        if isinstance(block, Text)
    )


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    for task in metrics():
        plant(folder, task, TWO, **SIZES)
    return folder


def test_every_drawing_is_tested():
    assert DRAWINGS.keys() == PICTURES.keys() == metrics().keys()


@pytest.mark.parametrize("task", PICTURES)
def test_an_analysis_is_drawn_from_its_records_and_arrays(task, planted):
    drawn = pictures(drawn_page(task, planted))
    assert [type(one) for one in drawn] == PICTURES[task][0]
    names = [one.name for one in drawn]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(rf"{task}\.{DATASET}\.standard\.[\w.-]+", name) for name in names)
    by_kind = {(type(one), getattr(one, "kind", ""), getattr(one, "shared", False)): one for one in drawn}
    for one in by_kind.values():
        text = svg_file(one)
        assert ET.fromstring(text) is not None
        assert len(text) < 60_000


@pytest.mark.parametrize("task", PICTURES)
def test_without_arrays_the_page_says_what_it_leaves_out(task):
    without, (kinds, of_records) = page(task, None), PICTURES[task]
    assert len(pictures(without)) == of_records
    says = "cannot be drawn: their arrays are not beside the records."
    assert (says in words(without)) == (of_records < len(kinds))
    assert markdown_page(without)


@pytest.mark.parametrize("task", PICTURES)
def test_one_head_of_one_layer_of_one_backbone_is_drawn(task, tmp_path):
    plant(tmp_path, task, {"mini-dino": "DINO"}, depth=1, heads=1, grid=2)
    drawn = pictures(page(task, tmp_path, ("mini-dino",), 1, 1))
    assert [type(one) for one in drawn] == PICTURES[task][0]
    assert all(picture_spec(each, ["mini-dino"]) for each in drawn)


@pytest.mark.parametrize("task", PICTURES)
def test_arrays_of_holes_and_of_other_shapes_break_nothing(task, tmp_path):
    def key(name):
        pair = (name, "mini-resnet") if task == "locality" else (name,)
        return tmp_path / scored_path(f"{task}.{DATASET}.standard", *pair, ending="npz")

    holes = {
        name: np.full_like(one, np.nan) if one.dtype.kind == "f" else one
        for name, one in arrays(task, **SIZES).items()
    }
    if holes:
        write_arrays(holes, key("mini-dino"))
        write_arrays({name: one.flatten()[:1] for name, one in holes.items()}, key("mini-mae"))
    drawn = page(task, tmp_path)
    text = page_html(drawn)
    assert "nan" not in re.sub(r'href="[^"]*"', "", text).lower()


def test_a_file_that_is_no_archive_counts_as_missing(tmp_path):
    path = tmp_path / scored_path(f"localisation.{DATASET}.standard", "mini-dino", ending="npz")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no archive")
    plant(tmp_path, "localisation", {"mini-mae": "MAE"}, **SIZES)
    drawn = page("localisation", tmp_path)
    assert "Maps of tokens of mini-dino cannot be drawn" in words(drawn)
    assert {one.row for one in pictures(drawn)[0].maps} == {"mini-mae"}


def test_distances_of_a_family_share_a_panel_over_normalised_depth():
    facts = {"mini-fs": "FS", "mini-fs64": "FS", "mini-mae": "MAE"}
    deep, flat = (records("attention-distance", facts, depth=depth, heads=1) for depth in (8, 4))
    rows = [one for one in deep if one.backbone != "mini-fs64"] + [
        one for one in flat if one.backbone == "mini-fs64"
    ]
    _, families, *_ = pictures(inside_page(Board.of(frame(rows), "mini")))
    assert (set(families.frame["scale"]), families.x) == ({"attention-distance"}, "block / depth")
    panels = families.frame.groupby("panel")["series"].agg(set).to_dict()
    assert panels == {"FS": {"mini-fs", "mini-fs64"}, "MAE": {"mini-mae"}}
    of_flat = families.frame[families.frame["series"] == "mini-fs64"]
    assert of_flat["x"].tolist() == [0.25, 0.5, 0.75, 1]
    assert len(pictures(page("attention-distance", None))) == 3  # no family has two


def test_sorted_heads_are_of_the_two_lowest_and_highest_blocks():
    _, ordered, _ = pictures(page("attention-distance", None))
    of_one = ordered.frame[ordered.frame["panel"] == "mini-dino"]
    assert list(dict.fromkeys(of_one["series"])) == [
        *("lowest block", "second lowest", "second highest", "highest block")
    ]
    assert of_one["x"].tolist() == [1, 2, 3] * 4
    assert all(np.diff(rows["y"]).min() > 0 for _, rows in of_one.groupby("series"))


def test_maps_of_every_head_and_block_are_framed_by_the_kind_of_the_head(planted):
    cls, one, aligned, *_ = pictures(drawn_page("attention-maps", planted))
    kept = arrays("attention-maps", seed=0, **SIZES)
    for wall, values in (
        (cls, kept["cls_map"][:, :, 1:].reshape(5, 3, 4, 4)),
        (one, kept["sample_heads"]),
        (aligned, kept["aaam"]),
    ):
        drawn = {(small.panel, small.row, small.column): small for small in wall.maps}
        assert len(drawn) == len(wall.maps) == 2 * 3 * 5
        for block, head in np.ndindex(5, 3):
            small = drawn["mini-dino", str(head + 1), str(block + 1)]
            assert np.array_equal(small.values, values[block, head])
            assert small.kind == kept["class"][block, head]
        assert wall.kinds == ("strict", "offset", "axial", "soft", "global")


def test_an_example_of_each_kind_is_the_most_concentrated_head(planted):
    drawn = drawn_page("attention-maps", planted)
    examples = pictures(drawn)[3]
    kept = arrays("attention-maps", seed=0, **SIZES)
    spread = np.square(kept["aaam"]).sum(axis=(2, 3))
    for small in examples.maps[:5]:
        of_kind = np.where(kept["class"] == small.column, spread, np.nan)
        best = np.nanargmin(of_kind) if small.column == "global" else np.nanargmax(of_kind)
        block, head = np.unravel_index(best, spread.shape)
        assert np.array_equal(small.values, kept["aaam"][block, head])
        assert f"3 ({block + 1}.{head + 1})" in markdown_page(drawn)


def test_kinds_of_heads_are_those_of_the_analysis():
    assert tuple(HEADS) == ("strict", "offset", "axial", "soft", "global")
    assert set(HEADS) == set(get_args(HeadClass))


def test_a_wall_of_a_large_network_has_evenly_spaced_blocks_and_heads_and_says_so(tmp_path):
    plant(tmp_path, "attention-maps", {"mini-dino": "DINO"}, depth=40, heads=24, grid=4)
    drawn = page("attention-maps", tmp_path, ("mini-dino",), 40, 24)
    cls = pictures(drawn)[0]
    heads, blocks = (
        [*dict.fromkeys(getattr(small, side) for small in cls.maps)] for side in ("row", "column")
    )
    assert (len(heads), len(blocks), len(cls.maps)) == (16, 24, 16 * 24)
    assert (heads[0], heads[-1], blocks[0], blocks[-1]) == ("1", "24", "1", "40")
    assert "Of more than 24 blocks or 16 heads, evenly spaced ones are shown." in words(drawn)
    few = Wall(np.ones((40, 4, 2, 2)), tuple("abcd"), "places").maps("")
    assert len({small.column for small in few}) == 12  # of few rows, so that maps are large


@pytest.mark.parametrize(("grid", "side"), [(4, 7), (8, 15), (14, 15), (16, 15), (28, 15), (37, 15)])
def test_aligned_maps_are_cut_around_the_query(tmp_path, grid, side):
    plant(tmp_path, "attention-maps", {"mini-dino": "DINO"}, depth=2, heads=2, grid=grid)
    key = tmp_path / scored_path(f"attention-maps.{DATASET}.standard", "mini-dino", ending="npz")
    own = arrays("attention-maps", depth=2, heads=2, grid=grid)
    own["aaam"] = np.zeros_like(own["aaam"])
    own["aaam"][:, :, grid - 1, grid - 1] = 1
    write_arrays(own, key)
    small = pictures(page("attention-maps", tmp_path, ("mini-dino",), 2, 2))[2].maps[0]
    assert small.values.shape == (side, side)
    assert np.argwhere(small.values > 0).tolist() == [[side // 2, side // 2]]


def test_single_images_stand_by_depth(planted):
    gallery = pictures(drawn_page("attention-maps", planted))[-1]
    kept = arrays("attention-maps", seed=0, **SIZES)
    means, single = gallery.maps[:10], gallery.maps[10:]  # of two backbones at five depths
    assert {one.panel for one in means} == {"mean of all images"}
    average = kept["cls_map"][4].mean(axis=0)[-means[4].values.size :]  # of heads; the patches come last
    assert np.allclose(means[4].values.ravel(), average)
    assert [one.column for one in single[:6]][-2:] == ["last", "rollout"]
    assert np.array_equal(single[4].values, kept["sample_cls"][0, 4])
    assert np.array_equal(single[5].values, kept["sample_rollout"][0, 4])
    assert list(gallery.images) == ["mean of all images", "image 1", "image 2"]


def test_receptive_fields_of_all_places_are_drawn(planted):
    fields, _ = pictures(drawn_page("receptive-field", planted))
    kept = arrays("receptive-field", seed=0, **SIZES)["erf"]
    drawn = {(small.panel, small.row, small.column): small.values for small in fields.maps}
    assert len(drawn) == 2 * 2 * 5
    roots = np.sqrt(kept).reshape(5, 2, 16, 2, 16, 2).mean(axis=(3, 5))
    assert np.allclose(drawn["mini-dino", "mid", "5"], roots[4, 1])


def test_networks_of_other_sizes_have_walls_of_their_own(tmp_path):
    plant(tmp_path, "receptive-field", {"mini-dino": "DINO"}, **SIZES)
    plant(tmp_path, "receptive-field", {"mini-mae": "MAE"}, depth=3, heads=3, grid=4)
    *walls, _ = pictures(page("receptive-field", tmp_path))
    assert [{small.panel for small in wall.maps} for wall in walls] == [{"mini-dino"}, {"mini-mae"}]
    assert [wall.name.rsplit("-", 1)[1] for wall in walls] == ["5x2", "3x2"]


def test_ratios_are_tokens_by_blocks_with_the_class_token_on_top(planted):
    heat = pictures(drawn_page("residuals", planted))[0]
    kept = arrays("residuals", seed=0, **SIZES)["ratio"]
    assert [one.title for one in heat.panels] == [
        f"{name}\n{half}" for name in TWO for half in ("attention", "mlp")
    ]
    assert np.allclose(heat.panels[1].values, kept[:, 1].T)
    assert heat.panels[0].first == (0, 1)
    assert heat.span == (0.0, 10.0)


def test_cka_of_residuals_is_that_of_patches(planted):
    heat = pictures(drawn_page("residual-cka", planted))[0]
    assert np.allclose(heat.panels[1].values, arrays("residual-cka", **SIZES)["cka"][1, 1, 0])
    assert (heat.x, heat.y) == ("block of what is added", "block of what skips")


def test_tokens_are_maps_of_their_patches(planted):
    tokens = pictures(drawn_page("localisation", planted))[0]
    assert list(dict.fromkeys(one.panel for one in tokens.maps)) == [
        *("token in the corner", "token at the upper edge", "token in the middle")
    ]
    middle = next(one for one in tokens.maps if one.panel == "token in the middle")
    assert np.unravel_index(middle.values.argmax(), middle.values.shape) == (2, 2)


def test_accuracies_stand_in_the_places_of_their_tokens(planted, tmp_path):
    kept = arrays("token-probes", seed=0, **SIZES)
    maps = pictures(drawn_page("token-probes", planted))[0].maps
    assert np.array_equal(maps[0].values, kept["token_accuracy"][0].reshape(4, 4))
    some = {
        "token_accuracy": np.array([[1.0, 2, 3, np.nan]]),
        "token": np.array([[[0, 0], [0, 6], [6, 0], [-1, -1]]]),
    }
    write_arrays(some, tmp_path / scored_path(f"token-probes.{DATASET}.standard", "mini-dino", ending="npz"))
    one = pictures(page("token-probes", tmp_path))[0].maps[0].values
    assert one[0].tolist() == [1, 2]
    assert one[1, 0] == 3
    assert np.isnan(one[1, 1])


def test_heads_and_a_convnet_are_drawn_from_near_to_far_and_told(planted):
    drawn = drawn_page("locality", planted)
    (windows,) = pictures(drawn)
    first = windows.frame[windows.frame["series"] == "block 1 of the ConvNet"]
    assert first["x"].tolist() == [2, 3, 4, 5, 9]
    assert set(windows.frame["panel"]) == {"mini-dino, mini-resnet"}
    text = markdown_page(drawn)
    assert "| mini-dino  | mini-resnet" in text
    assert "-0.700" in text
    assert "-0.900" not in text  # of single layers, which are in the records


def test_numbers_of_whole_backbones_have_a_table_of_their_own(planted):
    text = markdown_page(drawn_page("inspect", planted))
    assert "<details><summary>Numbers of each backbone as a whole</summary>" in text
    assert "|   filter-rank |   position-distance-rho |" in text
    assert "| mini-dino  |         0.500 |                   0.500 |" in text
    assert "of every layer" not in text
