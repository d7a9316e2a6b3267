"""Scores beside what the grids of their layers allow."""

import math
from dataclasses import replace

import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.ceilings import Ceiling, ceiling_blocks, ceilings_of
from tests.leaderboards.builder import NAN, floor, frame, layers
from tests.leaderboards.shown import render_blocks, render_page

DAVIS = {"task": "davis", "dataset": "mini-davis", "pooling": "grid", "metric": "J&F"}
CEILING = {**DAVIS, "metric": "J&F ceiling", "primary": False}
OTHER = {"backbone": "mini-clip", "family": "CLIP"}
HEADING = "## What the grid allows"


def section(records: pd.DataFrame) -> str:
    return render_blocks(ceiling_blocks(Board.of(records)))


def records() -> pd.DataFrame:
    """Layer 2 is best; layer 3 has a finer grid; of another backbone no ceiling is known."""
    return frame(
        layers([30.0, 45.0, 40.0], **DAVIS),
        layers([90.0, 90.0, 95.0], **CEILING),
        layers([50.0, 20.0, 20.0], **DAVIS, **OTHER),
        layers([60.0, 50.0, 40.0]),
        floor([5.0, 6.0], **DAVIS),
        floor([90.0, 90.0], **CEILING),
    )


def test_the_ceiling_is_that_of_the_best_layer() -> None:
    (knn, davis) = Board.of(records()).columns
    ceilings = ceilings_of(davis)
    assert list(ceilings) == ["mini-dino"]
    assert replace(ceilings["mini-dino"], by_area=0.0) == Ceiling(45.0, 90.0, 0.0)
    assert math.isnan(ceilings["mini-dino"].by_area)
    assert ceilings_of(knn) == {}


def test_the_page_says_how_much_of_it_the_score_is() -> None:
    text = section(records())
    assert "45.0 of 90.0: 50 %" in text
    assert "mini-clip" not in text
    assert "top-1" not in text


def test_a_ceiling_by_area_stands_in_brackets_and_its_note_only_then() -> None:
    areas = layers([91.5, 92.5, 95.5], **DAVIS | {"metric": "J&F ceiling by area", "primary": False})
    found = render_page(pd.concat([records(), frame(areas)], ignore_index=True), "mini")
    assert "45.0 of 90.0 (92.5): 50 %" in found
    assert "In brackets for `davis`" in found
    assert "In brackets" not in section(records())
    assert "ceiling by area" not in found  # it is a column of no other table


def test_clusterings_of_regions_have_a_note_of_their_own() -> None:
    parts = {"task": "cluster-part", "dataset": "parts", "pooling": "grid"}
    rows = frame(
        layers([40.0, 30.0], **parts, metric="purity"),
        layers([80.0, 80.0], **parts, metric="purity ceiling", primary=False),
    )
    text = section(rows)
    assert "40.0 of 80.0: 50 %" in text
    assert "`cluster-image` has no\nceiling" in text
    assert "`cluster-image` has no" not in section(records())


def test_no_section_where_no_ceiling_is_known_or_it_is_nothing() -> None:
    assert HEADING not in section(frame(layers([30.0, 45.0], **DAVIS)))
    failed = layers([NAN, NAN], **DAVIS)  # of which no layer is best
    assert HEADING not in section(frame(failed))
    for value in (0.0, NAN):
        ceilings = layers([value] * 2, **CEILING)
        assert HEADING not in section(frame(layers([30.0, 45.0], **DAVIS), ceilings))
