"""Transformed features on the page: gains in a table of their own, and in no other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.tidy import tidy_frame
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.records.record import Record
from layerboard.leaderboards.sections.transforms import Gain, gains_of
from tests.leaderboards.builder import NAN, frame, layers, measured, unsure
from tests.leaderboards.shown import render_page

HEADING = "## What transforms of the features gain"
RANDOM = np.random.default_rng(0)
PLAIN = [100.0 * (RANDOM.random(300) < share) for share in (0.3, 0.5, 0.4)]
WHITENED = [np.where(RANDOM.random(300) < 0.2, 100.0, values) for values in PLAIN]


def scores(columns: list[np.ndarray], **changes: object) -> list[Record]:
    return unsure(layers([float(column.mean()) for column in columns], **changes), chosen={2: 1.0})


def records() -> pd.DataFrame:
    """Layer 2 is best as it is and whitened; of another backbone there is nothing but z-scores."""
    found = [*scores(PLAIN), *scores(WHITENED, transform="whiten"), *scores(PLAIN, transform="debias:10")]
    other = {"backbone": "mini-clip", "family": "CLIP"}
    missing = [replace(one, reason="features are not finite") for one in layers([NAN] * 3, **other)]
    return frame(
        found, layers([20.0, 10.0, 10.0], **other), [replace(one, transform="zscore") for one in missing]
    )


def gains(board: Board) -> tuple[Gain, ...]:
    return gains_of(board, board.transformed)


@pytest.fixture
def items(tmp_path: Path) -> Path:
    for transform, columns in (("", PLAIN), ("whiten", WHITENED), ("debias:10", PLAIN)):
        key = task_key("knn", "mini-imagenet", "standard", transform)
        places = {(layer, "block", "cls"): measured(list(one)) for layer, one in enumerate(columns, 1)}
        write_items(places, tmp_path / "items" / scored_path(key, "mini-dino"))
    return tmp_path / "items"


def test_gains_are_paired_over_the_same_items(items: Path) -> None:
    found = {one.best.transform: one for one in gains(Board.of(records(), items=items))}
    assert list(found) == ["debias:10", "whiten"]
    whitened, nothing = found["whiten"], found["debias:10"]
    difference = WHITENED[1] - PLAIN[1]
    assert whitened.gain.value == pytest.approx(difference.mean())
    error = difference.std() / len(difference) ** 0.5
    ends = [difference.mean() - 1.96 * error, difference.mean() + 1.96 * error]
    assert [whitened.gain.low, whitened.gain.high] == pytest.approx(ends, abs=0.8)
    assert (nothing.gain.value, nothing.gain.low, nothing.gain.high) == (0, 0, 0)
    assert whitened.honest == pytest.approx(whitened.gain.value)
    assert (whitened.plain.layer, whitened.best.layer, whitened.plain.depth) == (2, 2, 3)


def test_another_best_layer_stands_beside_the_plain_one(items: Path) -> None:
    found = records()
    third = (found["transform"] == "whiten") & (found["layer"] == 3)
    found.loc[third, "value"] = 99.0
    (gain,) = (one for one in gains(Board.of(found)) if one.best.transform == "whiten")
    assert (gain.plain.layer, gain.best.layer) == (2, 3)
    assert gain.gain.value == pytest.approx(99 - PLAIN[1].mean())
    assert gain.same_layer.value == pytest.approx(WHITENED[1].mean() - PLAIN[1].mean())
    assert np.isnan(gain.gain.low)


def test_no_other_table_and_no_number_of_the_page_changes(items: Path) -> None:
    plain = records()
    plain = plain[plain["transform"] == ""].reset_index(drop=True)
    with_them, without = (render_page(found, "mini", items) for found in (records(), plain))
    assert HEADING not in without
    before, _, rest = with_them.partition(HEADING)
    assert without.startswith(before)
    assert "| knn top-1 | whiten" in rest.replace("  ", "")
    lacking = "mini-clip: knn on mini-imagenet (standard) with zscore, 3 layers: features are not finite."
    assert lacking in rest
    pd.testing.assert_frame_equal(
        tidy_frame(Board.of(records(), "mini")), tidy_frame(Board.of(plain, "mini"))
    )
