import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import HeldOutChoice
from layerboard.leaderboards.sections.best import held_out_table
from layerboard.leaderboards.sections.layers import choice_table
from tests.leaderboards.builder import NAN, floor, frame, layers, record, unsure

CLIP = {"backbone": "mini-clip", "family": "CLIP"}
SHARES = {1: 0.25, 2: 0.7, 3: 0.05}


def only(records):
    """The one column of some records."""
    [column] = Board.of(records).columns
    return column


def split(values, shares, loss=0.5, **changes):
    return unsure(layers(values, **changes), chosen=shares, loss=loss)


def test_the_held_out_score_is_the_mean_over_the_splits_and_the_optimism_the_rest():
    records = frame(split([10.0, 30.0, 20.0], SHARES, loss=1.0))
    [choice] = only(records).held_out.values()
    score = 0.25 * 9.0 + 0.7 * 29.0 + 0.05 * 19.0
    assert choice.score == pytest.approx(score)
    assert choice.optimism == pytest.approx(30.0 - score)
    assert choice.shares == ((2, 0.7), (1, 0.25), (3, 0.05))


def test_only_blocks_of_the_primary_metric_and_the_shown_pooling_are_chosen():
    records = frame(
        split([10.0, 30.0], {2: 1.0}, final=99.0),
        [record(layer=0, depth=2, value=50.0, chosen=0.0)],
        split([80.0, 90.0], {1: 1.0}, metric="top-5", primary=False),
        split([20.0, 10.0], {1: 1.0}, pooling="mean", primary=False),
    )
    assert Board.of(records).columns[0].held_out == {"mini-dino": HeldOutChoice(29.5, 0.5, ((2, 1.0),))}


def test_data_that_were_not_split_have_no_choice():
    records = frame(layers([10.0, 30.0]), unsure(floor([1.0, 2.0]), chosen={1: 1.0}))
    assert only(records).held_out == {}
    assert held_out_table(Board.of(records)).empty
    assert choice_table(only(records)).empty


@pytest.mark.parametrize("shares", [{1: 0.5, 2: 0.4}, {3: 1.0}])
def test_shares_that_do_not_add_up_have_no_choice(shares):
    assert only(frame(split([10.0, 30.0], shares))).held_out == {}


def test_a_chosen_block_without_a_held_out_score_has_no_choice():
    records = frame(split([10.0, 30.0], SHARES | {3: 0.0, 2: 0.75}))
    records.loc[0, "held_out"] = NAN
    assert only(records).held_out == {}
