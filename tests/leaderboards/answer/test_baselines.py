"""A test in which baselines are not shown to be worse cannot rank, and says so first."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layerboard import recommend, show
from layerboard.leaderboards.answer.answer import answers_of, equal_baselines
from layerboard.leaderboards.answer.phrases import cannot_rank, notes
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.checksum import file_digest, write_checked
from layerboard.leaderboards.records.files import scored_path
from layerboard.leaderboards.report.answer import answer_html
from layerboard.leaderboards.report.content import report_of
from tests.leaderboards.builder import KNN, floor, frame, hits, layers, scored

PIXELS = {"backbone": "pixels", "family": "pixels", "trained": False}
UNTRAINED = {"backbone": "mini-fs-untrained", "family": "FS", "trained": False}
RANDOM = {"backbone": "random", "family": "random", "trained": False}
SENTENCE = "knn top-1: raw pixels are not shown to be worse than the best: this test cannot rank."


def board(folder: Path, best: int, **right: int) -> Board:
    """Two layers of a trained backbone, the second one the best, and one layer of each baseline."""
    facts = {"pixels": PIXELS, "untrained": UNTRAINED, "random": RANDOM}
    scores = {"mini-dino": ({"backbone": "mini-dino"}, [10, best])}
    scores |= {str(facts[name]["backbone"]): (facts[name], [count]) for name, count in right.items()}
    records = []
    for backbone, (fields, counts) in scores.items():
        start = 0 if fields.get("trained", True) else 10  # baselines err on other images, too
        values = [np.roll(hits(count), start) for count in counts]
        own = scored(folder / "items", n=100, by_layer=values, **fields)
        records += own
        path = scored_path(KNN, backbone)
        write_checked(frame(own), folder / "records" / path, {"items": file_digest(folder / "items" / path)})
    return Board.of(frame(records), "mini", items=folder / "items")


@pytest.mark.parametrize(
    ("right", "found"),
    [
        ({"pixels": 58, "untrained": 20}, ["raw pixels"]),
        ({"pixels": 20, "untrained": 59, "random": 60}, ["mini-fs-untrained", "random floor"]),
        ({"pixels": 20, "untrained": 30, "random": 10}, []),
        ({"untrained": 75}, ["mini-fs-untrained"]),  # the best of all
    ],
)
def test_those_that_are_not_shown_to_be_worse_are_named(
    tmp_path: Path, right: dict[str, int], found: list[str]
) -> None:
    (column,) = board(tmp_path, 60, **right).columns
    assert [*equal_baselines(column, tmp_path / "items")] == found


def test_without_items_scores_are_compared_and_of_random_draws_that_in_the_middle() -> None:
    draws = floor([10.0, 40.0, 99.0])
    (column,) = Board.of(frame(layers([50.0]), layers([49.0], **PIXELS), draws)).columns
    assert equal_baselines(column, None) == ()
    (column,) = Board.of(frame(layers([50.0]), layers([50.0], **PIXELS), floor([10.0, 50.0, 99.0]))).columns
    assert equal_baselines(column, None) == ("random floor", "raw pixels")
    (column,) = Board.of(frame(layers([50.0], **UNTRAINED), layers([50.0], **PIXELS))).columns
    assert equal_baselines(column, None) == ()  # nothing to rank


def test_report_show_and_recommend_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = board(tmp_path, 60, pixels=59)
    answers = answers_of(found)
    assert notes(answers)[0] == SENTENCE
    html = answer_html(answers, report_of(found, {}))
    first = html.partition('<ol class="cards">')[0]
    named = "Take <strong>mini-dino, layer 2 of 2, class token</strong>"
    assert first.index(named) < first.index("raw pixels are not")
    assert html.count("raw pixels are not shown to be worse") == 2  # also on the card
    show(output=tmp_path)
    assert SENTENCE in capsys.readouterr().out
    assert SENTENCE in recommend("knn", output=tmp_path).notes
    assert SENTENCE in recommend("knn", output=tmp_path, backbones="mini-dino").notes


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("x (untrained)",), "x (untrained) is not"),
        (("raw pixels",), "raw pixels are not"),
        (("x", "y", "raw pixels"), "x, y and raw pixels are not"),
    ],
)
def test_one_does_and_several_do(names: tuple[str, ...], words: str) -> None:
    (answer,) = answers_of(Board.of(frame(layers([50.0]))))
    sentence = cannot_rank(replace(answer, baselines=names))
    assert sentence == f"{words} shown to be worse than the best: this test cannot rank"
