"""Verdicts on records that are made up around published numbers."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from layerboard.leaderboards.findings.reproduce import COLUMNS, VERDICTS, counts, reproduce
from layerboard.leaderboards.published.literature import Published, all_published
from layerboard.leaderboards.records.record import to_frame
from tests.leaderboards.builder import NAN, floor, frame, layers, record

README = Published(
    source="dino-readme",
    table="pretrained models",
    backbone="dino-b16",
    task="knn",
    dataset="imagenet",
    protocol="standard",
    metric="top-1",
    pooling="cls",
    tap="final",
    rule="final",
    layer=None,
    chosen_decimals=None,
    value=76.1,
    decimals=1,
    printed="percent",
    second_hand=False,
    not_comparable="",
    conditions="k = 20",
)
BEST = replace(README, protocol="paper", tap="block", rule="best", layer=3)
DAVIS = replace(
    BEST,
    task="davis",
    dataset="davis-2017-val",
    metric="J&F",
    pooling="grid",
    chosen_decimals=1,
    value=60.0,
    decimals=0,
    printed="fraction",
)
RUN = {"backbone": "dino-b16", "dataset": "imagenet", "input_size": 224, "depth": 3}
PAPER = RUN | {"protocol": "paper"}


def final(value=76.0, low=NAN, high=NAN, **changes):
    place = RUN | {"layer": 3, "tap": "final", "value": value, "ci_low": low, "ci_high": high}
    return record(**(place | changes))


def one(published, *records):
    found = reproduce(to_frame(records), [published])
    assert list(found.columns) == list(COLUMNS)
    assert found["verdict"].iloc[0] in VERDICTS
    return found.iloc[0]


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (76.0, 75.6, 76.4, "agrees"),
        (75.8, 75.5, 76.05, "agrees"),
        (75.8, 75.5, 76.04, "off"),
        (76.4, 76.15, 76.7, "agrees"),
        (76.4, 76.16, 76.7, "off"),
        (76.149, NAN, NAN, "agrees"),
        (76.15, NAN, NAN, "agrees"),
        (76.151, NAN, NAN, "no interval"),
        (60.0, NAN, NAN, "no interval"),
        (60.0, 55.0, NAN, "no interval"),
    ],
)
def test_the_printed_number_must_meet_the_interval(value, low, high, verdict):
    found = one(README, final(value, low, high))
    assert found["verdict"] == verdict
    assert found["difference"] == pytest.approx(value - 76.1)
    assert pd.isna(found["ci_low"]) == pd.isna(found["ci_high"]) == pd.isna(high)
    assert found["reason"] == ("no interval was computed" if pd.isna(high) else "")


def test_a_coarse_number_reaches_further():
    coarse = replace(README, value=33.0, decimals=0, printed="fraction")
    assert one(coarse, final(33.7, 33.5, 33.9))["verdict"] == "agrees"
    assert one(coarse, final(33.7, 33.6, 33.9))["verdict"] == "off"


def test_the_best_block_is_compared_whatever_block_was_published():
    records = layers([70.0, 76.0, 75.0], 99.0, **PAPER, ci_low=75.9, ci_high=76.3)
    found = one(BEST, *records, record(**PAPER, layer=0, value=98.0))
    assert (found["measured"], found["measured_layer"], found["published_layer"]) == (76.0, 2, 3)
    assert found["verdict"] == "agrees"


def test_metrics_that_no_page_shows_are_compared_too():
    top1 = layers([1, 2, 3], **PAPER)
    top5 = layers([9, 8, 7], **PAPER, metric="top-5", primary=False)
    found = one(replace(BEST, metric="top-5"), *top1, *top5)
    assert (found["measured"], found["measured_layer"]) == (9, 1)


def test_equal_layers_are_those_that_were_equal_to_the_source():
    run = PAPER | {"task": "davis", "dataset": "davis-2017-val", "metric": "J&F", "pooling": "grid"}
    records = layers([59.0, 60.04, 60.01, 60.02], **(run | {"depth": 4}))
    assert one(DAVIS, *records)["measured_layer"] == 2
    records = layers([59.0, 60.01, 60.04, 60.02], **(run | {"depth": 4}))
    assert one(DAVIS, *records)[["measured_layer", "measured"]].tolist() == [2, 60.01]
    assert one(replace(DAVIS, chosen_decimals=None), *records)["measured_layer"] == 3


def test_the_best_of_some_blocks_is_not_the_best():
    found = one(BEST, *layers([70.0, 76.0], **PAPER))
    assert found["verdict"] == "not run"
    assert found["reason"] == "the best of all 3 layers is published; layers that were run: 1, 2"
    assert pd.isna(found["measured"])
    found = one(BEST, final(protocol="paper"))
    assert found["reason"].endswith("run: none")


def test_a_block_without_a_score_counts_as_run():
    found = one(BEST, *layers([70.0, NAN, 75.0], **PAPER))
    assert (found["measured"], found["measured_layer"]) == (75.0, 3)
    found = one(BEST, *layers([NAN, NAN, NAN], **PAPER))
    assert (found["verdict"], found["reason"]) == ("no score", "its features are all equal")
    assert pd.isna(found["measured"])
    found = one(replace(BEST, metric="top-5"), *layers([NAN, NAN, NAN], **PAPER))
    assert (found["verdict"], found["reason"]) == ("no score", "its features are all equal")
    found = one(replace(BEST, metric="top-5"), *layers([1.0, 2.0, 3.0], **PAPER))
    assert (found["verdict"], found["reason"]) == ("no score", "no top-5 was computed")


@pytest.mark.parametrize(
    ("rule", "layer", "measured"), [("final", None, 4.0), ("last", None, 3.0), ("layer", 2, 2.0)]
)
def test_other_rules_take_one_place(rule, layer, measured):
    tap = "final" if rule == "final" else "block"
    published = replace(README, rule=rule, layer=layer, tap=tap)
    found = one(published, *layers([1.0, 2.0, 3.0], 4.0, **RUN))
    assert found["measured"] == measured
    lonely = one(published, *layers([1.0], **RUN))
    assert lonely["verdict"] == "not run"
    assert lonely["reason"].endswith("was not run")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"backbone": "dino-b8"}, "there are records of the backbone dino-b8, not dino-b16"),
        ({"backbone": "dino-b16@fast-resize"}, "there are no records"),
        ({"task": "cluster-image"}, "records of dino-b16 have the task cluster-image, not knn"),
        ({"dataset": "mine"}, "records of dino-b16, knn have the dataset mine, not imagenet"),
        ({"protocol": "paper"}, "records of dino-b16, knn, imagenet have the protocol paper, not standard"),
        ({"pooling": "mean"}, "records of dino-b16, knn, imagenet, standard have the pooling mean, not cls"),
        ({"trained": False}, "there are no records"),
        ({"other": "dino-s8", "other_layer": 3, "other_tap": "final"}, "there are no records"),
    ],
)
def test_records_of_something_else_do_not_count_and_differ_in_what_is_said(change, reason):
    assert one(README, final(**change))[["verdict", "reason"]].tolist() == ["not run", reason]


def test_the_widest_format_is_compared():
    """The record in bfloat16 is newer, but the number is not known to be of bfloat16."""
    narrow = {"backbone": "dino-b16@bfloat16", "dtype": "bfloat16", "date": "2026-11-21T10:00:00+00:00"}
    found = reproduce(frame([final(76.1), final(70.0, **narrow)]), [README])
    assert found["measured"].tolist() == [76.1]
    assert reproduce(frame([final(70.0, **narrow)]), [README])["measured"].tolist() == [70.0]


def test_another_input_size_is_another_measurement():
    found = one(README, final(input_size=518))
    assert (found["verdict"], found["reason"]) == ("not run", "run at 518 px, published at 224 px")
    later = final(input_size=518, value=80.0, date="2027-01-01T00:00:00+00:00")
    assert one(README, final(76.1), later)["measured"] == 76.1


def test_the_newest_record_counts():
    old = final(70.0, dtype="bfloat16")
    found = one(README, final(76.1, date="2026-11-21T10:00:00+00:00"), old)
    assert found["measured"] == 76.1


def test_partial_data_is_shown_but_not_judged():
    found = one(README, final(76.1, 76.0, 76.2, partial=True, coverage="10 of 20 images"))
    assert found[["verdict", "reason"]].tolist() == ["partial data", "10 of 20 images"]
    assert found["difference"] == 0


def test_what_cannot_be_compared_says_why():
    published = replace(README, protocol="none", not_comparable="it is disputed")
    found = one(published, final(76.1))
    assert found[["verdict", "reason"]].tolist() == ["not comparable", "it is disputed"]
    assert pd.isna(found["measured"])


def test_the_random_floor_is_the_mean_of_its_draws():
    published = replace(README, backbone="random", rule="draws", tap="block", value=0.10, decimals=2)
    draws = floor([0.09, 0.1, 0.114], dataset="imagenet", input_size=224)
    found = one(published, *draws)
    assert found["measured"] == pytest.approx(0.1013)
    assert pd.isna(found["measured_layer"])
    assert found[["verdict", "reason"]].tolist() == ["agrees", "mean of 3 draws; no interval was computed"]
    partial = [replace(draw, partial=True, coverage="half") for draw in draws]
    assert one(published, *partial)["verdict"] == "partial data"
    assert one(replace(published, metric="top-5"), *draws)["verdict"] == "not run"


def test_without_records_nothing_was_run_and_nothing_is_hidden():
    found = reproduce(to_frame([]), all_published())
    assert len(found) == len(all_published())
    assert counts(found) == dict.fromkeys(VERDICTS, 0) | {
        "not run": sum(one.comparable for one in all_published()),
        "not comparable": sum(not one.comparable for one in all_published()),
    }
    assert (found["reason"] != "").all()


def test_order_and_counts_follow_the_published_numbers():
    others = [replace(README, backbone=name) for name in ("dino-b8", "dino-b16", "dino-s8")]
    found = reproduce(frame([final(76.1), final(50.0, 49.0, 51.0, backbone="dino-s8")]), others)
    assert found["verdict"].tolist() == ["not run", "agrees", "off"]
    assert counts(found) == dict.fromkeys(VERDICTS, 0) | {"agrees": 1, "off": 1, "not run": 1}


def test_json_has_null_where_there_is_nothing():
    rows = json.loads(reproduce(to_frame([final(76.1)]), [README, BEST]).to_json(orient="records"))
    assert rows[0]["measured"] == 76.1
    assert rows[0]["measured_layer"] == 3
    assert rows[0]["ci_low"] is None
    assert rows[1]["measured"] is None
    assert rows[1]["published_layer"] == 3


def test_transformed_features_are_another_measurement():
    plain, transformed = (
        frame([final(value)]).assign(transform=how) for value, how in ((76.1, ""), (90.0, "whiten"))
    )
    found = reproduce(pd.concat([plain, transformed], ignore_index=True), [README])
    assert found["measured"].tolist() == [76.1]
    assert reproduce(transformed, [README])["reason"].tolist() == ["run with a transform only"]


def test_backbones_that_the_registry_lacks_are_named():
    others = [replace(README, backbone="capi"), README, replace(README, backbone="mine")]
    records = frame([final(76.1, 76.0, 76.2, backbone="mine")])
    reasons = reproduce(records, others, {"dino-b16"})["reason"].tolist()
    lacking = "there are records of the backbone mine, not"
    assert reasons == [f"{lacking} capi; not in the registry", f"{lacking} dino-b16", ""]
