from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.layer_cka import LayerCka, cka_maps, cka_page, depths_of
from layerboard.leaderboards.sections.provenance import empty_cells
from layerboard.leaderboards.writers.markdown import markdown_page
from layerboard.zoo.spec import Layer
from tests.leaderboards.builder import NAN, frame, layers, pair
from tests.leaderboards.report.boards import small

CLIP, DINO = "mini-clip", "mini-dino"


def records():
    return small()[lambda rows: ~rows["analysis"]]


def tapped(*places, value=0.5, **changes):
    """Comparisons of every two layers, given as (backbone, block, tap), the first of each two first."""
    found = []
    for place, (name, block, tap) in enumerate(places):
        for other, at, other_tap in places[place:]:
            same = (name, block, tap) == (other, at, other_tap)
            one = pair(name, block, other, at, 1.0 if same else value, tap=tap, **changes)
            found.append(replace(one, other_tap=other_tap))
    return found


def test_a_matrix_is_whole_and_symmetric_where_a_backbone_meets_itself():
    [cka] = cka_maps(Board.of(records()))
    [own], [both] = (cka.matrices(own=own) for own in (True, False))
    assert (own.first, own.second) == (CLIP, CLIP)
    assert (both.first, both.second) == (CLIP, DINO)
    assert np.array_equal(own.values, own.values.T)
    assert [*np.diag(own.values)] == [1.0] * 3
    assert both.values[0, 2] == 0.9 - 0.2 - 0.01
    assert np.array_equal(both.turned.values, both.values.T)


def test_pairs_that_were_written_the_other_way_round_are_turned():
    rows = records()
    turned = frame([pair(DINO, 1, CLIP, 3, 0.25, depth=3)])
    [cka] = cka_maps(Board.of(pd.concat([rows[rows["other"] != DINO], turned], ignore_index=True)))
    [one] = cka.matrices(own=False)
    assert (one.first, one.second, one.columns) == (CLIP, DINO, (Layer(1),))
    assert one.values[2, 0] == 0.25
    assert np.isnan(one.values).sum() == 2


def test_taps_are_in_the_order_of_the_forward_pass_and_named_on_both_axes():
    places = [
        (CLIP, 2, "block"),
        (CLIP, 1, "mlp"),
        (CLIP, 1, "block"),
        (CLIP, 2, "norm1"),
        (DINO, 1, "norm1"),
    ]
    [cka] = cka_maps(Board.of(frame(tapped(*places), tapped((CLIP, 0, "block"), (CLIP, 3, "final"))), "mini"))
    [own, _], [both] = (cka.matrices(own=own) for own in (True, False))
    assert [*map(str, own.rows)] == ["1.mlp", "1", "2.norm1", "2"]
    assert [*map(str, both.columns)] == ["1.norm1"]
    assert [*map(str, own.coarse.rows)] == ["1", "2"]
    assert own.coarse.values.tolist() == [[1.0, 0.5], [0.5, 1.0]]
    page = cka_page(Board.of(frame(tapped(*places)), "mini"))
    table = page.numbers.frame
    assert [*table.columns[4:]] == [
        *("backbone", "layer", "mini-clip 1.mlp", "mini-clip 1", "mini-clip 2.norm1", "mini-clip 2"),
        "mini-dino 1.norm1",
    ]
    assert table.iloc[4, 4:].tolist() == [DINO, "1.norm1", *["0.5000"] * 4, "1.0000"]
    own, both = (block for block in page.blocks if type(block).__name__ == "HeatMap")
    assert own.panels[0].titles == (CLIP, CLIP)
    assert both.panels[0].titles == (CLIP, DINO)
    assert own.panels[0].names == (("1.mlp", "1", "2.norm1", "2"),) * 2
    assert all(panel.upward for panel in (*own.panels, *both.panels))
    assert "![" in markdown_page(page)


