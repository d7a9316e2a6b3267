"""Images are called alike by the vectors of a backbone that has learned to tell them apart, or by none."""

import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.near_duplicates import find_judge
from tests.leaderboards.builder import frame, layers

PIXELS = {"backbone": "raw-pixels", "family": "pixels", "trained": False}
CASES = {
    "the best": ({"mini-clip": 40.0, "mini-dino": 60.0}, 30.0, "mini-dino"),
    "the best where raw pixels were not measured": (
        {"mini-clip": 40.0, "mini-dino": 60.0},
        None,
        "mini-dino",
    ),
    "nobody below raw pixels": ({"mini-clip": 40.0, "mini-dino": 60.0}, 61.0, ""),
    "as good as raw pixels, as where each image has a copy": ({"mini-dino": 100.0}, 100.0, "mini-dino"),
    "the last checkpoint": ({"run@step2": 70.0, "run@step10": 60.0}, 30.0, "run@step10"),
    "another than an earlier checkpoint": ({"run@step2": 70.0, "run@step10": 20.0, "b": 40.0}, 30.0, "b"),
    "nobody": ({}, 30.0, ""),
}


@pytest.mark.parametrize(("scores", "pixels", "judge"), CASES.values(), ids=CASES)
def test_the_judge_is(scores: dict[str, float], pixels: float | None, judge: str) -> None:
    rows = [layers([1.0, score], backbone=name) for name, score in scores.items()]
    rows += [layers([99.0, 99.0], backbone="untrained", trained=False)]
    rows += [] if pixels is None else [layers([pixels], **PIXELS)]
    assert find_judge(Board.of(frame(*rows)).columns) == judge


def test_another_task_may_have_one() -> None:
    rows = [layers([10.0]), layers([20.0], **PIXELS)]
    rows += [
        layers([30.0], task="retrieval", metric="mAP"),
        layers([20.0], task="retrieval", metric="mAP", **PIXELS),
    ]
    assert find_judge(Board.of(frame(*rows)).columns) == "mini-dino"
