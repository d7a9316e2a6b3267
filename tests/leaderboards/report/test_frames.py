import math
from dataclasses import replace

import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.report.content import (
    FIRST,
    MAYBE,
    SCORES,
    UNTESTED,
    WORSE,
    report_of,
    shown_poolings,
)
from layerboard.leaderboards.report.views import view_named
from tests.leaderboards.builder import floor, frame, hits, layers, scored
from tests.leaderboards.findings.test_reproduce import BEST as BEST_BLOCK
from tests.leaderboards.report.boards import DAVIS, FACTS, HOSTILE, KNN, small
from tests.leaderboards.report.boards import SCORES as VALUES
from tests.leaderboards.shown import bounded


def board(records=None, losses=None, published=()):
    records = small() if records is None else records
    return report_of(bounded(Board.of(records, published=published), {KNN: losses or {}}), FACTS)


def test_the_best_layers_stand_highest_first_with_what_the_data_tell():
    losses = {"mini-dino": (1.0, True), "mini-clip": (2.0, True), "mini-fs": (3.0, False)}
    best = board(losses=losses).best
    own = best[best["column"] == KNN]
    assert [*own["backbone"]] == ["mini-dino", "mini-clip", "mini-fs", HOSTILE]
    assert [*own["group"]] == [FIRST, MAYBE, WORSE, UNTESTED]
    assert [*own["layer"]] == [3, 2, 3, 3]
    assert [*own["value"]] == [62.25, 61.5, 60.1234, 12.0]
    assert [*own["held_out"]] == pytest.approx([61.75, 61.0, 59.6234, 11.5])
    assert [*own["optimism"]] == pytest.approx([0.5] * 4)
    assert set(best.loc[best["column"] == DAVIS, "group"]) == {FIRST, UNTESTED}


def test_every_layer_is_there_and_the_best_is_marked():
    found = board().scores
    assert {*SCORES} < {*found.columns}
    assert len(found) == 2 * len(VALUES) * 3
    own = found[(found["column"] == KNN) & (found["backbone"] == "mini-clip")]
    assert [*own["layer"]] == [1, 2, 3]
    assert [*own["value"]] == [20.0, 61.5, 40.0]
    assert [*own["place"]] == ["", "best", ""]
    assert [*own["ci_high"] - own["ci_low"]] == [2.0] * 3
    assert [*own["score"]] == ["20.0 ± 1.0", "61.5 ± 1.0", "40.0 ± 1.0"]
    assert [*own["relative"]] == [1 / 3, 2 / 3, 1.0]
    assert [*own["parameters"]] == [1.0, 2.0, 3.0]  # millions


def test_facts_are_known_or_empty_and_the_floor_is_no_backbone():
    found = board()
    rows = {row["name"]: row for row in found.backbones.to_dict("records")}
    assert set(rows) == set(VALUES)
    assert (rows["mini-clip"]["licence"], rows["mini-clip"]["parameters"]) == ("MIT", 8e7)
    assert rows[HOSTILE]["supervision"] == ""
    assert math.isnan(rows[HOSTILE]["parameters"])
    assert [*found.measures["floor"]] == [3.0, 1.5]


def test_a_number_of_others_stands_beside_its_column_and_charts_draw_the_rows_of_what_is_chosen():
    mine = {"source": "mine", "backbone": "mini-clip", "dataset": "mini-imagenet", "protocol": "standard"}
    other = replace(BEST_BLOCK, **mine, value=60.0, input_size=64)
    scores = board(published=[other]).scores
    [row] = scores[scores["place"] == "published"].to_dict("records")
    assert (row["column"], row["backbone"], row["layer"], row["value"]) == (KNN, "mini-clip", 3.0, 60.0)
    assert len(scores) == 1 + len(board().scores)
    ranking, panels = (view_named(name) for name in ("ranking", "panels"))
    assert {*ranking.rows(scores, task=KNN)["column"]} == {KNN}
    assert [*ranking.rows(scores, task=KNN)["place"]] == ["best"] * len(VALUES) + ["published"]
    assert len(panels.rows(scores, measure=KNN)) == 3 * len(VALUES)


def test_records_without_scores_make_an_empty_board():
    found = board(frame(floor([1.0, 2.0])))
    assert found.best.empty
    assert {*SCORES} < {*found.scores.columns}


def test_the_shown_poolings_a_backbone_stand_side_by_side_where_several_were_run():
    own, mean = layers([50.0, 60.0, 55.0]), layers([40.0, 45.0, 70.0], pooling="mean", primary=False)
    other = layers([30.0, 20.0, 10.0], backbone="mini-clip", family="CLIP")
    found = board(frame(own, mean, other))
    assert shown_poolings(found.board.columns[0]) == ["", "cls", "mean"]
    curves, ranking = (view_named(name) for name in ("curves", "ranking"))
    heights = {
        vectors: curves.rows(found.scores, measure=KNN, vectors=vectors)["value"].tolist()
        for vectors in ("", "cls", "mean")
    }
    assert heights["mean"] == [40.0, 45.0, 70.0]
    assert heights["cls"] == [50.0, 60.0, 55.0, 30.0, 20.0, 10.0]
    assert heights[""] == [40.0, 45.0, 70.0, 30.0, 20.0, 10.0]
    best = ranking.rows(found.scores, task=KNN, vectors="cls")
    assert best[["backbone", "value"]].to_numpy().tolist() == [["mini-dino", 60.0], ["mini-clip", 30.0]]
    assert [*best["group"]] == [FIRST, UNTESTED]  # without measurements of items
    assert [*found.best["value"]] == [70.0, 30.0]
    assert shown_poolings(board().board.columns[0]) == [""]


def test_of_one_kind_of_vectors_backbones_are_compared_with_the_best_of_that_kind(tmp_path):
    """The best of all, of means alone, is not there: nothing is hollow because of it."""
    records = [
        *scored(tmp_path, "mini-fs", {"mean": [hits(99)]}),
        *scored(tmp_path, "mini-dino", {"cls": [hits(60)], "mean": [hits(20)]}),
        *scored(tmp_path, "mini-clip", {"cls": [hits(58)]}),
        *scored(tmp_path, "mini-mae", {"cls": [hits(5)]}),
    ]
    found = report_of(Board.of(frame(records), items=tmp_path), FACTS)
    ranking, (column,) = view_named("ranking"), (each.heading for each in found.board.columns)
    best = ranking.rows(found.scores, task=column)
    assert [*best["group"]] == [FIRST, WORSE, WORSE, WORSE]
    of_cls = ranking.rows(found.scores, task=column, vectors="cls")
    assert [*of_cls["backbone"]] == ["mini-dino", "mini-clip", "mini-mae"]
    assert [*of_cls["group"]] == [FIRST, MAYBE, WORSE]
    assert 0 <= of_cls["loss"].iloc[1] < 20 < of_cls["loss"].iloc[2]