def test_layers_with_few_directions_for_their_backbone_have_a_star_and_a_sentence():
    planted = {
        (CLIP, 1, "mlp"): 1.9,
        (CLIP, 1, "block"): 20.0,
        (CLIP, 2, "block"): 20.0,
        (DINO, 1, "block"): 1.9,
        (DINO, 2, "block"): 3.0,
    }
    few = [
        pair(*(name, layer, name, -1, value), tap=tap, metric="directions")
        for (name, layer, tap), value in planted.items()
    ]
    rows = frame(tapped(*planted), few)
    [cka] = cka_maps(Board.of(rows, "mini"))
    own, other = cka.matrices(own=True)
    assert own.names == (("1.mlp*", "1", "2"),) * 2
    assert own.coarse.names == (("1", "2"),) * 2
    assert other.names == (("1", "2"),) * 2
    [both] = cka.matrices(own=False)
    assert both.turned.names == (("1", "2"), ("1.mlp*", "1", "2"))
    page = cka_page(Board.of(rows, "mini"))
    assert "mini-clip: 1.mlp." in markdown_page(page)
    assert "`*`" not in markdown_page(cka_page(Board.of(frame(tapped(*planted)), "mini")))


def test_a_blank_row_is_named_with_its_reason():
    same = "features do not vary or are not finite"
    rows = tapped((CLIP, 1, "norm1"), (CLIP, 1, "block"))
    rows = [
        replace(one, value=NAN, reason=same) if "norm1" in (one.tap, one.other_tap) else one for one in rows
    ]
    text = markdown_page(cka_page(Board.of(frame(rows), "mini")))
    assert f"Blank rows and columns ({same}): mini-clip: 1.norm1." in text


def test_nothing_is_drawn_of_a_board_without_numbers():
    assert cka_page(Board.of(frame(layers([50.0])), "mini")) is None
    unknown = frame([pair(CLIP, 1, CLIP, 1, NAN)])
    assert cka_page(Board.of(unknown, "mini")) is None


def matrix(values, error=0.0):
    values = np.asarray(values, float)
    rows, columns = (tuple(Layer(index + 1) for index in range(count)) for count in values.shape)
    return LayerCka("t", "a", "b", rows, columns, values, np.full(values.shape, error))


def planted(rows=8, columns=16, slope=0.25):
    """A backbone whose layers lie in the lowest quarter of another."""
    where = np.arange(columns)[None, :] - slope * columns / rows * np.arange(rows)[:, None]
    return 0.9 - 0.05 * np.abs(where - 0.1)


def test_the_lower_half_of_a_planted_pair_lies_where_it_was_put():
    lower, upper = depths_of(matrix(planted()))
    assert lower.share == lower.low == lower.high < 0.25
    assert 0.15 < upper.share < 0.3
    unknown, _ = depths_of(matrix(planted(), NAN))
    assert unknown.share == lower.share
    assert str(unknown) == f"{100 * lower.share:.0f} %"


def test_a_missing_row_and_a_single_row_say_nothing():
    values = planted()
    values[0] = np.nan
    lower, _ = depths_of(matrix(values))
    assert lower.share > 0
    assert depths_of(matrix(values[:2])) == []


@pytest.mark.parametrize("together", [0.0, 0.9, -0.5])
def test_the_interval_of_depths_holds_whatever_the_correlation(together):
    """Errors of one row's cells with one another: independent, alike, or opposed in neighbours."""
    random, error, missed = np.random.default_rng(0), 0.03, 0
    true = planted()
    expected = depths_of(matrix(true))
    sign = np.where(np.arange(true.shape[1]) % 2, np.sign(together) or 1.0, 1.0)
    for _ in range(200):
        shared = random.standard_normal((true.shape[0], 1)) * sign
        alone = random.standard_normal(true.shape)
        weight = abs(together)
        noise = error * (np.sqrt(weight) * shared + np.sqrt(1 - weight) * alone)
        halves = depths_of(matrix(true + noise, error))
        missed += any(
            not each.low <= wanted.share <= each.high for each, wanted in zip(halves, expected, strict=True)
        )
    assert missed <= 10


def test_one_undefined_layer_is_one_empty_cell():
    places = [(CLIP, 1, "norm1"), (CLIP, 1, "block"), (DINO, 1, "block")]
    undefined = [
        replace(one, value=NAN, reason="features do not vary") if "norm1" in (one.tap, one.other_tap) else one
        for one in tapped(*places)
    ]
    line = "mini-clip: cka on mini-imagenet (standard), layer norm1 of 1: features do not vary."
    assert empty_cells(Board.of(frame(undefined), "mini")) == [line]
    patches = [replace(one, pooling="patch") for one in tapped(*places)]
    named = line.replace("standard), ", "standard), class token, ")
    assert empty_cells(Board.of(frame(undefined, patches), "mini")) == [named]
