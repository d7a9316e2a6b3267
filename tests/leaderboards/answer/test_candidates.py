"""Choices among planted layers with known answers: limits, confidence sets, Pareto fronts, several tasks."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.answer.answer import Answer, answers_of
from layerboard.leaderboards.answer.candidates import CANDIDATE, Candidate, apply_limits, exempt
from layerboard.leaderboards.answer.choice import choose, least_loss, pareto_of, safe_choices, undecided
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import LAYER_COSTS, find_measured_device, layer_costs
from layerboard.leaderboards.board.differences import bounds_of
from layerboard.leaderboards.findings.facts import COMMERCIAL_USE, Facts, commercial_use
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import all_specs
from tests.leaderboards.builder import NAN, floor, frame, layers, record, unsure, write_layers

KNN = Column("knn", "mini-imagenet", "standard", metric="top-1", heading="knn top-1", partial=False)
SPAIR = Column(*("spair", "mini-spair", "standard"), metric="PCK@0.1", heading="spair PCK@0.1", partial=False)
CLIP = {"backbone": "mini-clip", "family": "CLIP"}
CPU = "Fast CPU, 2 threads"


def candidates(*rows: tuple[str, int, float, float], **facts: object) -> pd.DataFrame:
    """Candidates of a backbone, layer, score and milliseconds each."""
    usual = dict.fromkeys(("transform", "thresholds", "view_size", "timed_at", "revision"), "")
    usual |= {"depth": 12, "pooling": "cls", "tap": "block", "protocol": "standard", "licence": "MIT"}
    usual |= {"parameters": NAN, "gflops": NAN, "dim": 96.0, "bytes": 384.0, "n": 400, "unit": "images"}
    usual |= {"disturbed": False, "loss": NAN, "difference": NAN, "maybe": False, "tokens": 64.0} | facts
    frame = pd.DataFrame(rows, columns=["backbone", "layer", "value", "ms"])
    frame = frame.assign(ci_low=frame["value"] - 1, ci_high=frame["value"] + 1)
    return frame.assign(**usual)  # type: ignore[arg-type]


def given(rows: pd.DataFrame) -> tuple[Candidate, ...]:
    """The candidates of a frame, in its order."""
    return tuple(Candidate(**row) for row in rows[CANDIDATE].to_dict("records"))  # type: ignore[misc]


def table(answer: Answer) -> pd.DataFrame:
    """The candidates of an answer, one a row."""
    return pd.DataFrame(map(asdict, answer.candidates))


def answered(rows: pd.DataFrame, column: Column = KNN, **facts: object) -> Answer:
    """The answer of candidates, the highest first, of which limits leave out none."""
    usual = {"elsewhere": {}, "device": ""} | facts
    usual |= dict.fromkeys({"rivals", "untested", "layers", "baselines"} - facts.keys(), ())
    every = given(rows)
    return Answer(column=column, best=every[0], candidates=every, **usual)  # type: ignore[arg-type]


def changed(answer: Answer, **columns: Sequence[object]) -> Answer:
    """An answer whose candidates have other values in some fields."""
    rows = table(answer).assign(**columns)
    return replace(answer, candidates=given(rows))


def cost(backbone: str, layer: int, ms: float, on: str = CPU, **changes: object):  # type: ignore[no-untyped-def]
    """Records of what a layer costs."""
    facts = {"backbone": backbone, "layer": layer, "task": "cost", "dataset": on, "pooling": "image"}
    usual = facts | {"analysis": True, "primary": False, "date": "2026-11-20"} | changes
    values = {"ms": ms, "parameters": 1000.0 * layer, "dim": 96.0, "tokens": 64.0}
    return [record(**usual | {"metric": name, "value": value}) for name, value in values.items()]


# costs of a device


def test_costs_are_those_of_one_device_and_of_blocks() -> None:
    later = {"date": "2026-11-21", "device": "cuda"}
    records = Board.of(
        frame(
            cost("a", 1, 2.0),
            cost("a", 2, 4.0),
            cost("a", 2, 9.0, tap="final"),
            cost("a", 1, 0.5, "A Card", **later),
            layers([1.0, 2.0]),
        )
    ).costs.records
    found = layer_costs(records, CPU)
    assert list(found.columns) == LAYER_COSTS
    assert found[["layer", "ms", "parameters"]].to_numpy().tolist() == [[1, 2, 1000], [2, 4, 2000]]
    assert found["gflops"].isna().all()
    assert [find_measured_device(records, wanted) for wanted in (None, "cpu", "cuda", "fast", CPU)] == [
        *("A Card", CPU, "A Card", CPU, CPU)
    ]
    with pytest.raises(InputError, match="no cost was measured on 'tpu'; it was on A Card, Fast CPU"):
        find_measured_device(records, "tpu")


def test_without_costs_there_is_no_device() -> None:
    records = Board.of(frame(layers([1.0]))).costs.records
    assert (find_measured_device(records, None), find_measured_device(records, "cpu")) == (None, None)
    assert layer_costs(records, None).empty


# candidates and limits


def test_weights_are_those_up_to_a_layer_or_about_them() -> None:
    records = frame(
        unsure(layers([10.0, 20.0]), 2.0),
        layers([5.0, NAN], **CLIP),
        layers([90.0, 91.0], metric="top-5", primary=False),
        floor([99.0]),
        cost("mini-dino", 1, 2.0),
    )
    facts = {"mini-dino": Facts(licence="MIT", parameters=5000.0, widths=(80, 80))}
    (answer,) = answers_of(Board.of(records), facts)
    found = table(answer).set_index(["backbone", "layer"])
    assert sorted(found.index) == [("mini-clip", 1), ("mini-dino", 1), ("mini-dino", 2)]
    assert found.loc[("mini-dino", 1), ["ms", "dim", "parameters", "ci_high"]].tolist() == [2, 96, 1000, 12]
    assert found.loc[("mini-dino", 2), ["dim", "parameters", "licence"]].tolist() == [80, 5000, "MIT"]
    assert math.isnan(found.loc[("mini-dino", 2), "ms"])
    assert found.loc[("mini-clip", 1), "licence"] == "unknown"
    assert found.loc[("mini-clip", 1), ["dim", "parameters", "ms"]].isna().all()
    (answer,) = answers_of(Board.of(records), facts, device="")
    found = table(answer).sort_values("layer").set_index(["backbone", "layer"])
    assert found.loc["mini-dino", "parameters"].tolist() == [2500, 5000]  # an equal share a block


def test_costs_are_those_at_the_size_that_the_task_shows() -> None:
    """Of a size that was not measured, and of records that say none, they are at the network's own."""
    measured_at = [
        cost("mini-dino", 1, ms, pooling=size) for size, ms in (("128 x 128", 9.0), ("64 x 64", 2.0))
    ]
    records = frame(layers([10.0]), *measured_at)
    assert layer_costs(records, CPU)["timed_at"].tolist() == ["64 x 64", "128 x 128"]
    for shown, expected in (
        ("128 x 128", ("128 x 128", 9.0)),
        ("64 x 64", ("64 x 64", 2.0)),
        ("224 x 224", ("64 x 64", 2.0)),
        ("", ("64 x 64", 2.0)),
    ):
        (answer,) = answers_of(Board.of(records.assign(view_size=shown)))
        found = table(answer)
        assert found[["timed_at", "ms"]].to_numpy().tolist() == [[*expected]]
        assert found[["parameters", "dim", "view_size"]].to_numpy().tolist() == [[1000, 96, shown]]
    before = frame(layers([10.0]), cost("mini-dino", 1, 4.0))  # records that do not say a size
    (answer,) = answers_of(Board.of(before.assign(view_size="128 x 128")))
    assert table(answer)[["timed_at", "ms"]].to_numpy().tolist() == [["", 4.0]]


