"""Published numbers whose protocol leaves settings open, and those of the better of two places."""

from dataclasses import replace

import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.findings.reproduce import Published, reproduce
from layerboard.leaderboards.published.literature import all_published
from layerboard.leaderboards.records.record import Record, to_frame
from layerboard.leaderboards.sections.published import published_table
from layerboard.leaderboards.sections.tables import kind_table, metrics_table
from tests.leaderboards.builder import NAN, layers, record
from tests.leaderboards.findings.test_reproduce import DAVIS as PRINTED

DAVIS = {"task": "davis", "dataset": "davis-2017-val", "pooling": "grid", "depth": 3, "input_size": 448}
NUMBER = replace(
    PRINTED,
    source="pe-paper",
    backbone="mini-dino",
    protocol="dinov3-960",
    layer=2,
    chosen_decimals=None,
    value=50.0,
    decimals=1,
    printed="percent",
    input_size=448,
)


def spanned(
    scores: list[float], lowest: list[float], highest: list[float], width: float = 1.0, **changes: object
) -> list[Record]:
    """Blocks with the scores of a protocol, and their ends over its open settings, with such intervals."""
    rows = []
    for metric, values in (("J&F", scores), ("J&F lowest", lowest), ("J&F highest", highest)):
        every = layers(values, **DAVIS | {"protocol": "dinov3-960"} | changes, metric=metric)
        rows += [
            replace(
                row,
                primary=metric == "J&F",
                maybe_best=metric == "J&F" and row.layer == 2,
                ci_low=row.value - width,
                ci_high=row.value + width,
            )
            for row in every
        ]
    return rows


def found(number: Published, records: list[Record]) -> "pd.Series":
    return reproduce(to_frame(records), [number]).iloc[0]


OPEN = spanned([40.0, 44.0, 42.0], [39.0, 41.0, 41.5], [45.0, 46.0, 48.0])


@pytest.mark.parametrize(
    ("value", "verdict"), [(40.4, "off"), (40.5, "agrees"), (44.0, "agrees"), (49.0, "agrees"), (49.1, "off")]
)
def test_a_number_agrees_if_some_open_setting_may_give_it(value: float, verdict: str) -> None:
    """Each end is that of the layer where it is highest, as each setting has a best layer of its own."""
    told = found(replace(NUMBER, value=value, decimals=2), OPEN)
    assert told["verdict"] == verdict
    assert told[["measured", "measured_layer", "lowest", "highest"]].tolist() == [44.0, 2, 41.5, 48.0]
    assert told[["ci_low", "ci_high"]].tolist() == [40.5, 49.0]


def test_a_single_layer_has_its_own_span() -> None:
    told = found(replace(NUMBER, rule="layer", layer=1), OPEN)
    assert told[["measured", "lowest", "highest"]].tolist() == [40.0, 39.0, 45.0]
    assert pd.isna(found(replace(NUMBER, rule="final", tap="final", layer=None), OPEN)["lowest"])


def test_the_table_says_the_span_and_what_the_published_layer_is() -> None:
    cells = published_table(reproduce(to_frame(OPEN), [NUMBER, replace(NUMBER, layer=3)]))
    assert cells["published"].tolist() == ["50.0 (2: the same)", "50.0 (3: worse)"]
    assert set(cells["measured"]) == {"44.00 (2: 2 not shown to be worse); 41.50 to 48.00 by open settings"}


def test_a_protocol_beside_another_widens_its_span_and_is_missed() -> None:
    """Whether Perception Encoder's frames keep their proportions is not said."""
    number = replace(NUMBER, protocol="pe", value=52.0)
    frames = spanned([40.0, 44.0, 42.0], [39.0, 41.0, 41.5], [45.0, 46.0, 48.0], protocol="pe")
    squares = spanned([50.0, 48.0, 42.0], [49.0, 41.0, 41.5], [51.5, 46.0, 48.0], protocol="pe-squares")
    alone, both = found(number, frames), found(number, frames + squares)
    assert alone[["verdict", "lowest", "highest"]].tolist() == ["off", 41.5, 48.0]
    assert alone["reason"] == "pe-squares, which the source may mean, was not run"
    assert both[["verdict", "lowest", "highest"]].tolist() == ["agrees", 41.5, 51.5]
    assert both[["reason", "measured", "measured_layer"]].tolist() == ["", 44.0, 2]
    part = [replace(row, partial=True, coverage="5 of 30 videos") for row in squares]
    assert found(number, frames + part)["verdict"] == "off"  # a part of the data widens nothing
    assert found(number, squares)["verdict"] == "not run"


def test_without_intervals_nothing_is_judged() -> None:
    bare = [replace(row, ci_low=NAN, ci_high=NAN) for row in OPEN]
    told = found(NUMBER, bare)
    assert told["verdict"] == "no interval"
    assert told[["lowest", "highest"]].tolist() == [41.5, 48.0]


@pytest.mark.parametrize(
    ("last", "final", "measured", "place"), [(55.0, 57.0, 57.0, "with"), (58.0, 57.0, 58.0, "without")]
)
def test_the_better_of_with_and_without_the_final_norm(
    last: float, final: float, measured: float, place: str
) -> None:
    number = replace(NUMBER, task="spair", metric="PCK@0.1", rule="either", layer=None, protocol="dinov3")
    run = DAVIS | {"task": "spair", "metric": "PCK@0.1", "protocol": "dinov3"}
    rows = layers([60.0, 61.0, last], final, **run)
    told = found(number, rows)
    assert told[["measured", "measured_layer", "reason"]].tolist() == [
        measured,
        3,
        f"{place} the final norm; no interval was computed",
    ]
    told = found(number, rows[:-1])
    assert told[["verdict", "reason"]].tolist() == [
        "not run",
        "the better of two places is published, and the output of the final norm was not run",
    ]
    lonely = found(number, [record(**run, layer=3, tap="final", value=57.0)])
    assert lonely["reason"].endswith("and the last block was not run")


@pytest.mark.parametrize(
    ("best", "maybe", "index"),
    [(32, (32,), "the same"), (30, (30, 31, 32), "not shown to be worse"), (40, (40, 41), "worse")],
)
def test_the_layer_that_perception_encoder_prints_is_ours_or_not(
    best: int, maybe: tuple[int, ...], index: str
) -> None:
    """Planted: block 32 of 50 of its core model has 56.8, the last block 42.8."""
    ours = ("pe-core-g14", "davis", "pe-paper")
    numbers = [one for one in all_published() if (one.backbone, one.task, one.source) == ours]
    values = [57.0 if layer == best else 42.5 for layer in range(1, 51)]
    rows = layers(
        values, **DAVIS | {"depth": 50, "backbone": "pe-core-g14", "protocol": "pe", "metric": "J&F"}
    )
    rows = [
        replace(row, maybe_best=row.layer in maybe, ci_low=row.value - 1, ci_high=row.value + 1)
        for row in rows
    ]
    told = reproduce(to_frame(rows), numbers).set_index("rule")
    assert told["verdict"].tolist() == ["agrees", "agrees"]
    assert told.loc["best", ["published_layer", "measured_layer", "index"]].tolist() == [32, best, index]
    assert told.loc["last", "measured_layer"] == 50


def test_a_page_shows_both_ends_as_metrics_of_all_objects() -> None:
    column = Board.of(to_frame(OPEN)).columns[0]
    assert list(metrics_table(column).columns) == ["backbone", "J&F", "J&F highest", "J&F lowest"]
    assert kind_table(column).empty
