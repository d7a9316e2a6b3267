"""The answer to each column: what is best, what may be, too, and what it costs; and how a table says it."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.answer.answer import answer_frame, answers_of, unscored
from layerboard.leaderboards.answer.phrases import answer_table, held_out_text, notes, others_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.record import Record
from layerboard.tasks.framework.assess import below_best
from tests.leaderboards.builder import floor, frame, layers, measured, record, scored, unsure

HITS = 100.0 * (np.arange(80) % 2)


def fewer(wrong: int) -> np.ndarray:
    """Half of 80 images right, less so many."""
    values = HITS.copy()
    values[np.flatnonzero(HITS)[:wrong]] = 0
    return values


def found_by(folder: Path, backbone: str, *by_layer: np.ndarray, **changes) -> list[Record]:
    """Records of a backbone and their items, with intervals; layer 2 is chosen on every half."""
    return unsure(
        scored(folder, backbone, by_layer, data="d1", **changes), half=2.0, chosen={2: 1.0}, loss=0.5
    )


def cost(backbone: str, layer: int, milliseconds: float, **changes) -> object:
    fields = {"backbone": backbone, "layer": layer, "value": milliseconds, "task": "cost", "metric": "ms"}
    return record(
        **(fields | {"pooling": "", "analysis": True, "primary": False, "dataset": "a card"} | changes)
    )


@pytest.fixture
def three(tmp_path: Path) -> pd.DataFrame:
    """DINO best at layer 2, CLIP a hit behind it, MAE far below; and the random floor."""
    return frame(
        found_by(tmp_path, "mini-mae", fewer(40), fewer(39), family="MAE"),
        found_by(tmp_path, "mini-dino", fewer(1), fewer(0), family="DINO"),
        found_by(tmp_path, "mini-clip", fewer(9), fewer(1), family="CLIP"),
        floor([60.0, 70.0], data="d1"),
        [cost("mini-dino", 1, 1.0), cost("mini-dino", 2, 2.04), cost("mini-clip", 2, 9.0)],
    )


def test_the_best_layer_of_the_best_backbone(three: pd.DataFrame, tmp_path: Path) -> None:
    (found,) = answers_of(Board.of(three, items=tmp_path))
    best = found.best
    assert (best.backbone, best.layer, best.depth, best.pooling) == ("mini-dino", 2, 2, "cls")
    assert (best.value, best.ci_low, best.ci_high, found.held_out) == (50.0, 48.0, 52.0, 49.5)
    assert (found.rivals, found.untested, found.compared) == (("mini-clip",), (), 2)
    assert found.layers == (1,)
    below = below_best([measured(list(fewer(wrong))) for wrong in (0, 1, 1, 9, 39, 40)], "top-1")
    assert below[0] is not None
    assert found.best.loss == pytest.approx(below[0].loss)
    assert 2 < found.best.loss < 10  # a hit of 80 is 1.25 points
    assert (found.best.ms, found.device) == (2.04, "a card")


def test_layers_that_share_the_best_score_are_all_named(tmp_path: Path) -> None:
    (found,) = answers_of(
        Board.of(frame(found_by(tmp_path, "mini-clip", fewer(0), fewer(0))), items=tmp_path)
    )
    assert (found.best.layer, found.layers) == (1, (2,))


def test_costs_are_those_of_the_device_that_was_measured_last(three: pd.DataFrame) -> None:
    newer = {"dataset": "another card", "date": "2026-11-21T10:00:00+00:00"}
    (found,) = answers_of(Board.of(pd.concat([three, frame([cost("mini-dino", 2, 1.5, **newer)])])))
    assert (found.best.ms, found.device) == (1.5, "another card")
    (found,) = answers_of(Board.of(pd.concat([three, frame([cost("mini-clip", 2, 1.5, **newer)])])))
    (row,) = answer_frame([found]).to_dict("records")
    assert (math.isnan(found.best.ms), row["device"]) == (True, "")


def test_a_floor_and_analyses_alone_answer_nothing() -> None:
    assert answers_of(Board.of(frame(floor([1.0, 2.0]), [cost("mini-dino", 1, 1.0)]))) == ()


def test_the_table_and_its_notes(three: pd.DataFrame, tmp_path: Path) -> None:
    found = answers_of(Board.of(three, items=tmp_path))
    (row,) = answer_table(found).to_dict("records")
    assert next(iter(row)) == "task"
    for cell in ("knn top-1", "mini-dino", "2/2", "cls", "50.0 ± 2.0", "2.04"):
        assert cell in row.values()
    assert (others_text(found[0]), held_out_text(found[0])[:13]) == (
        "mini-clip; mini-dino layer 1",
        "held out 49.5",
    )
    assert row["loses at most"] == f"{found[0].best.loss:.1f}"
    assert [note.split(":")[0] for note in notes(found)] == [
        "knn top-1",  # the random floor is higher
        *("Loses at most", "ms"),
    ]


def test_the_table_leaves_out_what_is_not_known() -> None:
    found = answers_of(Board.of(frame(layers([10.0, 20.0], final=15.0))))
    table = answer_table(found)
    assert [*table] == ["task", "best backbone", "layer", "vectors", "score"]
    assert notes(found) == ()


def test_what_has_no_score_is_said_with_its_reason() -> None:
    few = layers([math.nan, math.nan], transform="pq:8", reason="pq:8 is fitted on at least 256 images")
    some = layers([math.nan, 1.0], transform="int8")
    shots = layers([math.nan, math.nan], task="fewshot", reason="10 shots need 10 images of every class")
    assert unscored(Board.of(frame(layers([10.0, 20.0]), few, some, shots))) == (
        "No score of fewshot: 10 shots need 10 images of every class.",
        "No score of knn with pq:8: pq:8 is fitted on at least 256 images.",
    )


def test_analyses_that_a_backbone_has_nothing_of_are_said_together() -> None:
    why = "own is a network whose attention probabilities cannot be read."
    missing = {"backbone": "own", "reason": why}
    two = [layers([math.nan] * 2, task=task, **missing) for task in ("attention-distance", "attention-maps")]
    there = layers([1.0, math.nan], task="attention-distance")
    assert unscored(Board.of(frame(layers([10.0]), there, *two))) == (
        f"Nothing of attention-distance, attention-maps: {why}",
    )


def test_many_rivals_are_counted(tmp_path: Path) -> None:
    names = ("mini-fs", "mini-clip", "mini-moco", "mini-mae", "mini-beit")
    groups = [found_by(tmp_path, name, fewer(9), fewer(1)) for name in names]
    rows = frame(found_by(tmp_path, "mini-dino", fewer(9), fewer(0)), *groups)
    (found,) = answers_of(Board.of(rows, items=tmp_path))
    assert "5 of 5 others" in others_text(found)
