from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import rankdata

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Side
from layerboard.leaderboards.board.ranks import mean_ranks
from layerboard.leaderboards.findings.answers import answers_of, fewest_choices
from layerboard.leaderboards.findings.facts import Facts
from layerboard.leaderboards.report.answer import answer_html
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.page import report_page
from tests.leaderboards.builder import frame
from tests.leaderboards.report.boards import HOSTILE, SCORES, content, scored


@cache
def found():
    """What the page of the small records holds; it takes longer than to write a card."""
    return content()


def card(**changes):
    """The first card, of an answer that is changed, below the verdict."""
    one = replace(answers_of(found().board)[0], **changes)
    return answer_html([one], found())


def test_a_lead_is_called_one_only_where_all_were_compared():
    assert "better than the 3 others (95 %)" in card(compared=3)
    assert "better than" not in card(compared=2, untested=("mini-fs",))
    assert "not compared with mini-fs: per-item scores" in card(compared=2, untested=("mini-fs",))
    assert "better than" not in card(compared=0)
    assert "not compared with the other backbones" in card(compared=0)


def test_who_cannot_be_told_from_the_best_is_named():
    text = card(compared=3, rivals=("mini-clip", HOSTILE), layers=(1, 2))
    assert "<strong>tied with the best:</strong> mini-clip, &lt;/script&gt;" in text
    assert "tied with its layers 1, 2" in text
    assert "better than" not in text
    assert "all 3 others" in card(compared=3, rivals=("mini-clip", "mini-fs", HOSTILE))


def test_another_pooling_and_a_cost_are_told_where_they_are_known():
    text = card(others=(Side("mini-dino", 2, 3, "mean", 64.04),))
    assert "64.0 % from another pooling: mean of the patch tokens, layer 2" in text
    assert "64-dimensional vectors, about 600 M parameters" in text
    assert " ms an image" not in text
    assert "4.00 ms an image on a card" in card(backbone="mini-clip", layer=2)


def test_the_verdict_names_few_layers_and_what_one_alone_would_lose():
    text = answer_html(answers_of(found().board), found())
    # each backbone's scores in davis are half of those in knn, in reverse
    assert "Take <strong>mini-dino, layer 3</strong> (about 600 M parameters up to it)" in text
    assert "; for video mask propagation its <strong>layer 1</strong>." in text
    assert "The first one alone for everything would lose up to 18.6 points (video mask propagation)" in text


@pytest.mark.parametrize("tied", [False, True])
def test_a_layer_that_is_tied_in_two_tasks_is_taken_for_both(tied):
    davis = {"task": "davis", "dataset": "mini-davis", "metric": "J&F"}
    rows = frame(scored("mini-fs", "FS", [50.0, 60.0]), scored("mini-fs", "FS", [21.0, 20.0], **davis))
    layer = (rows["task"] == "davis") & (rows["layer"] == 2)
    choices = fewest_choices(answers_of(Board.of(rows.assign(tied=layer & tied))))
    assert [each.layer for each in choices] == ([2] if tied else [2, 1])
    assert sum(choices[0].losses.values()) == (1.0 if tied else 0.0)


def test_toys_are_named_as_toys_and_own_images_by_their_folder():
    suite = "images-photos-0a1b2c3d"
    board = Board.of(frame(scored("mini-fs", "FS", [50.0, 60.0], suite=suite)), suite)
    text = report_page(report_of(board, {"mini-fs": Facts(toy=True)}))
    assert "1 small network trained on synthetic images; 2 layers in all, each on 1 task." in text
    assert "<title>photos: which backbone, which layer? (layerboard)</title>" in text


def test_mean_ranks_are_those_of_the_scores_and_lie_in_their_intervals():
    columns = found().board.columns
    scores = np.array([max(values) for _, values in SCORES.values()])
    ranks = mean_ranks(columns)
    assert [ranks[name].value for name in SCORES] == [*rankdata(-scores)]
    assert all(rank.low <= rank.value <= rank.high for rank in ranks.values())
    assert (ranks[HOSTILE].low, ranks[HOSTILE].high) == (4.0, 4.0)  # far below all others
    assert ranks["mini-dino"].high > 1.0  # 62.25 and 61.5, each ± 1
    assert mean_ranks(columns[:1]) == {}
