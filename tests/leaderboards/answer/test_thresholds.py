"""A threshold is that of the layer that is named beside it, wherever one is named."""

import math
from dataclasses import replace

import pytest

from layerboard.benchmark.commands.recommend import code_of
from layerboard.leaderboards.answer.answer import answers_of
from layerboard.leaderboards.answer.choice import safe_choices
from layerboard.leaderboards.answer.phrases import notes
from layerboard.leaderboards.blocks.display import cosine_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.report.answer import answer_html
from layerboard.leaderboards.report.content import report_of
from tests.leaderboards.builder import NAN, frame, layers

THINGS = {"task": "instances", "dataset": "mini-things", "unit": "queries"}
FURTHER = {**THINGS, "primary": False}
CHEAP = "cosine threshold: 0.952 for precision 0.99 (recall 31.0 %), 0.901 for precision 0.9 (recall 70.2 %)"
BEST = (
    "cosine threshold: 0.921 for precision 0.99 (recall 40.0 %), for precision 0.9 no cosine is that precise"
)


def board(**changes: object) -> Board:
    """Three layers, the last one the best, each with its own thresholds; other poolings have others."""
    records = [
        layers([10.0, 44.0, 45.0], **THINGS),
        layers([0.5, 0.952, 0.9203], **FURTHER, metric="cosine at precision 0.99"),
        layers([1.0, 31.0, 40.0], **FURTHER, metric="recall at precision 0.99"),
        layers([0.4, 0.90071, NAN], **FURTHER, metric="cosine at precision 0.9"),
        layers([2.0, 70.2, NAN], **FURTHER, metric="recall at precision 0.9"),
        layers([9.0, 9.0, 9.0], **THINGS | {"pooling": "mean", "primary": False}),
        layers([0.1, 0.1, 0.1], **FURTHER, metric="cosine at precision 0.99", pooling="mean"),
    ]
    rows = frame(*records)
    rows["reason"] = rows["reason"].replace("its features are all equal", "no cosine is that precise")
    return Board.of(rows.assign(**changes))


def test_each_candidate_has_its_own_and_recommend_names_that_of_its_layer() -> None:
    (answer,) = answers_of(board())
    best, cheap, *_ = (each for each in answer.candidates if each.pooling == "cls")
    assert (best.thresholds, cheap.thresholds) == (BEST, CHEAP)
    safe = replace(best, loss=0.0), replace(cheap, loss=1.5)
    (choice, *_) = safe_choices([replace(answer, candidates=safe)], 2)
    assert choice.deepest.layer == 2
    code = code_of(choice)
    assert f"# instances top-1, {CHEAP}" in code.splitlines()
    assert "0.92" not in code


def test_answer_and_card_name_that_of_the_best_layer() -> None:
    (answer,) = found = answers_of(board())
    assert (answer.best.layer, answer.best.thresholds) == (3, BEST)
    assert f"instances top-1: mini-dino layer 3 cls, {BEST}." in notes(found)
    assert BEST in answer_html(found, report_of(board(), {}))


def test_a_task_without_thresholds_has_none_and_one_that_was_not_scored_says_so() -> None:
    assert [answer.best.thresholds for answer in answers_of(Board.of(frame(layers([1.0]))))] == [""]
    (answer,) = answers_of(Board.of(frame(layers([1.0], **THINGS))))
    unknown = "for precision 0.99 not known for this layer, for precision 0.9 not known for this layer"
    assert answer.best.thresholds == f"cosine threshold: {unknown}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.9201, "0.921"),
        (0.92, "0.920"),
        (0.99012, "0.9902"),
        (0.99987, "0.99987"),
        (1.0 + 1e-7, "1.000"),
        (math.nan, ""),
    ],
)
def test_a_threshold_is_rounded_up_and_has_digits_near_1(value: float, text: str) -> None:
    assert cosine_text(value) == text
