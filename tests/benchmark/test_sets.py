"""Runs with sets of layers: beside the plain records, of the same forwards, never among them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.benchmark.passes.collectors import MIXED
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import is_set
from layerboard.leaderboards.sections.sets import blocks_of, set_gains
from tests.benchmark.runs import Tally, run
from tests.leaderboards.shown import write_pages

NUMBERS = ["value", "ci_low", "ci_high", "chosen", "held_out", "maybe_best", "n", "reason", "data"]
PLACE = ["backbone", "task", "dataset", "transform", "layer", "tap", "pooling", "metric"]
NAMES = ("knn", "davis", "spair", "segment")
BACKBONES = ("mini-fs", "mini-resnet")


class Fused:
    """One run with sets, and what it showed."""

    def __init__(self, place: Path, records: pd.DataFrame, tally: Tally) -> None:
        self.place, self.records, self.tally = place, records, tally
        self.sets = records[is_set(records)]
        self.plain = records[~is_set(records)]


@pytest.fixture(scope="module")
def made(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Fused:
    place = tmp_path_factory.mktemp("fused")
    with Tally().watching() as tally:
        records = run(place, BACKBONES, *NAMES, data=data, fuse=["last4", "pairs"], layers="10-12,9")
    return Fused(place, records, tally)


@pytest.mark.slow
def test_every_task_takes_the_sets_of_what_is_scored(made: Fused) -> None:
    taps = made.sets[made.sets["backbone"] == "mini-fs"].groupby("task")["tap"].agg(set).to_dict()
    expected = {"9+10+11+12", "9+10", "9+11", "9+12", "10+11", "10+12", "11+12"}
    assert taps == dict.fromkeys(NAMES, expected)
    assert (made.sets["layer"] == made.sets["tap"].str.rpartition("+")[2].astype(int)).all()
    scored = made.sets[made.sets["backbone"] == "mini-fs"]
    assert scored.loc[scored["primary"].astype(bool), "value"].between(0, 100).all()
    assert scored.loc[scored["primary"].astype(bool), "chosen"].notna().all()
    data = made.records.groupby(["task", "dataset"])["data"].nunique()
    assert (data == 1).all()  # sets are of the same images and the same truth


def test_layers_of_different_grids_are_a_reason(made: Fused) -> None:
    mixed = made.sets[(made.sets["backbone"] == "mini-resnet") & (made.sets["reason"] != "")]
    assert set(mixed["reason"]) <= {MIXED}
    assert "knn" not in {*mixed["task"]}  # vectors have no grid


def test_sets_take_no_further_forward_and_change_no_plain_number(made: Fused, data: Path) -> None:
    place = made.place / "plain"
    with Tally().watching() as tally:
        plain = run(place, ["mini-fs"], *NAMES, data=data, layers="9-12")
    assert tally.rows == {key: count for key, count in made.tally.rows.items() if key[0] == "mini-fs"}
    columns, fused = [*PLACE, *NUMBERS], made.plain[made.plain["backbone"] == "mini-fs"]
    ordered = [one.sort_values(PLACE).reset_index(drop=True)[columns] for one in (fused, plain)]
    pd.testing.assert_frame_equal(*ordered, check_exact=True)


def test_sets_are_ranked_with_nothing(made: Fused) -> None:
    assert not is_set(Board.of(made.records).scores).any()
    columns = ["backbone", "task", "dataset", "layer", "metric", "value"]
    best = [Board.of(records).best[columns].reset_index(drop=True) for records in (made.records, made.plain)]
    pd.testing.assert_frame_equal(*best)


def test_gains_are_paired_and_the_last_of_each_is_chosen_on_other_data(made: Fused) -> None:
    gains = [
        one
        for one in set_gains(Board.of(made.records, items=made.place / "out/items"))
        if one.best.backbone == "mini-fs"
    ]
    spair = {one.names[0]: one for one in gains if one.column.task == "spair"}
    assert [*spair] == ["last4", "best pair of 6", "chosen on other data, of 7"]
    four = spair["last4"]
    assert blocks_of(four.best) == (9, 10, 11, 12)
    assert four.gain.value == pytest.approx(four.best.score - four.plain.score)
    # these pairs share all their images, too few to vary; of other tasks all gains have intervals
    assert np.isnan([four.gain.low, four.gain.high]).all()
    for gain in (
        one.gain for one in gains if one.column.task != "spair" and not one.names[0].startswith("chosen")
    ):
        assert gain.low <= gain.value <= gain.high
    pairs = made.sets[(made.sets["task"] == "spair") & (made.sets["metric"] == "PCK@0.1")]
    pairs = pairs[(pairs["backbone"] == "mini-fs") & (pairs["tap"].str.count(r"\+") == 1)]
    assert spair["best pair of 6"].best.score == pairs["value"].max()
    for fair in (one for one in gains if one.names[0].startswith("chosen")):
        assert fair.plain.score == fair.column.held_out["mini-fs"].score
        assert fair.held_out.value == pytest.approx(fair.best.score - fair.plain.score, abs=0.5)


def test_the_page_has_a_table_of_its_own(made: Fused, tmp_path: Path) -> None:
    rows = made.records[made.records["task"] == "knn"]
    numbers, page = (path.read_text() for path in write_pages(rows, tmp_path, made.place / "out/items"))
    before, _, after = page.partition("## What sets of layers gain")
    assert "last4" not in before
    assert "| last4 " in after
    assert "| 9-12 " in after
    assert "9+10" not in numbers


def test_transformed_features_are_taken_together(data: Path, tmp_path: Path) -> None:
    options = {"data": data, "layers": "11,12", "fuse": "pairs", "transform": "whiten"}
    found = run(tmp_path, ["mini-fs"], "knn", "spair", **options)
    sets = found[is_set(found)]
    assert set(zip(sets["task"], sets["transform"], strict=True)) == {
        *(("knn", one) for one in ("", "whiten")),
        ("spair", ""),
    }
    first = sets[sets["primary"].astype(bool)].groupby("task")["value"].nunique()
    assert (first >= 1).all()
    _, page = (path.read_text() for path in write_pages(found, tmp_path / "pages", tmp_path / "out/items"))
    assert "| whiten " in page.partition("## What sets of layers gain")[2]