def test_times_are_disturbed_by_size_or_for_a_whole_backbone() -> None:
    sizes = ("64 x 64", "128 x 128")
    every = [cost(name, 1, 2.0, pooling=size) for name in "ab" for size in sizes]
    where = {"spread": ("a", "128 x 128"), "waiting": ("b", "64 x 64")}
    noise = [
        replace(cost(name, -1, 80.0, pooling=size)[0], metric=metric)
        for metric, (name, size) in where.items()
    ]
    found = layer_costs(frame(*every, noise), CPU).set_index(["backbone", "timed_at"])["disturbed"]
    assert found[found].index.tolist() == [("a", "128 x 128"), ("b", "64 x 64"), ("b", "128 x 128")]


def test_an_image_takes_the_bytes_of_all_its_vectors() -> None:
    (one,) = given(candidates(("a", 1, 10, 1.0)))
    assert (one.image_bytes, replace(one, pooling="grid").image_bytes) == (384, 384 * 64)
    assert math.isnan(replace(one, pooling="grid", tokens=NAN).image_bytes)


def test_each_layer_stands_in_its_best_pooling() -> None:
    """A cheaper layer may be good enough in another pooling than that of the backbone's best score."""
    records = frame(layers([10.0, 20.0]), layers([30.0, 5.0], pooling="mean", primary=False))
    (answer,) = answers_of(Board.of(records))
    assert len(table(answer)) == 4
    kept, _ = apply_limits(answer.candidates, {})
    assert {(each.layer, each.pooling, each.value) for each in kept} == {(1, "mean", 30), (2, "cls", 20)}


