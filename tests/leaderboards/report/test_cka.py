import numpy as np
import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.similarity import cka_matrices
from tests.leaderboards.builder import frame, pair
from tests.leaderboards.report.boards import small


def records():
    return small()[lambda rows: ~rows["analysis"]]


def test_a_matrix_is_whole_and_symmetric_where_a_backbone_meets_itself():
    matrices, left_out = cka_matrices(Board.of(records()))
    assert left_out == 0
    assert [(one.first, one.second) for one in matrices] == [
        ("mini-clip", "mini-clip"),
        ("mini-clip", "mini-dino"),
    ]
    own = matrices[0].values
    assert np.array_equal(own, own.T)
    assert [*np.diag(own)] == [1.0] * 3
    assert matrices[1].values[0, 2] == 0.9 - 0.2 - 0.01


def test_pairs_that_were_written_the_other_way_round_are_turned():
    rows = records()
    turned = frame([pair("mini-dino", 1, "mini-clip", 3, 0.25, depth=3)])
    both = rows[rows["other"] != "mini-dino"]
    matrices, _ = cka_matrices(Board.of(pd.concat([both, turned], ignore_index=True)))
    [one] = [one for one in matrices if one.first != one.second]
    assert (one.first, one.second) == ("mini-clip", "mini-dino")
    assert one.values[2, 0] == 0.25
    assert np.isnan(one.values).sum() == 8


def test_what_there_is_no_room_for_is_counted_and_backbones_with_themselves_come_first():
    matrices, left_out = cka_matrices(Board.of(records()), most=9)
    assert [(one.first, one.second) for one in matrices] == [("mini-clip", "mini-clip")]
    assert left_out == 1
