"""The published index of a layer beside the blocks that are not shown to be worse."""

from dataclasses import replace

import pandas as pd
import pytest

from layerboard.leaderboards.findings.reproduce import Published, reproduce
from layerboard.leaderboards.records.record import to_frame
from layerboard.leaderboards.sections.published import published_table
from tests.leaderboards.builder import layers
from tests.leaderboards.findings.test_reproduce import BEST, PAPER

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