def test_costs_of_another_input_size_are_not_those_of_a_score() -> None:
    records = frame(layers([10.0]), cost("mini-dino@128px", 1, 2.0, input_size=128))
    (answer,) = answers_of(Board.of(records))
    assert table(answer)["ms"].isna().all()


def test_limits_keep_what_is_within_them_and_say_what_each_leaves_out() -> None:
    rows = pd.concat(
        [
            candidates(("a", 1, 10, 1.0), ("a", 2, 20, 2.0), ("a", 3, 30, NAN), parameters=10.0),
            candidates(("b", 1, 40, 0.5), licence="CC-BY-NC-4.0", dim=200.0, parameters=50.0),
        ],
        ignore_index=True,
    )
    every, reasons = apply_limits(given(rows), {})
    assert ([each.value for each in every], reasons) == ([10, 20, 30, 40], [])
    limits = {"ms": 1.0, "dim": 100, "parameters": 10}
    (left,), reasons = apply_limits(given(rows), limits, commercial=True)
    assert left.value == 10
    assert reasons == [
        "ms=1 leaves out 2 of 4 layers",
        "dim=100 leaves out 1 of 4 layers, all of b",
        "parameters=10 leaves out 1 of 4 layers, all of b",
        "--licence commercial leaves out 1 of 4 layers, all of b",
    ]
    assert apply_limits(given(rows), {"ms": 0.1})[1] == ["ms=0.1 leaves out all 4 layers"]
    noisy = given(rows.assign(disturbed=rows["layer"] == 2))
    kept, _ = apply_limits(noisy, {"ms": 1.0})
    assert [each.layer for each in kept] == [1, 2, 1]
    assert [exempt(each, 1.0) for each in noisy] == [False, True, False, False]
    assert not any(exempt(each, 2.0) for each in noisy)
    many = candidates(*((name, 1, 10, 2.0) for name in "abcdefg"), ("h", 1, 10, 1.0))
    _, (sentence,) = apply_limits(given(many), {"ms": 1.0})
    assert sentence == "ms=1 leaves out 7 of 8 layers, all of a, b, c, d, e and 2 more"
    twice = pd.concat([rows, rows.assign(transform="pca:2")], ignore_index=True)
    assert apply_limits(given(twice), {"ms": 0.1})[1] == [
        "ms=0.1 leaves out all 8 pairs of a layer and a compression"
    ]
    unknown = candidates(("a", 1, 10, 1.0), parameters=NAN)
    assert apply_limits(given(unknown), {"parameters": 1000})[0] == ()


