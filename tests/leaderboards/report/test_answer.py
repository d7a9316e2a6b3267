from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import rankdata

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.ranks import mean_ranks
from layerboard.leaderboards.findings.answers import answers_of, fewest_choices
from layerboard.leaderboards.findings.facts import Facts
from layerboard.leaderboards.report.answer import answer_html
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.page import report_page
from tests.leaderboards.builder import frame
from tests.leaderboards.report.boards import DAVIS, HOSTILE, KNN, SCORES, content, scored, small
from tests.leaderboards.shown import bounded


@cache
def found():
    """What the page of the small records holds; it takes longer than to write a card."""
    return content()


def card(**changes):
    """The first card, of an answer that is changed, below the verdict."""
    one = replace(answers_of(found().board)[0], **changes)
    return answer_html([one], found())


def test_a_lead_is_called_one_only_where_all_were_compared():
    assert "shown to be better than the 3 others (95 %)" in card(compared=3)
    assert "better than" not in card(compared=2, untested=("mini-fs",))
    assert "not compared with mini-fs: per-item scores" in card(compared=2, untested=("mini-fs",))
    assert "better than" not in card(compared=0)
    assert "not compared with the other backbones" in card(compared=0)


def test_who_cannot_be_told_from_the_best_is_named():
    text = card(compared=3, rivals=("mini-clip", HOSTILE), layers=(1, 2), loss=2.14)
    below = "at most 2.1 points below the best (95 %); "
    assert f"{below}<strong>not shown to be worse:</strong> mini-clip, &lt;/script&gt;" in text
    assert "its layers 1, 2 not shown to be worse" in text
    assert "better than" not in text
    untold = card(compared=0, rivals=("mini-clip",))  # it has the same score
    assert "<strong>not shown to be worse:</strong> mini-clip" in untold
    assert "points below" not in untold
    assert "all 3 others" in card(compared=3, rivals=("mini-clip", "mini-fs", HOSTILE))


def test_the_pooling_stands_beside_the_layer_and_a_cost_is_told_where_it_is_known():
    text = card()
    assert "layer 3 of 3, cls</p>" in text
    assert "64-dimensional vectors, about 600 M parameters" in text
    assert " ms an image" not in text
    assert "4.00 ms an image on a card" in card(backbone="mini-clip", layer=2)


def test_the_verdict_names_few_layers_and_what_one_alone_would_lose():
    # each backbone's scores in davis are half of those in knn, in reverse
    losses = {
        KNN: {("mini-dino", 3): (1.25, True), "mini-clip": (3.0, False)},
        DAVIS: {("mini-dino", 1): (2.54, True), ("mini-dino", 3): (20.04, False)},
    }
    report = replace(found(), board=bounded(Board.of(small(), "mini"), losses))
    for text in (answer_html(answers_of(each.board), each) for each in (report, found())):
        assert "Take <strong>mini-dino, layer 3 (cls)</strong> (about 600 M parameters up to it)" in text
        assert "; for video mask propagation its <strong>layer 1 (grid)</strong>." in text
    text = answer_html(answers_of(report.board), report)
    assert "Each is at most 2.5 points below the best compared of its tasks (95 %). " in text
    lost = dict.fromkeys(small()["backbone"], (30.0, False))
    every = bounded(Board.of(small(), "mini"), {key: lost | some for key, some in losses.items()})
    assert "below the best measured of" in answer_html(answers_of(every), replace(report, board=every))
    assert "The first one alone for everything may lose up to 20.0 points (video mask propagation)" in text


def test_what_was_not_compared_is_said_to_be_taken_by_its_score_alone():
    text = answer_html(answers_of(found().board), found())
    assert "By scores alone: how far they may be below the best was not tested." in text
    assert "points below" not in text
    assert "may lose up to" not in text


@pytest.mark.parametrize("maybe", [False, True])
def test_a_layer_that_may_be_the_best_in_two_tasks_is_taken_for_both(maybe):
    davis = {"task": "davis", "dataset": "mini-davis", "metric": "J&F"}
    rows = frame(scored("mini-fs", "FS", [50.0, 60.0]), scored("mini-fs", "FS", [21.0, 20.0], **davis))
    losses = {
        KNN: {("mini-fs", 1): (12.0, False), ("mini-fs", 2): (0.5, True)},
        DAVIS: {("mini-fs", 1): (0.75, True), ("mini-fs", 2): (1.5, maybe)},
    }
    choices = fewest_choices(answers_of(bounded(Board.of(rows), losses)))
    assert [each.layer for each in choices] == ([2] if maybe else [2, 1])
    assert sum(choices[0].losses.values()) == (2.0 if maybe else 0.5)


def test_toys_are_named_as_toys_and_own_images_by_their_folder():
    suite = "images-photos-0a1b2c3d"
    board = Board.of(frame(scored("mini-fs", "FS", [50.0, 60.0], suite=suite)), suite)
    text = report_page(report_of(board, {"mini-fs": Facts(toy=True)}))
    assert "1 small network trained on synthetic images; 2 layers in all, each on 1 task." in text
    assert "<title>photos: which backbone, which layer? (layerboard)</title>" in text


def test_mean_ranks_are_those_of_the_scores_without_an_interval():
    columns = found().board.columns
    scores = np.array([max(values) for _, values in SCORES.values()])
    ranks = mean_ranks(columns)
    assert [ranks[name] for name in SCORES] == [*rankdata(-scores)]
    assert mean_ranks(columns[:1]) == {}
    page = " ".join(report_page(found()).split())
    assert "Mean rank over all tasks, 1 is the best; the ranks" in page
