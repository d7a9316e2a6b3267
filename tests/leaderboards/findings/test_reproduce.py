"""Published numbers beside what was measured: verdicts, layers that may be best, spans of open settings."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.findings.reproduce import COLUMNS, VERDICTS, counts, reproduce
from layerboard.leaderboards.published.literature import Published, all_published
from layerboard.leaderboards.records.record import Record, to_frame
from layerboard.leaderboards.sections.published import published_table
from layerboard.leaderboards.sections.tables import kind_table, metrics_table
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


def told(published: Published, *records: Record) -> dict[str, object]:
    """What is said of one number beside some records; None where nothing is."""
    found = reproduce(to_frame(records), [published])
    assert list(found.columns) == list(COLUMNS)
    assert found["verdict"].iloc[0] in VERDICTS
    return {name: None if pd.isna(cell) else cell for name, cell in found.iloc[0].items()}


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
        (60.0, 55.0, NAN, "no interval"),
    ],
)
def test_the_printed_number_must_meet_the_interval(value, low, high, verdict):
    found = told(README, final(value, low, high))
    assert found["verdict"] == verdict
    assert found["difference"] == pytest.approx(value - 76.1)
    assert (found["ci_low"] is None) == (found["ci_high"] is None) == pd.isna(high)
    assert found["reason"] == ("no interval was computed" if pd.isna(high) else "")


COARSE = replace(README, value=33.0, decimals=0, printed="fraction")
TOP5 = replace(BEST, metric="top-5")
OTHER_TOP5 = {"metric": "top-5", "primary": False}
DAVIS_RUN = PAPER | {
    "task": "davis",
    "dataset": "davis-2017-val",
    "metric": "J&F",
    "pooling": "grid",
    "depth": 4,
}
LATER = {"date": "2026-11-21T10:00:00+00:00"}
RANDOM = replace(README, backbone="random", rule="draws", tap="block", value=0.10, decimals=2)
DRAWS = floor([0.09, 0.1, 0.114], dataset="imagenet", input_size=224)
NO_SCORE = "its features are all equal"
BLOCKS = layers([1.0, 2.0, 3.0], 4.0, **RUN)
CASES = {
    "a coarse number reaches further": (COARSE, [final(33.7, 33.5, 33.9)], {"verdict": "agrees"}),
    "and not too far": (COARSE, [final(33.7, 33.6, 33.9)], {"verdict": "off"}),
    "the best block is compared whatever block was published": (
        BEST,
        [
            *layers([70.0, 76.0, 75.0], 99.0, **PAPER, ci_low=75.9, ci_high=76.3),
            record(**PAPER, layer=0, value=98.0),
        ],
        {"measured": 76.0, "measured_layer": 2, "published_layer": 3, "verdict": "agrees"},
    ),
    "metrics that no page shows are compared, too": (
        TOP5,
        [*layers([1, 2, 3], **PAPER), *layers([9, 8, 7], **PAPER, **OTHER_TOP5)],
        {"measured": 9, "measured_layer": 1},
    ),
    "of layers that were equal to the source, the first": (
        DAVIS,
        layers([59.0, 60.01, 60.04, 60.02], **DAVIS_RUN),
        {"measured_layer": 2, "measured": 60.01},
    ),
    "which others are not": (
        replace(DAVIS, chosen_decimals=None),
        layers([59.0, 60.01, 60.04, 60.02], **DAVIS_RUN),
        {"measured_layer": 3},
    ),
    "the best of some blocks is not the best": (
        BEST,
        layers([70.0, 76.0], **PAPER),
        {
            "verdict": "not run",
            "reason": "the best of all 3 layers is published; layers that were run: 1, 2",
            "measured": None,
        },
    ),
    "nor that of none": (
        BEST,
        [final(protocol="paper")],
        {"reason": "the best of all 3 layers is published; layers that were run: none"},
    ),
    "a block without a score counts as run": (
        BEST,
        layers([70.0, NAN, 75.0], **PAPER),
        {"measured": 75.0, "measured_layer": 3},
    ),
    "blocks without any score say why": (
        TOP5,
        layers([NAN, NAN, NAN], **PAPER),
        {"verdict": "no score", "reason": NO_SCORE, "measured": None},
    ),
    "or that the metric is another": (
        TOP5,
        layers([1.0, 2.0, 3.0], **PAPER),
        {"verdict": "no score", "reason": "no top-5 was computed"},
    ),
    "the final norm": (README, BLOCKS, {"measured": 4.0}),
    "the last block": (replace(README, rule="last", tap="block"), BLOCKS, {"measured": 3.0}),
    "one block": (replace(README, rule="layer", tap="block", layer=2), BLOCKS, {"measured": 2.0}),
    "a block that was not run": (
        replace(README, rule="layer", tap="block", layer=2),
        layers([1.0], **RUN),
        {"verdict": "not run", "reason": "layer 2 was not run"},
    ),
    "the newest record counts": (README, [final(76.1, **LATER), final(70.0)], {"measured": 76.1}),
    "the record of the widest format counts, also where it is older": (
        README,
        [final(76.1), final(70.0, backbone="dino-b16@bfloat16", dtype="bfloat16", **LATER)],
        {"measured": 76.1},
    ),
    "another size is another measurement": (
        README,
        [final(input_size=518)],
        {"verdict": "not run", "reason": "run at 518 px, published at 224 px"},
    ),
    "also where it is newer": (
        README,
        [final(76.1), final(80.0, input_size=518, **LATER)],
        {"measured": 76.1},
    ),
    "partial data are shown and not judged": (
        README,
        [final(76.1, 76.0, 76.2, partial=True, coverage="10 of 20 images")],
        {"verdict": "partial data", "reason": "10 of 20 images", "difference": 0},
    ),
    "what cannot be compared says why": (
        replace(README, protocol="none", not_comparable="it is disputed"),
        [final(76.1)],
        {"verdict": "not comparable", "reason": "it is disputed", "measured": None},
    ),
    "the random floor is the mean of its draws": (
        RANDOM,
        DRAWS,
        {
            "measured": pytest.approx(0.1013),
            "measured_layer": None,
            "verdict": "agrees",
            "reason": "mean of 3 draws; no interval was computed",
        },
    ),
    "or of a part of the data": (
        RANDOM,
        [replace(draw, partial=True, coverage="half") for draw in DRAWS],
        {"verdict": "partial data"},
    ),
    "or was not drawn": (replace(RANDOM, metric="top-5"), DRAWS, {"verdict": "not run"}),
    "transformed features are another measurement": (
        README,
        [final(76.1), final(90.0, transform="whiten")],
        {"measured": 76.1},
    ),
    "which alone is none": (
        README,
        [final(90.0, transform="whiten")],
        {"reason": "run with a transform only"},
    ),
}


@pytest.mark.parametrize(("published", "records", "expected"), CASES.values(), ids=CASES)
def test_what_is_measured_and_judged(published, records, expected):
    found = told(published, *records)
    assert {name: found[name] for name in expected} == expected


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
    found = told(README, final(**change))
    assert (found["verdict"], found["reason"]) == ("not run", reason)


def test_without_records_nothing_was_run_and_nothing_is_hidden():
    found = reproduce(to_frame([]), all_published())
    assert len(found) == len(all_published())
    assert counts(found) == dict.fromkeys(VERDICTS, 0) | {
        "not run": sum(one.comparable for one in all_published()),
        "not comparable": sum(not one.comparable for one in all_published()),
    }
    assert (found["reason"] != "").all()


def test_order_and_counts_follow_the_published_numbers_and_the_registry_is_named():
    others = [replace(README, backbone=name) for name in ("dino-b8", "dino-b16", "mine")]
    found = reproduce(frame([final(76.1), final(50.0, 49.0, 51.0, backbone="mine")]), others, {"dino-b16"})
    assert found["verdict"].tolist() == ["not run", "agrees", "off"]
    assert counts(found) == dict.fromkeys(VERDICTS, 0) | {"agrees": 1, "off": 1, "not run": 1}
    lacking = "there are records of the backbone dino-b16, mine, not dino-b8; not in the registry"
    assert found["reason"].tolist() == [lacking, "no interval was computed", ""]


def test_json_has_null_where_there_is_nothing():
    rows = json.loads(reproduce(to_frame([final(76.1)]), [README, BEST]).to_json(orient="records"))
    assert [(row["measured"], row["measured_layer"], row["published_layer"]) for row in rows] == [
        (76.1, 3, None),
        (None, None, 3),
    ]


# blocks that may be the best


def compared(maybe, values=(70.0, 76.0, 75.0), **changes):
    """Blocks of which some are not shown to be worse than the best."""
    rows = layers(values, **(PAPER | changes), ci_low=60.0, ci_high=80.0)
    return [replace(row, maybe_best=row.layer in maybe) for row in rows]


@pytest.mark.parametrize(
    ("published", "maybe", "index", "cell"),
    [
        (2, (2,), "the same", "76.1 (2: the same)"),
        (2, (2, 3), "the same", "76.1 (2: the same)"),
        (3, (2, 3), "not shown to be worse", "76.1 (3: not shown to be worse)"),
        (3, (2,), "worse", "76.1 (3: worse)"),
        (1, (2, 3), "worse", "76.1 (1: worse)"),
        (None, (2, 3), "", "76.1"),
        (3, (), None, "76.1 (3)"),
    ],
)
def test_a_published_layer_is_ours_or_may_be_or_is_not(published, maybe, index, cell):
    number, records = replace(BEST, layer=published), compared(maybe)
    found, ours = told(number, *records), ", ".join(map(str, maybe))
    assert (found["index"], found["maybe_layers"], found["measured_layer"]) == (index, ours or None, 2)
    (row,) = published_table(reproduce(to_frame(records), [number])).to_dict("records")
    assert row["published"] == cell
    assert row["measured"] == (f"76.00 (2: {ours} not shown to be worse)" if maybe else "76.00 (2)")


def test_layers_are_those_of_one_pooling_and_of_the_best_one():
    mean = compared((1, 2), (75.9, 75.8, 70.0), pooling="mean", primary=False)
    assert told(BEST, *compared((2, 3)), *mean)["maybe_layers"] == "2, 3"
    mean = compared((1,), (80.0, 70.0, 70.0), pooling="mean", primary=False)
    assert told(BEST, *compared(()), *mean)["index"] is None


# protocols that leave settings open, and the better of two places

OPEN_RUN = {"task": "davis", "dataset": "davis-2017-val", "pooling": "grid", "depth": 3, "input_size": 448}
NUMBER = replace(
    DAVIS,
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


def spanned(scores, lowest, highest, **changes):
    """Blocks with the scores of a protocol, and their ends over its open settings, with intervals of ± 1."""
    rows = []
    for metric, values in (("J&F", scores), ("J&F lowest", lowest), ("J&F highest", highest)):
        usual = {"protocol": "dinov3-960", "metric": metric, "primary": metric == "J&F"}
        for row in layers(values, **OPEN_RUN | usual | changes):
            maybe = metric == "J&F" and row.layer == 2
            rows.append(replace(row, maybe_best=maybe, ci_low=row.value - 1, ci_high=row.value + 1))
    return rows


OPEN = spanned([40.0, 44.0, 42.0], [39.0, 41.0, 41.5], [45.0, 46.0, 48.0])
SPAN = ("measured", "lowest", "highest")


@pytest.mark.parametrize(
    ("value", "verdict"), [(40.4, "off"), (40.5, "agrees"), (44.0, "agrees"), (49.0, "agrees"), (49.1, "off")]
)
def test_a_number_agrees_if_some_open_setting_may_give_it(value, verdict):
    """Each end is that of the layer where it is highest, as each setting has a best layer of its own."""
    number = replace(NUMBER, value=value, decimals=2)
    found = told(number, *OPEN)
    assert (found["verdict"], found["measured_layer"]) == (verdict, 2)
    assert [found[name] for name in (*SPAN, "ci_low", "ci_high")] == [44.0, 41.5, 48.0, 40.5, 49.0]
    bare = told(number, *(replace(row, ci_low=NAN, ci_high=NAN) for row in OPEN))
    assert [bare[name] for name in SPAN] == [44.0, 41.5, 48.0]
    assert value == 44.0 or bare["verdict"] == "no interval"


def test_a_single_layer_has_its_own_span():
    found = told(replace(NUMBER, rule="layer", layer=1), *OPEN)
    assert [found[name] for name in SPAN] == [40.0, 39.0, 45.0]
    assert told(replace(NUMBER, rule="final", tap="final", layer=None), *OPEN)["lowest"] is None


def test_tables_say_the_span():
    cells = published_table(reproduce(to_frame(OPEN), [NUMBER]))
    assert set(cells["measured"]) == {"44.00 (2: 2 not shown to be worse); 41.50 to 48.00 by open settings"}
    (column,) = Board.of(to_frame(OPEN)).columns
    assert list(metrics_table(column).columns) == ["backbone", "J&F", "J&F highest", "J&F lowest"]
    assert kind_table(column).empty


def test_a_protocol_beside_another_widens_its_span_and_is_missed():
    """Whether Perception Encoder's frames keep their proportions is not said."""
    number = replace(NUMBER, protocol="pe", value=52.0)
    frames = spanned([40.0, 44.0, 42.0], [39.0, 41.0, 41.5], [45.0, 46.0, 48.0], protocol="pe")
    squares = spanned([50.0, 48.0, 42.0], [49.0, 41.0, 41.5], [51.5, 46.0, 48.0], protocol="pe-squares")
    part = [replace(row, partial=True, coverage="5 of 30 videos") for row in squares]
    facts = ("verdict", "lowest", "highest", "reason")
    missed = ["off", 41.5, 48.0, "pe-squares, which the source may mean, was not run"]
    for records, expected in (
        (frames, missed),
        (frames + squares, ["agrees", 41.5, 51.5, ""]),
        (frames + part, missed),  # a part of the data widens nothing
    ):
        found = told(number, *records)
        assert [found[name] for name in facts] == expected
        assert (found["measured"], found["measured_layer"]) == (44.0, 2)
    assert told(number, *squares)["verdict"] == "not run"


def test_the_better_of_with_and_without_the_final_norm():
    number = replace(NUMBER, task="spair", metric="PCK@0.1", rule="either", layer=None, protocol="dinov3")
    run = OPEN_RUN | {"task": "spair", "metric": "PCK@0.1", "protocol": "dinov3"}
    for last, measured, where in ((55.0, 57.0, "with"), (58.0, 58.0, "without")):
        blocks = layers([60.0, 61.0, last], 57.0, **run)
        found = told(number, *blocks)
        assert (found["measured"], found["measured_layer"]) == (measured, 3)
        assert found["reason"] == f"{where} the final norm; no interval was computed"
    start = "the better of two places is published, and the "
    for records, absent in ((blocks[:-1], "output of the final norm"), (blocks[-1:], "last block")):
        found = told(number, *records)
        assert (found["verdict"], found["reason"]) == ("not run", f"{start}{absent} was not run")