def test_of_equal_vectors_of_a_layer_the_smallest_are_kept() -> None:
    rows = candidates(("a", 1, 10, 1.0), ("a", 1, 10, 1.0), ("a", 1, 9, 1.0))
    kept, _ = apply_limits(given(rows.assign(bytes=[384.0, 96.0, 12.0])), {})
    assert [each.bytes for each in kept] == [96]


def test_every_licence_of_the_registry_has_an_answer_that_was_thought_of() -> None:
    named = {spec.licence for spec in all_specs()} - {"none"}
    assert named <= COMMERCIAL_USE.keys()
    assert commercial_use("Apache-2.0") == "allowed"
    assert commercial_use("CC-BY-NC-4.0") == "not allowed"
    stricter = {spec.name: commercial_use(spec.licence) for spec in all_specs() if " (" in spec.licence}
    assert {stricter[name] for name in ("mae-b16", "msn-s16", "aimv2-l14")} == {"not allowed"}
    assert {stricter[name] for name in ("tipsv2-b14", "swin-t", "beit-b16", "vjepa2-h16")} == {"allowed"}
    assert commercial_use("some licence") == "unknown"


# what may be lost


def hits(count: int, *, turned: int = 0) -> np.ndarray:
    """400 images, the first so many of them right; of those, and of the others, some are turned round."""
    found = np.arange(400) < count
    found[:turned] ^= True
    found[400 - turned :] ^= True
    return 100.0 * found


@pytest.fixture
def planted(tmp_path: Path) -> tuple[pd.DataFrame, Path]:
    """The best, one that differs in 2 images, one as high that differs in 160, and one far below."""
    values = {
        ("a", 9): hits(240),
        ("a", 3): hits(238),
        ("b", 2): hits(240, turned=80) - 0.25,
        ("c", 1): hits(100),
    }
    for name in "abc":
        write_layers(tmp_path, name, {layer: own for (other, layer), own in values.items() if other == name})
    rows = candidates(*((name, layer, own.mean(), float(layer)) for (name, layer), own in values.items()))
    return rows, tmp_path


def places(rows: pd.DataFrame) -> list[tuple[str, int]]:
    return list(zip(rows["backbone"], rows["layer"], strict=True))


def compare(rows: pd.DataFrame, folder: Path) -> Answer:
    rows = bounds_of(KNN, rows, folder).rows.sort_values("value", ascending=False, kind="stable")
    return answered(rows.assign(difference=rows["value"] - rows["value"].max()).reset_index(drop=True))


def test_only_what_is_shown_to_lose_little_is_recommended(planted: tuple[pd.DataFrame, Path]) -> None:
    rows, folder = planted
    alone = rows[rows["backbone"] != "b"]
    found = compare(alone, folder)
    assert (found.best.backbone, found.best.layer) == ("a", 9)
    assert places(table(found)[table(found)["loss"] <= 2.5]) == [("a", 9), ("a", 3)]
    loss = table(found).set_index(["backbone", "layer"])["loss"]
    assert 0 < loss[("a", 9)] < 1.5 < loss[("a", 3)] < 2.5
    assert loss[("c", 1)] > 35
    assert [choice.backbone for choice in safe_choices([found], 2.5)] == ["a"]
    assert safe_choices([found], 0.4) == ()
    # b scores as much, in other images: it may be better by six points
    found = compare(rows, folder)
    loss = table(found).set_index(["backbone", "layer"])["loss"]
    assert 5 < loss[("a", 9)] < loss[("a", 3)] < loss[("b", 2)] + 1.5 < 9
    assert safe_choices([found], 2.5) == ()
    (choice,) = choose([found], 2.5)
    assert (choice.backbone, choice.places) == ("a", [(9, "cls")])


