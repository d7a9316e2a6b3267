"""Scores by kind of keypoints, in the order of kinds, at the best layer."""

import math

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.record import Record
from layerboard.leaderboards.sections.layers import layer_blocks
from layerboard.leaderboards.sections.tables import KIND_NAMES, kind_suffix
from tests.leaderboards.builder import frame, layers
from tests.leaderboards.shown import render_blocks

SPAIR = {"task": "spair", "dataset": "mini-spair", "pooling": "grid", "metric": "PCK@0.1"}


def section(*groups: list[Record]) -> str:
    return render_blocks(layer_blocks(Board.of(frame(*groups))))


def kind(name: str, values: list[float]) -> list[Record]:
    """Scores of a kind, layer by layer."""
    return layers(values, **{**SPAIR, "metric": f"PCK@0.1 {name}", "primary": False})


def test_azimuths_stand_between_levels_and_geometry_aware_points() -> None:
    assert KIND_NAMES[-7:] == (
        "occlusion both",
        *(f"azimuth {eighths}" for eighths in range(5)),
        "geometry-aware",
    )
    assert kind_suffix("spair", "PCK@0.1 azimuth 3") == "azimuth 3"
    assert kind_suffix("anomaly", "AU-PRO 0.05 bolt") == kind_suffix("anomaly", "AUROC bolt") == "bolt"
    assert kind_suffix("anomaly", "AU-PRO 0.05") == kind_suffix("mine:TASK", "AUROC bolt") == ""
    text = section(
        layers([30.0, 45.0], **SPAIR),
        kind("geometry-aware", [1.0, 21.0]),
        kind("azimuth 4", [2.0, 22.0]),
        kind("azimuth 0", [3.0, 23.0]),
        kind("viewpoint easy", [4.0, 24.0]),
    )
    table = text[text.index("By kind") :]
    assert [table.index(each) for each in ("24.0", "23.0", "22.0", "21.0")] == sorted(
        table.index(each) for each in ("21.0", "22.0", "23.0", "24.0")
    )
    assert "how many eighths of a turn" in table


def test_azimuths_are_explained_only_where_there_are_some() -> None:
    text = section(layers([30.0], **SPAIR), kind("viewpoint easy", [3.0]))
    assert "By kind" in text
    assert "eighths of a turn" not in text


def test_thresholds_are_those_of_the_best_layer() -> None:
    of_things = {"task": "instances", "dataset": "mini-things", "metric": "recall@1"}
    further = {**of_things, "primary": False}
    text = section(
        layers([30.0, 45.0], **of_things),
        layers([80.0, 60.0], **{**further, "metric": "mAP"}),
        layers([0.98765, 0.87654], **{**further, "metric": "cosine at precision 0.99"}),
        layers([99.0, 12.0], **{**further, "metric": "recall at precision 0.99"}),
    )
    _, every, alone = text.partition("At the best layer of recall@1")
    assert every
    lines = [line for line in alone.splitlines() if "at precision" in line]
    assert [line.split("|")[1:3] for line in lines] == [
        [" cosine at precision 0.99 ", "       0.877 "],
        [" recall at precision 0.99 ", "        12.0 "],
    ]
    assert "at precision" not in text[text.index("All metrics") : text.index("At the best layer of")]


def test_each_of_several_numbers_has_its_own_error_and_no_row_of_all() -> None:
    of_numbers = {"task": "regress", "dataset": "photos", "metric": "R2"}
    further = {**of_numbers, "primary": False}
    text = section(
        layers([30.0, 45.0], **of_numbers),
        layers([20.0, 40.0], **{**further, "metric": "R2 age"}),
        layers([9.0, 7.5], **{**further, "metric": "MAE age"}),
        layers([8.0, 6.5], **{**further, "metric": "MAE count"}),
        layers([math.nan, math.nan], **{**further, "metric": "MAE"}),
    )
    _, _, alone = text.partition("At the best layer of R2:")
    alone, _, kinds = alone.partition("R2 by kind")
    lines = [line.split("|")[1:3] for line in alone.splitlines() if "MAE" in line]
    assert [[cell.strip() for cell in line] for line in lines] == [["MAE age", "7.5"], ["MAE count", "6.5"]]
    assert "40.0" in kinds
