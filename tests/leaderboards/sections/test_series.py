"""The section on trainings: order, the best layers, and paired differences from the ends."""

from pathlib import Path

import numpy as np
import pytest

from layerboard.leaderboards.blocks.blocks import Plot, Table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.findings.paired import match_backbones
from layerboard.leaderboards.records.record import Record
from layerboard.leaderboards.sections.series import series_blocks, series_of, series_points
from layerboard.zoo.spec import Variant
from tests.leaderboards.builder import frame, scored, unsure

RANDOM = np.random.default_rng(0)
# right answers of three layers by step: another layer is the best in the middle
SHARES = {900: (0.2, 0.3, 0.7), 1000: (0.2, 0.3, 0.8), 20: (0.3, 0.5, 0.2)}
RIGHT = {step: [100.0 * (RANDOM.random(300) < share) for share in each] for step, each in SHARES.items()}


def trained(folder: Path, step: int, name: str) -> list[Record]:
    records = scored(folder / "items", name, RIGHT[step], family="other")
    return unsure(records, maybe=[2, 3] if step == 900 else [])


@pytest.fixture
def board(tmp_path: Path) -> Board:
    every = [trained(tmp_path, step, f"run@step{step}") for step in RIGHT]
    others = [trained(tmp_path, 20, name) for name in ("lone@step20", "run@step20@128px", "other")]
    return Board.of(frame(*every, *others), items=tmp_path / "items")


def test_checkpoints_are_in_order_of_steps_in_tables_and_of_their_training(board: Board) -> None:
    steps = {step: f"run@step{step}" for step in (20, 900, 1000)}
    assert series_of(board) == {"run": steps}  # neither a single checkpoint nor another size
    assert [each.name for each in board.backbones if each.name in steps.values()] == [*steps.values()]
    assert Variant.of("run@step20@128px").checkpoint == (Variant("run", 128), 20)
    assert Variant.of("dino-b16@stepwise").checkpoint == (Variant("dino-b16@stepwise"), -1)


def test_differences_are_those_of_compare(board: Board) -> None:
    (column,) = board.columns
    points = {each.step: each for each in series_points(board, column, series_of(board))}
    assert [each.best.layer for each in points.values()] == [2, 3, 3]
    assert points[900].layers == (2, 3)
    for step, end, found in ((1000, 20, points[1000].since_first), (20, 1000, points[20].to_last)):
        (versus,) = match_backbones(board, (f"run@step{step}", f"run@step{end}"), "best").rows
        assert (found.value, found.low, found.high) == (versus.difference, versus.ci_low, versus.ci_high)
    assert points[1000].since_first.low > 0 > points[20].to_last.high
    assert np.isnan([points[20].since_first.value, points[1000].to_last.value]).all()


def test_charts_have_intervals_and_a_board_without_a_training_has_no_section(board: Board) -> None:
    blocks = series_blocks(board)
    scores, blocks_of = (block for block in blocks if isinstance(block, Plot))
    values = [float(max(np.mean(RIGHT[step], axis=1))) for step in (20, 900, 1000)]
    assert pytest.approx(np.array([[20, 900, 1000], values])) == scores.frame[["x", "y"]].to_numpy().T
    assert (scores.frame["high"] - scores.frame["low"]).tolist() == pytest.approx([1.6] * 3)
    assert blocks_of.frame[["low", "y", "high"]].to_numpy().tolist() == [[2, 2, 2], [2, 3, 3], [3, 3, 3]]
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert table.frame["best layer"].tolist() == ["2/3 cls", "3/3 cls (2, 3)", "3/3 cls"]
    assert table.frame["step"].tolist() == ["20", "900", "1,000"]
    alone = board.records[board.records["backbone"].isin(["lone@step20", "other"])]
    assert series_blocks(board.only(alone)) == []
    without = series_blocks(Board.of(board.records))
    (plain,) = (block for block in without if isinstance(block, Table))
    assert plain.frame["minus the first"][2] == f"{values[2] - values[0]:+.1f}"  # no items, no interval