def test_a_limit_does_not_lessen_the_loss(planted: tuple[pd.DataFrame, Path]) -> None:
    rows, folder = planted
    every = rows[rows["backbone"] != "b"]
    found = compare(every, folder).only("c")
    assert found.lowered
    assert found.best.backbone == "a"
    assert table(found)[["backbone", "difference"]].to_numpy().tolist() == [["c", -35.0]]
    assert 35 < table(found)["loss"].item() < 45


def test_the_data_cannot_decide_and_how_many_images_would(planted: tuple[pd.DataFrame, Path]) -> None:
    rows, folder = planted
    rows = rows[rows["layer"].isin([9, 2])]
    found = compare(rows, folder)
    pairs = {each.backbone: enough for enough, each in undecided(found, found.best, 2.0)}
    assert sorted(pairs) == ["a", "b"]  # the best itself, and a cheaper one
    enough = pairs["b"]
    times = round(enough.units / 400)
    write_layers(folder, "a", {9: np.tile(hits(240), times)})
    write_layers(folder, "b", {2: np.tile(hits(240, turned=80) - 0.25, times)})
    again = table(compare(rows, folder)).set_index("backbone")["loss"]
    # 1.75 points are left to lose: 0.84 of 2.8 standard errors more than the interval's half
    assert again["b"] == pytest.approx(2 - 1.75 * 0.84 / 2.8, abs=0.1)
    assert enough.least < enough.units < enough.most == math.inf
    assert undecided(found, replace(found.best, ms=0.5), 2.0) == []


@pytest.mark.parametrize(("images", "lost"), [(6, 100), (400, 0.966)])
def test_equal_outcomes_of_few_images_show_little(tmp_path: Path, images: int, lost: float) -> None:
    write_layers(tmp_path, "a", dict.fromkeys((3, 9), np.full(images, 100.0)))
    rows = candidates(("a", 3, 100.0, 3.0), ("a", 9, 100.0, 9.0), n=images)
    found = compare(rows, tmp_path)
    assert table(found)["loss"].tolist() == [pytest.approx(lost, abs=0.005)] * 2
    pairs = undecided(found, found.candidates[1], lost / 2)
    assert [enough.units > 2 * images for enough, _ in pairs] == [True, True]


def test_what_cannot_be_tested_is_not_recommended(tmp_path: Path) -> None:
    rows = candidates(("a", 3, 60, 2), ("b", 1, 59.5, 3), ("c", 1, 59, 5))
    write_layers(tmp_path, "a", {3: hits(240)})
    write_layers(tmp_path, "b", {1: hits(238)}, prefix="another ")
    for folder in (tmp_path, tmp_path / "nowhere"):
        found = compare(rows, folder)
        assert table(found)["loss"].isna().all()
        (choice,) = choose([found], 2.0)
        assert (choice.backbone, choice.compromise) == ("a", True)


# the Pareto front


def test_on_the_front_nothing_scores_as_much_in_less_time() -> None:
    rows = candidates(
        ("slow", 1, 50, 9), ("a", 1, 40, 2), ("a", 2, 60, 4), ("same", 1, 60, 4.5), ("b", 1, 30, 2),
        ("none", 1, 99, NAN), ("best", 1, 70, 20), ("fast", 1, 5, 1),
    )  # fmt: skip
    assert [choice.backbone for choice in pareto_of(answered(rows))] == ["fast", "a", "a", "best"]
    assert pareto_of(answered(candidates(("a", 1, 5, NAN)))) == []


# several tasks


def shown(*rows: tuple[str, int, float, float], column: Column = KNN, **facts: object) -> Answer:
    """Candidates that are all shown to lose at most what their scores say."""
    found = candidates(*rows, **facts).sort_values("value", ascending=False, kind="stable")
    difference = found["value"] - found["value"].max()
    return answered(found.assign(difference=difference, loss=-difference).reset_index(drop=True), column)


