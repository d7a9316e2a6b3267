"""Groups of published numbers that may be ranked, and scores of last blocks that an earlier one beats."""

from dataclasses import replace

import pandas as pd
import pytest

from layerboard.leaderboards.findings.literature import (
    COLUMNS,
    LEAST_GAIN,
    last_layer_only,
    literature,
    main_rows,
    printed_layer,
    published_answer,
    published_notes,
)
from layerboard.leaderboards.published.literature import all_published
from layerboard.leaderboards.records.record import to_frame
from layerboard.zoo.registry.find import all_specs
from tests.leaderboards.builder import NAN, layers
from tests.leaderboards.findings.test_reproduce import BEST, README

DEPTHS = {"dino-b16": 12, "dino-s16": 12}
REAL = {spec.name: spec.depth for spec in all_specs()}
OTHER = replace(README, backbone="dino-s16", value=74.5)
NONE = {"protocol": "none", "not_comparable": "k is not stated"}
LAST = replace(README, source="paper", table="Table 1", rule="last", tap="block", value=70.0, **NONE)
FIRST = replace(LAST, rule="best", layer=9, value=75.0)
"""A source that prints the last block of a network and the best."""


def grouped(*numbers):
    frame = literature(numbers, DEPTHS)
    assert list(frame.columns) == list(COLUMNS)
    return [[*part["value"]] for _, part in frame.groupby("group", sort=False)]


def test_numbers_of_one_protocol_are_one_group_whoever_printed_them() -> None:
    frame = literature([OTHER, replace(README, source="another", table="Table 2")], DEPTHS)
    assert frame[["group", "rank", "networks", "backbone"]].to_numpy().tolist() == [
        ["knn 1", 1, 2, "dino-b16"],
        ["knn 1", 2, 2, "dino-s16"],
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"task": "linear"},
        {"dataset": "mini-imagenet"},
        {"metric": "top-5"},
        {"protocol": "paper"},
        {"input_size": 448},
        {"rule": "best", "tap": "block"},
        NONE,
    ],
)
def test_what_was_measured_another_way_is_another_group(change) -> None:
    assert sorted(grouped(README, replace(OTHER, **change))) == [[74.5], [76.1]]


@pytest.mark.parametrize("change", [{"source": "other"}, {"table": "Table 9"}, {"conditions": "k = 10"}])
def test_without_a_protocol_numbers_of_one_table_and_its_conditions_are_a_group(change) -> None:
    first, second = replace(README, **NONE), replace(OTHER, **NONE)
    assert grouped(first, second) == [[76.1, 74.5]]
    assert sorted(grouped(first, replace(second, **change))) == [[74.5], [76.1]]


def test_the_last_block_and_the_final_norm_may_be_ranked_together() -> None:
    assert grouped(README, replace(OTHER, rule="last", tap="block")) == [[76.1, 74.5]]


def test_one_network_and_a_floor_have_no_rank_and_equal_numbers_have_the_same() -> None:
    (alone,) = literature([README], DEPTHS).to_dict("records")
    assert (pd.isna(alone["rank"]), alone["networks"]) == (True, 1)
    floor = replace(BEST, backbone="random", rule="draws", layer=None, value=99.0)
    third = replace(BEST, backbone="dino-b8", value=50.0)
    frame = literature([BEST, replace(BEST, backbone="dino-s16"), third, floor], DEPTHS)
    ranks = dict(zip(frame["backbone"], frame["rank"].astype(object), strict=True))
    assert ranks | {"random": None} == {"dino-b16": 1, "dino-s16": 1, "dino-b8": 3, "random": None}
    assert pd.isna(ranks["random"])


def test_a_lower_error_is_better() -> None:
    error = {"printed": "error", "metric": "RMSE", **NONE}
    frame = literature([replace(README, **error, value=0.3), replace(OTHER, **error, value=0.4)], DEPTHS)
    assert frame[["value", "rank", "better"]].to_numpy().tolist() == [[0.3, 1, "lower"], [0.4, 2, "lower"]]


def test_a_layer_is_told_as_it_was_printed() -> None:
    unknown = replace(BEST, backbone="siglip2-g16", layer=32)
    either = replace(LAST, rule="either")
    numbers = [
        README,
        BEST,
        replace(BEST, layer=None),
        LAST,
        unknown,
        replace(LAST, backbone="web-dino"),
        either,
    ]
    texts = [printed_layer(row) for one in numbers for row in literature([one], DEPTHS).to_dict("records")]
    told = ["12 of 12, final norm", "3 of 12", "best, not named", "12 of 12", "32", "last"]
    assert texts == [*told, "12 of 12, better of with and without final norm"]


