"""Choices among planted layers with known answers: limits, confidence sets, Pareto fronts, several tasks."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leaderboards.board import Board
from leaderboards.facts import COMMERCIAL_USE, Facts, commercial_use
from leaderboards.limits import CANDIDATE, candidates_of, within
from leaderboards.recommendation import Possible, least_loss, may_be_best, picks_of
from leaderboards.records.files import scored_path, task_key
from leaderboards.records.items import write_items
from leaderboards.scores.column import Column
from leaderboards.scores.costs import LAYER_COSTS, find_device, layer_costs, pareto_front
from tasks.base import Items
from tests.leaderboards.builder import NAN, floor, frame, layers, measured, record, unsure
from zoo.errors import InputError
from zoo.registry import all_specs

KNN = Column("knn", "mini-imagenet", "standard", metric="top-1", heading="knn top-1", partial=False)
SPAIR = Column(*("spair", "mini-spair", "standard"), metric="PCK@0.1", heading="spair PCK@0.1", partial=False)
CLIP = {"backbone": "mini-clip", "family": "CLIP"}
CPU = "Fast CPU, 2 threads"


def candidates(*rows: tuple[str, int, float, float], **facts: object) -> pd.DataFrame:
    """Candidates of a backbone, layer, score and milliseconds each."""
    usual = {
        "depth": 12,
        "pooling": "cls",
        "tap": "block",
        "input_size": 64,
        "protocol": "standard",
        "half": 1.0,
        "parameters": NAN,
        "gflops": NAN,
        "dim": 96.0,
        "licence": "MIT",
    } | facts
    body = [
        {"backbone": name, "layer": layer, "value": value, "ms": ms, **usual}
        for name, layer, value, ms in rows
    ]
    return pd.DataFrame(body, columns=CANDIDATE)


def cost(backbone: str, layer: int, ms: float, on: str = CPU, **changes: object):  # type: ignore[no-untyped-def]
    """Records of what a layer costs."""
    facts = {"backbone": backbone, "layer": layer, "task": "cost", "dataset": on, "pooling": "image"}
    usual = facts | {"analysis": True, "primary": False, "date": "2026-11-20"} | changes
    values = {"ms": ms, "parameters": 1000.0 * layer, "dim": 96.0}
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
    assert [find_device(records, wanted) for wanted in (None, "cpu", "cuda", "fast", CPU)] == [
        *("A Card", CPU, "A Card", CPU, CPU)
    ]
    with pytest.raises(InputError, match="no cost was measured on 'tpu'; it was on A Card, Fast CPU"):
        find_device(records, "tpu")


def test_without_costs_there_is_no_device() -> None:
    records = Board.of(frame(layers([1.0]))).costs.records
    assert (find_device(records, None), find_device(records, "cpu")) == (None, None)
    assert layer_costs(records, None).empty


# candidates and limits


def test_candidates_have_what_was_measured_and_else_what_is_known() -> None:
    records = frame(
        unsure(layers([10.0, 20.0]), 2.0),
        layers([5.0, NAN], **CLIP),
        layers([90.0, 91.0], metric="top-5", primary=False),
        floor([99.0]),
        cost("mini-dino", 1, 2.0),
    )
    facts = {"mini-dino": Facts(licence="MIT", parameters=500.0, widths=(80, 80))}
    (column,) = Board.of(records).columns
    found = candidates_of(column, layer_costs(records, CPU), facts)
    assert list(found.columns) == CANDIDATE
    found = found.set_index(["backbone", "layer"])
    assert sorted(found.index) == [("mini-clip", 1), ("mini-dino", 1), ("mini-dino", 2)]
    assert found.loc[("mini-dino", 1), ["ms", "dim", "parameters", "half"]].tolist() == [2, 96, 1000, 2]
    assert found.loc[("mini-dino", 2), ["dim", "parameters", "licence"]].tolist() == [80, 500, "MIT"]
    assert math.isnan(found.loc[("mini-dino", 2), "ms"])
    assert found.loc[("mini-clip", 1), "licence"] == "unknown"
    assert found.loc[("mini-clip", 1), ["dim", "parameters", "ms"]].isna().all()


def test_costs_of_another_input_size_are_not_those_of_a_score() -> None:
    records = frame(layers([10.0]), cost("mini-dino", 1, 2.0, input_size=128))
    (column,) = Board.of(records).columns
    found = candidates_of(column, layer_costs(records, CPU), {})
    assert found["ms"].isna().all()


def test_limits_keep_what_is_within_them_and_say_what_each_leaves_out() -> None:
    rows = pd.concat(
        [
            candidates(("a", 1, 10, 1.0), ("a", 2, 20, 2.0), ("a", 3, 30, NAN), parameters=10.0),
            candidates(("b", 1, 40, 0.5), licence="CC-BY-NC-4.0", dim=200.0, parameters=50.0),
        ],
        ignore_index=True,
    )
    every, reasons = within(rows, {"ms": None})
    assert (every["value"].tolist(), reasons) == ([10, 20, 30, 40], [])
    some, reasons = within(rows, {"ms": 1.0, "dim": 100, "parameters": 10}, commercial=True)
    assert some["value"].tolist() == [10]
    assert reasons == [
        "--max-ms 1 leaves out 2 of 4 layers",
        "--max-dim 100 leaves out 1 of 4 layers, all of b",
        "--max-parameters 10 leaves out 1 of 4 layers, all of b",
        "--licence commercial leaves out 1 of 4 layers, all of b",
    ]
    assert within(rows, {"ms": 0.1})[1] == ["--max-ms 0.1 leaves out all 4 layers"]
    many = candidates(*((name, 1, 10, 2.0) for name in "abcdefg"), ("h", 1, 10, 1.0))
    _, (sentence,) = within(many, {"ms": 1.0})
    assert sentence == "--max-ms 1 leaves out 7 of 8 layers, all of a, b, c, d, e, 2 more"
    unknown = candidates(("a", 1, 10, 1.0), parameters=NAN)
    assert within(unknown, {"parameters": 1000})[0].empty


def test_every_licence_of_the_registry_has_an_answer_that_was_thought_of() -> None:
    named = {spec.licence for spec in all_specs()} - {"none"}
    assert {name for name in named if name not in COMMERCIAL_USE and not name.startswith("unknown")} == set()
    assert commercial_use("Apache-2.0") == "allowed"
    assert commercial_use("CC-BY-NC-4.0") == "not allowed"
    assert commercial_use("Apache-2.0 (original files: CC-BY-NC-4.0)") == "unknown"
    assert commercial_use("some licence") == "unknown"


# what may be the best


def near(rivals: Sequence[Sequence[Items]], metric: str) -> list[bool | None]:
    """A test by which scores within one point of the first are tied, of the same images only."""
    means = [float(one[0].values[metric].mean()) for one in rivals]
    same = [one[0].keys == rivals[0][0].keys for one in rivals]
    return [mean >= means[0] - 1 if alike else None for mean, alike in zip(means, same, strict=True)]


def plant(folder: Path, backbone: str, values: dict[int, float], prefix: str = "") -> None:
    items = {(layer, "block", "cls"): measured([value] * 2, prefix=prefix) for layer, value in values.items()}
    write_items(items, folder / scored_path(task_key(KNN.task, KNN.dataset, KNN.protocol), backbone))


def test_each_layer_is_a_rival_of_its_own(tmp_path: Path) -> None:
    rows = candidates(("a", 2, 50, 1), ("a", 3, 51, 2), ("b", 1, 50.5, 3), ("b", 2, 49, 4), ("c", 1, 10, 5))
    plant(tmp_path, "a", {2: 50, 3: 51})
    plant(tmp_path, "b", {1: 50.5, 2: 49})
    found = may_be_best(rows, KNN, tmp_path, near)
    assert list(zip(found.rows["backbone"], found.rows["layer"], strict=True)) == [
        ("a", 3),
        ("b", 1),
        ("a", 2),
    ]
    assert found.untested == ()  # layer 1 of c, whose items are not there, is far below
    assert (found.best["backbone"], found.best["layer"]) == ("a", 3)


def test_what_cannot_be_tested_is_named_and_not_recommended(tmp_path: Path) -> None:
    rows = candidates(("a", 3, 51, 2), ("b", 1, 50.5, 3), ("c", 1, 50, 5))
    plant(tmp_path, "a", {3: 51})
    plant(tmp_path, "b", {1: 50.5}, prefix="another ")
    found = may_be_best(rows, KNN, tmp_path, near)
    assert found.rows["backbone"].tolist() == ["a"]
    assert found.untested == (("b", 1), ("c", 1))
    alone = may_be_best(rows, KNN, tmp_path / "nowhere", near)
    assert alone.rows["backbone"].tolist() == ["a"]
    assert len(alone.untested) == 2


def test_scores_without_intervals_are_all_tested_and_one_candidate_is_the_best(tmp_path: Path) -> None:
    rows = candidates(("a", 1, 51, 2), ("b", 1, 1, 3), half=NAN)
    assert may_be_best(rows, KNN, tmp_path, near).untested == (("b", 1),)
    assert may_be_best(rows[:1], KNN, tmp_path, near).rows["backbone"].tolist() == ["a"]


def test_by_the_real_test_layers_that_differ_by_chance_are_kept(tmp_path: Path) -> None:
    first, second, other = (np.arange(400) < count for count in (240, 240, 180))
    second[[0, 1, 2, 3, 4, 396, 397, 398, 399]] ^= True  # five hits lost, four won: 59.75 % instead of 60 %
    hits = {("a", 1): first, ("a", 2): second, ("b", 1): other}
    rows = candidates(
        *((name, layer, 100 * own.mean(), 1.0) for (name, layer), own in hits.items()), half=4.8
    )
    for name in ("a", "b"):
        own = {key[1]: values for key, values in hits.items() if key[0] == name}
        items = {(layer, "block", "cls"): measured(100.0 * values) for layer, values in own.items()}
        write_items(items, tmp_path / scored_path(task_key(KNN.task, KNN.dataset, KNN.protocol), name))
    found = may_be_best(rows, KNN, tmp_path)
    assert set(zip(found.rows["backbone"], found.rows["layer"], strict=True)) == {("a", 1), ("a", 2)}
    assert found.untested == ()


# the Pareto front


def test_on_the_front_nothing_scores_as_much_in_less_time() -> None:
    rows = candidates(
        ("slow", 1, 50, 9), ("a", 1, 40, 2), ("a", 2, 60, 4), ("same", 1, 60, 4.5), ("b", 1, 30, 2),
        ("none", 1, 99, NAN), ("empty", 1, NAN, 1), ("best", 1, 70, 20), ("fast", 1, 5, 1),
    )  # fmt: skip
    assert pareto_front(rows)["backbone"].tolist() == ["fast", "a", "a", "best"]
    assert pareto_front(rows[:0]).empty
    assert pareto_front(candidates(("a", 1, 5, NAN))).empty


# several tasks


def possible(*rows: tuple[str, int, float, float]) -> Possible:
    return Possible(candidates(*rows))


def test_the_cheapest_layer_of_each_backbone_comes_first() -> None:
    found = picks_of({KNN: possible(("a", 9, 61, 9), ("a", 8, 60, 8), ("b", 5, 60, 4), ("c", 2, 60, NAN))})
    assert [(pick.backbone, pick.layers, pick.others) for pick in found] == [
        ("b", (5,), ()),
        ("a", (8,), (9,)),
        ("c", (2,), ()),
    ]
    assert found[0].deepest["ms"] == 4


def test_a_layer_that_does_for_all_tasks_is_taken_for_all() -> None:
    knn = possible(("a", 8, 61, 8), ("a", 9, 60, 9), ("a", 10, 60, 10), ("b", 3, 60, 3))
    spair = possible(("a", 4, 50, 4), ("a", 9, 50, 9), ("a", 10, 50, 10), ("c", 1, 50, 1))
    (pick,) = picks_of({KNN: knn, SPAIR: spair})
    assert (pick.backbone, pick.layers, pick.others) == ("a", (9,), (10,))


def test_where_no_layer_does_for_all_each_task_has_its_own() -> None:
    (pick,) = picks_of(
        {KNN: possible(("a", 9, 61, 9), ("a", 10, 61, 10)), SPAIR: possible(("a", 4, 50, 4), ("a", 3, 50, 3))}
    )
    assert (pick.layers, pick.others) == ((3, 9), ())
    assert pick.rows[SPAIR]["layer"] == 3
    assert pick.deepest["ms"] == 9


def test_without_one_for_all_tasks_the_least_loss_is_told() -> None:
    knn = candidates(("a", 1, 60, 1), ("b", 1, 55, 1), ("b", 2, 56, 2), ("c", 1, 58, 1))
    spair = candidates(("a", 1, 10, 1), ("b", 1, 30, 1), ("b", 2, 20, 2), ("c", 1, 24, 1))
    assert picks_of({KNN: Possible(knn[:1]), SPAIR: Possible(spair[1:2])}) == ()
    pick = least_loss({KNN: knn, SPAIR: spair})
    assert pick is not None
    assert (pick.backbone, pick.loss) == ("b", 4)
    assert (pick.rows[KNN]["layer"], pick.rows[SPAIR]["layer"]) == (2, 1)
    assert least_loss({KNN: knn[:1], SPAIR: spair[1:]}) is None