def test_the_cheapest_layer_of_each_backbone_comes_first() -> None:
    found = safe_choices([shown(("a", 9, 61, 9), ("a", 8, 60.5, 8), ("b", 5, 60, 4), ("c", 2, 62, 20))], 50)
    assert [(choice.backbone, choice.deepest.layer, choice.others) for choice in found] == [
        ("b", 5, ()),
        ("a", 8, (9,)),
        ("c", 2, ()),
    ]


def test_nothing_is_recommended_that_costs_more_and_scores_no_more() -> None:
    rows = ("a", 5, 60, 4), ("b", 5, 59, 5), ("b", 6, 60, 6), ("b", 7, 61, 7)
    found = safe_choices([shown(*rows)], 50)
    assert [(choice.backbone, choice.deepest.layer) for choice in found] == [("a", 5), ("b", 7)]


def test_what_has_no_time_is_not_sorted_against_times_nor_weights_of_parts_against_wholes() -> None:
    timed = shown(("a", 9, 61, 1.0), ("b", 5, 62, NAN))
    for weights, backbones in (([5e6, 9e6], ["b"]), ([9e6, 5e6], ["a", "b"])):  # the best, b, first
        found = safe_choices([changed(timed, parameters=weights)], 50)
        assert [choice.backbone for choice in found] == backbones


def test_a_layer_that_does_for_all_tasks_is_taken_for_all() -> None:
    knn = shown(("a", 8, 61, 8), ("a", 9, 60, 9), ("a", 10, 60, 10), ("b", 3, 60, 3))
    spair = shown(("a", 4, 50, 4), ("a", 9, 50, 9), ("a", 10, 50, 10), ("c", 1, 50, 1), column=SPAIR)
    (choice,) = safe_choices([knn, spair], 50)
    assert (choice.backbone, choice.places, choice.others) == ("a", [(9, "cls")], (10,))


def test_where_no_layer_does_for_all_each_task_has_its_own() -> None:
    knn = shown(("a", 9, 61, 9), ("a", 10, 61, 10))
    (choice,) = safe_choices([knn, shown(("a", 4, 50, 4), ("a", 3, 50, 3), column=SPAIR)], 50)
    assert (choice.places, choice.others) == ([(3, "cls"), (9, "cls")], ())
    assert choice.candidates[SPAIR].layer == 3
    assert choice.deepest.ms == 9


def test_without_one_for_all_tasks_the_least_loss_is_told_at_the_highest_layers() -> None:
    knn = shown(("a", 1, 60, 1), ("b", 1, 55, 1), ("b", 2, 56, 2), ("c", 1, 58, 1))
    spair = shown(("a", 1, 10, 1), ("b", 1, 30, 1), ("b", 2, 20, 2), ("c", 1, 24, 1), column=SPAIR)
    assert safe_choices([knn, spair], 1) == ()
    (choice,) = choose([knn, spair], 1)
    assert (choice.backbone, choice.compromise) == ("b", True)
    assert (choice.candidates[KNN].layer, choice.candidates[SPAIR].layer) == (2, 1)
    assert least_loss([knn.only("a"), spair.only("b")]) is None


def test_the_layer_is_the_highest_also_where_another_one_is_shown_to_lose_less() -> None:
    knn = shown(("a", 1, 60, 1), ("b", 1, 59, 1))
    (choice,) = choose([changed(knn, loss=[9.0, 5.0])], 1)
    assert (choice.backbone, choice.deepest.loss) == ("a", 9)


def test_a_task_that_cannot_rank_does_not_decide_for_all() -> None:
    knn = shown(("a", 1, 60, 1), ("b", 1, 55, 1))
    spair = shown(("a", 1, 10, 1), ("b", 1, 30, 1), column=SPAIR)
    assert [choice.backbone for choice in choose([knn, spair], 1)] == ["b"]
    equal = replace(spair, baselines=("raw pixels",))
    assert [choice.backbone for choice in choose([knn, equal], 1)] == ["a"]