def planted(*numbers, records=()):
    frame = last_layer_only(numbers, DEPTHS, to_frame(records))
    return frame[["backbone", "published", "layer", "gain", "better_by"]].fillna(-1.0).to_numpy().tolist()


def test_a_printed_index_that_beats_a_published_last_block_is_listed() -> None:
    row = [
        "dino-b16",
        "76.1 (dino-readme, pretrained models), 70.0 (paper, Table 1)",
        9,
        5.0,
        "paper, Table 1",
    ]
    assert planted(README, LAST, FIRST) == [row]


def test_a_small_gain_and_a_best_last_block_are_not() -> None:
    assert planted(LAST, replace(FIRST, value=70.0 + LEAST_GAIN)) == []
    assert len(planted(LAST, replace(FIRST, value=70.1 + LEAST_GAIN))) == 1
    assert planted(LAST, replace(FIRST, layer=12, value=70.0)) == []
    assert planted(README, replace(BEST, layer=12)) == []


@pytest.mark.parametrize(
    "change", [{"backbone": "dino-s16"}, {"task": "linear"}, {"dataset": "other"}, {"metric": "top-5"}]
)
def test_a_board_of_something_else_says_nothing(change) -> None:
    assert planted(README, replace(FIRST, **change)) == []


def test_a_best_layer_without_the_score_of_the_last_has_an_unknown_gain() -> None:
    (row,) = planted(README, BEST)
    assert row[2:4] == [3, -1.0]
    assert planted(README, replace(BEST, layer=None)) == []
    nameless = replace(README, backbone="web-dino"), replace(BEST, backbone="web-dino")
    assert planted(*nameless) == []  # of unknown depth, 3 may be the last block


def test_an_error_is_told_in_percent() -> None:
    error = {"printed": "error", "metric": "RMSE"}
    frame = last_layer_only([replace(LAST, **error, value=0.4), replace(FIRST, **error, value=0.3)], DEPTHS)
    assert frame[["gain", "unit"]].to_numpy().tolist() == [[25.0, "% less error"]]


def test_records_are_a_board_too() -> None:
    run = {"backbone": "dino-b16", "dataset": "imagenet"}
    (row,) = planted(README, records=layers([70.0, 76.0, 74.5], **run))
    assert row[2:] == [2, 1.5, "this run, standard"]
    assert planted(README, records=layers([70.0, 76.0, 75.5], **run)) == []
    assert planted(README, records=layers([76.0, NAN, NAN], **run)) == []  # the last has no score
    better = layers([70.0, 75.0, 76.0], **run, pooling="mean", primary=False)
    assert planted(README, records=[*layers([70.0, 76.0, 74.5], **run), *better]) == [row]
    assert planted(README, records=layers([70.0, 76.0, 74.5], **(run | {"backbone": "mini-fs"}))) == []


def test_the_largest_known_loss_of_a_last_layer() -> None:
    frame = last_layer_only(all_published(), REAL)
    assert frame[["backbone", "task", "layer", "gain"]].iloc[0].tolist() == ["aimv2-3b14", "davis", 13, 25.4]
    core = frame[(frame["backbone"] == "pe-core-g14") & (frame["task"] == "davis")].iloc[0]
    assert (core["layer"], core["depth"], core["gain"]) == (32, 50, 14.0)
    assert core["published"].startswith("42.8 (pe-paper, Table 13), ")
    dino = frame[(frame["backbone"] == "dino-b8") & (frame["metric"] == "J&F")].iloc[0]
    assert (dino["layer"], dino["better_by"]) == (11, "teaching-matters, Table 4")
    assert pd.isna(dino["gain"])


def test_an_answer_has_the_main_metric_of_each_group() -> None:
    frame = literature(all_published(), REAL)
    rows = main_rows(frame[(frame["task"] == "spair") & (frame["networks"] > 1)], 2)
    assert set(rows["metric"]) == {"PCK@0.1", "unstated"}
    assert rows["rank"].tolist() == [1, 2] * rows["group"].nunique()
    table = published_answer(rows)
    assert table.iloc[0].tolist() == [
        *("spair 1", "1 of 20", "beit-l16", "15 of 24", "37.52 PCK@0.1", "teaching-matters, Table 5")
    ]
    notes = published_notes(rows)
    assert notes[0] == "spair 1: spair-71k-test; paper, best layer."
    assert any(note.startswith("teaching-matters: Walmer et al.") for note in notes)
