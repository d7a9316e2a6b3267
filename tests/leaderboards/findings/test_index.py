"""The published index of a layer beside the blocks that are not shown to be worse, and disputes settled."""

from dataclasses import replace

import pandas as pd
import pytest

from layerboard.leaderboards.findings.reproduce import Published, disputes, reproduce, settlements
from layerboard.leaderboards.records.record import to_frame
from layerboard.leaderboards.sections.published import published_table
from tests.leaderboards.builder import layers, record
from tests.leaderboards.findings.test_reproduce import BEST, DAVIS, PAPER, README, RUN

VALUES = [70.0, 76.0, 75.0]


def measured(maybe, values=VALUES, **changes):
    """Blocks of which those from 1 in ``maybe`` are not shown to be worse than the best."""
    rows = layers(values, **(PAPER | changes), ci_low=60.0, ci_high=80.0)
    return [replace(row, maybe_best=row.layer in maybe) for row in rows]


def compared(published: Published, records) -> "pd.Series":
    return reproduce(to_frame(records), [published]).iloc[0]


@pytest.mark.parametrize(
    ("published", "maybe", "index", "ranges"),
    [
        (2, (2,), "the same", "2"),
        (2, (2, 3), "the same", "2, 3"),
        (3, (2, 3), "not shown to be worse", "2, 3"),
        (3, (2,), "worse", "2"),
        (1, (2, 3), "worse", "2, 3"),
        (None, (2, 3), "", "2, 3"),
        (3, (), "", ""),
    ],
)
def test_a_published_index_is_ours_or_may_be_or_is_not(published, maybe, index, ranges) -> None:
    found = compared(replace(BEST, layer=published), measured(maybe))
    told = found[["index", "maybe_layers"]].fillna("").tolist()
    assert told == [index, ranges]
    assert found["measured_layer"] == 2


def test_it_is_printed_beside_the_layers_that_may_be_the_best() -> None:
    frame = reproduce(to_frame(measured((2, 3))), [BEST, replace(BEST, layer=1), replace(BEST, layer=2)])
    cells = published_table(frame)
    assert cells["published"].tolist() == [
        "76.1 (3: not shown to be worse)",
        "76.1 (1: worse)",
        "76.1 (2: the same)",
    ]
    assert set(cells["measured"]) == {"76.00 (2: 2, 3 not shown to be worse)"}


def test_nothing_is_said_of_blocks_that_were_not_compared() -> None:
    cells = published_table(reproduce(to_frame(measured(())), [BEST]))
    assert cells[["published", "measured"]].iloc[0].tolist() == ["76.1 (3)", "76.00 (2)"]


def test_nothing_is_said_if_another_pooling_scores_higher() -> None:
    mean = measured((1,), [80.0, 70.0, 70.0], pooling="mean", primary=False)
    found = compared(BEST, [*measured(()), *mean])
    assert pd.isna(found["index"])


def test_layers_are_those_of_one_pooling() -> None:
    mean = measured((1, 2), [75.9, 75.8, 70.0], pooling="mean", primary=False)
    assert compared(BEST, [*measured((2, 3)), *mean])["maybe_layers"] == "2, 3"


CARD = replace(README, source="card", protocol="none", not_comparable="not said", claim="hard", value=72.8)
FIRST = replace(CARD, source="paper", value=60.7)


def ran(value: float, **changes):
    row = {"layer": 3, "tap": "final", "value": value, "ci_low": value - 0.5, "ci_high": value + 0.5}
    return to_frame([record(**(RUN | row | changes))])


@pytest.mark.parametrize(
    ("value", "first", "second"), [(60.9, "agrees", "off"), (72.6, "off", "agrees"), (66.0, "off", "off")]
)
def test_a_run_says_which_of_two_numbers_its_protocol_measures(value, first, second) -> None:
    assert len(disputes([CARD, FIRST])) == 1
    (sentence,) = settlements(ran(value), [CARD, FIRST])
    assert sentence == (
        "dino-b16, knn top-1, imagenet, by the protocol standard, 224 px: 72.8 by card, pretrained models "
        f"(measured {value}: {second}), 60.7 by paper, pretrained models (measured {value}: {first})."
    )


def test_each_protocol_that_was_run_is_tried() -> None:
    both = pd.concat([ran(60.9), ran(72.7, protocol="paper")], ignore_index=True)
    told = settlements(both, [CARD, FIRST])
    assert [("standard" in text, "(measured 60.9: agrees)" in text) for text in told] == [
        (True, True),
        (False, False),
    ]


def test_what_was_not_run_or_does_not_disagree_is_not_settled() -> None:
    assert settlements(to_frame([]), [CARD, FIRST]) == ()
    assert settlements(ran(60.9, backbone="dino-s16"), [CARD, FIRST]) == ()
    assert settlements(ran(60.9, tap="block"), [CARD, FIRST]) == ()
    assert settlements(ran(60.9), [FIRST, replace(CARD, value=60.7)]) == ()
    assert settlements(ran(60.9), [DAVIS, FIRST]) == ()


def test_a_part_of_the_data_settles_nothing() -> None:
    (sentence,) = settlements(ran(60.9, partial=True), [CARD, FIRST])
    assert sentence.count("(measured 60.9: partial data)") == 2
