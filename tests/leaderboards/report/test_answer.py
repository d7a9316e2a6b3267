from dataclasses import replace

import numpy as np
from scipy.stats import rankdata

from layerboard.leaderboards.answer.answer import answers_of
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.differences import mean_ranks
from layerboard.leaderboards.findings.facts import Facts
from layerboard.leaderboards.report.answer import answer_html, chart_words
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.page import report_page
from tests.leaderboards.builder import frame
from tests.leaderboards.report.boards import DAVIS, HOSTILE, KNN, SCORES, scored, small, usual, usual_page
from tests.leaderboards.shown import bounded


def card(best=None, **changes):
    """The only card, of an answer that is changed, with the verdict above it."""
    one = replace(answers_of(usual().board, usual().facts)[0], **changes)
    return answer_html([replace(one, best=replace(one.best, **best or {}))], usual())


def test_a_lead_is_called_one_only_where_all_were_compared():
    assert "shown to be better than the 3 others (95 %)" in card(untested=())
    some = card(untested=("mini-fs",))
    assert "better than" not in some
    assert "<p>1 not compared</p>" in some
    assert "not compared with mini-fs, without per-item scores" in some


def test_who_cannot_be_told_from_the_best_is_named():
    text = card({"loss": 2.14}, untested=(), rivals=("mini-clip", HOSTILE), layers=(1, 2))
    lost = "loses at most 2.2 points against the true best (95 %)"
    assert f"{lost}; not shown to be worse: mini-clip; &lt;/script&gt;" in text
    assert "; mini-dino layer 1, 2</p>" in text
    assert "better than" not in text
    untold = card(rivals=("mini-clip",))  # it has the same score
    assert "not shown to be worse: mini-clip" in untold
    assert "loses at most" not in untold


def test_the_pooling_stands_beside_the_layer_and_a_cost_is_told_where_it_is_known():
    text = card()
    assert "layer 3 of 3, class token</p>" in text
    assert "mini-dino layer 2 (mean of the patch tokens)" in card(elsewhere={"mean": (2,)})
    assert "64-dimensional vectors, about 600M parameters up to it" in text
    assert " ms an image" not in text
    assert "4.00 ms an image on a card" in card({"backbone": "mini-clip", "layer": 2, "ms": 4.0})


def test_the_verdict_of_one_task_is_its_best_and_of_several_one_backbone_for_all():
    text = card()
    verdict = (
        "Take <strong>mini-dino, layer 3 of 3, class token</strong> for k-NN classification; about 600M "
    )
    assert f'<p class="verdict">{verdict}parameters. How much it may lose is not known.</p>' in text
    assert "parameters. It loses at most 2.2 points against the true best (95 %).</p>" in card({"loss": 2.14})
    assert "parameters. It is shown to be the best.</p>" in card({"loss": 0.0}, untested=())
    # each backbone's scores in davis are half of those in knn, in reverse
    losses = {
        KNN: {("mini-dino", 3): (1.25, True), "mini-clip": (3.0, False)},
        DAVIS: {("mini-dino", 1): (2.54, True), ("mini-dino", 3): (20.04, False)},
    }
    report = replace(usual(), board=bounded(Board.of(small(), "mini"), losses))
    text = " ".join(answer_html(answers_of(report.board), report).split())
    assert "One backbone for all 2 tasks: <strong>mini-dino</strong>, with its own layer for each" in text
    risk = "It may lose most in video mask propagation: up to 2.6 points below the true best (95 %).</p>"
    assert risk in text
    assert text.count("2.6 points") == 2  # in the verdict and on the card, and in no caveat
    assert "<h3>The best of each task, if each may have a backbone of its own</h3>" in text
    assert text.count('<p class="asks">as advised above</p>') == 2
    assert "<b>mini-dino scores highest in every task; its layer depends on the task</b>" in text
    text = answer_html(answers_of(usual().board), usual())
    assert "By scores where it is not known how much may be lost" in text
    assert "loses at most" not in text


def test_the_chart_of_the_answer_names_what_is_advised_in_each_task():
    answers = answers_of(usual().board)
    layers = {KNN: (3, "62.2"), DAVIS: (1, "31.1")}
    lines = {KNN: ["k-NN", "classification"], DAVIS: ["video mask", "propagation"]}
    assert chart_words(answers)["advice"] == {
        heading: {
            "backbone": "mini-dino",
            "layer": layer,
            "vectors": "",
            "lines": [*lines[heading], f"layer {layer}: {score} %"],
        }
        for heading, (layer, score) in layers.items()
    }
    # without one backbone for all, the best of each task, by name
    clip = tuple(each for each in answers[1].candidates if each.backbone == "mini-clip")
    alone = replace(answers[0], candidates=answers[0].candidates[:1])
    apart = chart_words([alone, replace(answers[1], best=clip[0], candidates=clip)])["advice"][DAVIS]
    assert apart["lines"][2:] == ["mini-clip", f"layer {clip[0].layer}: {clip[0].value:.1f} %"]
    assert chart_words([])["advice"] == {}


def test_toys_are_named_as_toys_and_own_images_by_their_folder():
    suite = "images-photos-0a1b2c3d"
    board = Board.of(frame(scored("mini-fs", "FS", [50.0, 60.0], suite=suite)), suite)
    text = report_page(report_of(board, {"mini-fs": Facts(toy=True)}))
    assert "1 small network trained on synthetic images; 2 layers in all, each on 1 task." in text
    assert "<title>own images in photos: which backbone, which layer? (layerboard)</title>" in text


def test_mean_ranks_are_those_of_the_scores_without_an_interval():
    columns = usual().board.columns
    scores = np.array([max(values) for _, values in SCORES.values()])
    ranks = mean_ranks(columns)
    assert [ranks[name] for name in SCORES] == [*rankdata(-scores)]
    assert mean_ranks(columns[:1]) == {}
    page = " ".join(usual_page().split())
    assert "Mean rank over all tasks, 1 is the best; the ranks" in page
