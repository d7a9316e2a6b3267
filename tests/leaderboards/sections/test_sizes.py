"""Scores against the input size: a table of their own."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import BoardBackbone, backbones_of
from layerboard.leaderboards.findings.reproduce import reproduce
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.sections.sizes import AtSize, by_size, size_columns
from layerboard.zoo.spec import NameParts
from tests.leaderboards.builder import floor, frame, layers, measured
from tests.leaderboards.findings.test_reproduce import README, final
from tests.leaderboards.shown import render_page

HEADING = "## Score against input size"
DAVIS = {"task": "davis", "dataset": "mini-davis", "pooling": "grid", "metric": "J&F"}
CEILING = {**DAVIS, "metric": "J&F ceiling", "primary": False}
LARGE = {"backbone": "mini-dino@128px", "input_size": 128}
NEAR = {"backbone": "mini-clip@126px", "family": "CLIP", "input_size": 126}
FLOOR = {"backbone": "mini-random", "input_size": 64}

RANDOM = np.random.default_rng(0)
SMALL = 100.0 * (RANDOM.random(300) < 0.3)
LARGER = np.where(RANDOM.random(300) < 0.2, 100.0, SMALL)


def records() -> pd.DataFrame:
    """Two backbones at two sizes each, of which the larger ones nearly agree, and one at one size."""
    return frame(
        layers([20.0, SMALL.mean(), 10.0]),
        layers([LARGER.mean(), 30.0, 10.0], **LARGE),
        layers([40.0, 50.0], backbone="mini-clip", family="CLIP"),
        layers([40.0, 50.0], **NEAR),
        layers([40.0, 45.0], backbone="mini-fs", family="FS"),
        floor([3.0, 5.0], **FLOOR),
        floor([6.0, 8.0], backbone="mini-random@128px", input_size=128),
        layers([45.0], **DAVIS),
        layers([60.0], **DAVIS, **LARGE),
        layers([90.0], **CEILING),
        layers([95.0], **CEILING, **LARGE),
    )


@pytest.fixture
def items(tmp_path: Path) -> Path:
    key = task_key("knn", "mini-imagenet", "standard")
    for name, layer, values in (("mini-dino", 2, SMALL), ("mini-dino@128px", 1, LARGER)):
        write_items({(layer, "block", "cls"): measured(list(values))}, tmp_path / scored_path(key, name))
    return tmp_path


def test_the_best_layers_of_the_largest_and_the_smallest_are_paired(items: Path) -> None:
    found = {(one.column.task, one.backbone): one for one in by_size(Board.of(records(), items=items))}
    assert list(found) == [
        *(("knn", name) for name in ("mini-clip", "mini-dino", "mini-random")),
        ("davis", "mini-dino"),
    ]
    dino = found["knn", "mini-dino"]
    assert [(one.input_size, one.best and one.best.layer) for one in dino.sizes] == [(64, 2), (128, 1)]
    difference = LARGER - SMALL
    assert dino.gain.value == pytest.approx(difference.mean())
    error = 1.96 * difference.std() / len(difference) ** 0.5
    ends = [difference.mean() - error, difference.mean() + error]
    assert [dino.gain.low, dino.gain.high] == pytest.approx(ends, abs=0.8)
    assert [one.ceiling and one.ceiling.ceiling for one in found["davis", "mini-dino"].sizes] == [90.0, 95.0]
    assert not dino.same


def test_without_items_a_difference_has_no_interval_and_a_floor_has_none(tmp_path: Path) -> None:
    found = {
        one.backbone: one for one in by_size(Board.of(records(), items=tmp_path)) if one.column.task == "knn"
    }
    gain = found["mini-dino"].gain
    assert gain is not None
    assert gain.value == pytest.approx(LARGER.mean() - SMALL.mean())
    assert np.isnan([gain.low, gain.high]).all()
    assert math.isnan(found["mini-random"].gain.value)
    assert found["mini-random"].sizes == (
        AtSize("mini-random", 64, 4.0),
        AtSize("mini-random@128px", 128, 7.0),
    )
    assert found["mini-clip"].same


def test_sizes_that_nearly_agree_share_a_column(items: Path) -> None:
    found = by_size(Board.of(records(), items=items))
    assert size_columns(found) == ((64,), (126, 128))
    both = frame(layers([1.0], input_size=120, backbone="mini-dino@120px"), layers([2.0], **LARGE))
    assert size_columns([*found, *by_size(Board.of(both))]) == ((64,), (120, 126), (128,))


def test_the_page_has_one_table_of_them_and_each_size_is_a_row_elsewhere(items: Path) -> None:
    text = render_page(records(), "mini", items)
    section = text[text.index(HEADING) :].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line]
    assert rows[0] == ["column", "backbone", "64 px", "126 to 128 px", "largest less smallest"]
    cells = {(row[0], row[1]): row[2:] for row in rows[2:]}
    assert cells["knn top-1", "mini-clip"] == ["50.0 (2/2)", "50.0 (2/2), 126 px", "alike"]
    assert cells["knn top-1", "random floor"][:2] == ["4.0", "7.0, 128 px"]
    assert cells["davis J&F", "mini-dino"] == ["45.0 (1/1) of 90.0", "60.0 (1/1) of 95.0, 128 px", "+15.0"]
    assert "(" in cells["knn top-1", "mini-dino"][2]
    assert "mini-dino@128px" in text.split(HEADING)[0]
    assert "random floor@128px" in text


def test_no_table_where_every_backbone_has_one_size() -> None:
    assert HEADING not in render_page(frame(layers([1.0, 2.0])), "mini")
    assert HEADING not in render_page(frame(layers([1.0, 2.0], **LARGE)), "mini")
    apart = frame(layers([1.0]), layers([2.0], **LARGE, task="davis", metric="J&F"))  # no column has two
    assert HEADING not in render_page(apart, "mini")


def test_sizes_of_one_backbone_stand_together_from_the_smallest_on() -> None:
    names = ["mini-dino@1024px", "mini-dino", "mini-dino@448px", "mini-dino-b"]
    found = backbones_of(frame(*(layers([1.0], backbone=name) for name in names)))
    assert [one.name for one in found] == ["mini-dino", "mini-dino@448px", "mini-dino@1024px", "mini-dino-b"]
    assert BoardBackbone("random@448px", "random", False, 1).label == "random floor@448px"
    assert BoardBackbone("random", "random", False, 1).label == "random floor"


def test_only_a_size_is_taken_for_one() -> None:
    assert NameParts.of("dino-b16@448px") == ("dino-b16", 448, None, False)
    for name in ("dino-b16", "owner/name@448", "owner/name@1f0px", "@448px"):
        assert NameParts.of(name) == NameParts(name)


def test_published_numbers_stand_beside_the_size_that_they_name() -> None:
    sized = final(80.0, backbone=f"{README.backbone}@518px", input_size=518)
    rows = frame([final(76.1), sized])
    found = reproduce(rows, [README, replace(README, input_size=518, conditions="larger")])
    assert found["measured"].tolist() == [76.1, 80.0]
