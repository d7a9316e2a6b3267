"""A board: what records say, found once, the same for records in any order."""

from layerboard.leaderboards.board.board import Board
from tests.leaderboards.builder import floor, frame, layers, pair


def test_one_board_holds_scores_comparisons_and_analyses_apart():
    records = frame(
        layers([1.0, 3.0, 2.0], metric="top-1"),
        layers([5.0, 4.0], transform="whiten"),
        layers([0.1, 0.2], task="rank", metric="rank", analysis=True),
        [pair("mini-dino", 2, "mini-clip", 3, 0.5)],
        floor([1.0, 2.0]),
    )
    board = Board.of(records, "mini")
    assert [len(rows) for rows in (board.scores, board.plain, board.measured)] == [5, 6, 8]
    assert len(board.changed) == 2
    assert len(board.analyses) == 2
    assert [backbone.name for backbone in board.backbones] == ["mini-dino", "mini-clip", "random"]
    assert board.best[["backbone", "layer", "value"]].values.tolist() == [["mini-dino", 2, 3.0]]
    (column,) = board.columns
    assert column.floors["mean"].tolist() == [1.5]
    assert board.bounds[column.key].rows[["layer", "value"]].values.tolist() == [[1, 1.0], [2, 3.0], [3, 2.0]]


def test_a_board_of_one_suite_leaves_the_others_out():
    records = frame(layers([1.0]), layers([9.0], suite="other"))
    assert Board.of(records, "mini").best["value"].tolist() == [1.0]
    assert len(Board.of(records).records) == 1  # one number, whatever suites asked for it
