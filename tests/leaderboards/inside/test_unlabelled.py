"""Layers chosen without labels, on planted criteria: what they name, what it costs, who beats whom."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import latest
from layerboard.leaderboards.inside.page import inside_page
from layerboard.leaderboards.inside.unlabelled import (
    CRITERIA,
    RULES,
    TESTED,
    against_rules,
    by_backbone,
    choices_without_labels,
    mean_over_backbones,
)
from layerboard.leaderboards.records.record import Record
from layerboard.leaderboards.writers.markdown import markdown_page
from layerboard.tasks.framework.registry import TASKS
from layerboard.tasks.statistics.layer_choice import mean_reach
from tests.leaderboards.builder import NAN, floor, frame, layers

PEAK = (10.0, 40.0, 50.0, 30.0, 20.0, 25.0)
"""Scores of six layers: the best one is 3, two thirds of the depth are at 4, the last one is 6."""

NAMES = tuple(f"net-{place}" for place in range(7))


def scored(values: Sequence[float] = PEAK, name: str = "net-0", **changes: Any) -> list[Record]:
    return layers(values, backbone=name, **changes)


def criterion(metric: str, values: Sequence[float], name: str = "net-0", **changes: Any) -> list[Record]:
    facts: dict[str, Any] = {
        "task": "label-free",
        "metric": metric,
        "analysis": True,
        "split": "val",
        "backbone": name,
    }
    return layers(values, **(facts | {"primary": metric == "effective-rank"} | changes))


def choices(*groups: Sequence[Record]) -> pd.DataFrame:
    return choices_without_labels(Board.of(latest(frame(*groups))))


def chosen(*groups: Sequence[Record]) -> list[Any]:
    return [*choices(*groups).itertuples()]


def by_way(found: Sequence[Any]) -> Mapping[str, Any]:
    return {one.by: one for one in found}


def test_a_criterion_that_orders_as_the_score_has_no_regret() -> None:
    found = by_way(chosen(scored(), criterion("rankme", [value / 7 for value in PEAK])))
    best = found["rankme"]
    assert (best.layers, best.regret, best.correlation) == ((3,), 0, 1)
    assert (found["last"].layers, found["last"].regret) == ((6,), 25)
    assert (found["two thirds"].layers, found["two thirds"].regret) == ((4,), 20)
    assert math.isnan(found["last"].correlation)


def test_a_constant_criterion_names_none() -> None:
    (constant,) = (one for one in chosen(scored(), criterion("rankme", [3.0] * 6)) if one.by == "rankme")
    assert constant.layers == ()
    assert math.isnan(constant.regret)
    assert math.isnan(constant.correlation)


def test_equal_layers_are_named_together() -> None:
    found = by_way(chosen(scored(), criterion("view-top1", [100, 90, 100, 100, 50, 60])))
    assert found["view-top1"].layers == (1, 3, 4)
    assert found["view-top1"].regret == pytest.approx(50 - (10 + 50 + 30) / 3)


def test_a_decay_is_good_at_one() -> None:
    found = by_way(chosen(scored(), criterion("spectrum-decay", [3, 0.5, 1.2, 2, 0.1, 0.7])))
    assert found["spectrum-decay"].layers == (3,)


def test_only_layers_that_have_a_score_can_be_named_and_the_last_one_is_not_another() -> None:
    scores = [10.0, NAN, 50.0, 30.0, 20.0, NAN]
    found = by_way(chosen(scored(scores), criterion("rankme", [1, 9, 2, 5, NAN, 9])))
    assert found["rankme"].layers == (4,)
    assert found["last"].layers == ()


def test_the_criteria_are_of_the_vectors_that_are_scored() -> None:
    cls = criterion("rankme", [1, 2, 3, 4, 5, 6])
    mean = criterion("rankme", [6, 5, 4, 3, 2, 1], pooling="mean")
    grid = scored(task="spair", metric="PCK@0.1", pooling="grid", dataset="mini-spair")
    of_classes, of_points = (one for one in chosen(scored(), cls, mean, grid) if one.by == "rankme")
    assert (of_classes.column.task, of_classes.layers) == ("knn", (6,))
    assert (of_points.column.task, of_points.layers) == ("spair", (1,))


def test_own_images_come_first() -> None:
    here = criterion("rankme", [1, 2, 3, 4, 5, 6], dataset="b")
    there = criterion("rankme", [6, 5, 4, 3, 2, 1], dataset="a")
    found = chosen(scored(dataset="b"), scored(dataset="c"), here, there)
    assert {one.column.dataset: one.layers for one in found if one.by == "rankme"} == {"b": (6,), "c": (1,)}


def test_untrained_backbones_and_those_without_criteria_are_left_out() -> None:
    untrained: dict[str, Any] = {"name": "net-1", "trained": False}
    numbers = [criterion("rankme", PEAK), criterion("rankme", PEAK, **untrained)]
    found = chosen(*numbers, scored(), scored(**untrained), scored(name="net-2"), floor([1.0, 2.0]))
    assert {one.backbone for one in found} == {"net-0"}
    assert chosen(scored()) == []
    assert chosen(criterion("rankme", PEAK)) == []


def several(**criteria: Sequence[float]) -> list[list[Record]]:
    """Seven backbones of one shape of scores, each a little off, with the same criteria."""
    groups = []
    for place, name in enumerate(NAMES):
        groups.append(scored([value + place / 10 for value in PEAK], name))
        groups += [criterion(metric, values, name) for metric, values in criteria.items()]
    return groups


PLANTED = {"rankme": PEAK, "view-top1": [1.0, 2, 3, 4, 5, 6], "effective-rank": [2.0] * 6}


def test_who_beats_the_rules_is_told_from_who_does_not() -> None:
    named = choices(*several(**PLANTED))
    beside = {one.criterion: one for one in against_rules(named)}
    assert beside["rankme"].lower
    assert beside["rankme"].p == pytest.approx(2 / 2**7)  # of two criteria that name a layer
    assert mean_over_backbones(beside["rankme"].less["last"]) == pytest.approx(-25)
    assert not beside["view-top1"].lower
    assert math.isnan(beside["effective-rank"].p)
    assert tuple(beside) == TESTED
    assert not {"cka-to-last", "neighbours-to-last"} & {*TESTED}


def test_means_are_over_backbones() -> None:
    named = choices(*several(**PLANTED))
    lost = by_backbone(named, "last")
    assert mean_over_backbones(lost) == pytest.approx(25)
    assert len(lost) == 7
    assert mean_reach(lost) == pytest.approx(0, abs=1e-9)
    assert mean_over_backbones(by_backbone(named, "rankme", "correlation")) == pytest.approx(1)
    assert len(by_backbone(named, "effective-rank")) == 0


def page(groups: Sequence[Sequence[Record]]) -> str:
    return " ".join(markdown_page(inside_page(Board.of(frame(*groups), "mini"))).split())


def test_the_page_names_the_criterion_that_wins() -> None:
    text = page(several(**PLANTED))
    assert "**Beating both rules**, over all columns together (p below 0.05): rankme." in text
    assert "| net-0 | 25.0 (6) | 20.0 (4) | | 0.0 (3) |" in text


def test_the_page_says_that_none_wins() -> None:
    text = page(several(**{"view-top1": [1.0, 2, 3, 4, 5, 6]}))
    assert "**No criterion beats both rules**" in text
    assert "None has a lower mean regret than both." in text
    two = page(several(rankme=PEAK)[:4])
    assert "Lower mean regret than both, but with 2 backbones possibly by chance: rankme." in two
    assert "nan" not in two.lower()


def test_single_columns_are_told_but_not_tested() -> None:
    groups = several(rankme=PEAK)
    groups += [scored(PEAK[::-1], name, task="davis", metric="J&F", pooling="grid") for name in NAMES]
    groups += [criterion("rankme", PEAK, name, pooling="mean") for name in NAMES]
    assert "these have a lower mean regret than both: knn top-1: rankme." in page(groups)


def test_without_criteria_there_is_no_section() -> None:
    analysis = layers([1.0] * 6, task="attention-distance", metric="attention-distance", analysis=True)
    assert "Layers chosen without labels" not in page([scored(name="mini-dino"), analysis])


def test_every_criterion_is_one_of_the_analysis() -> None:
    (entry,) = (task for task in TASKS if task.name == "label-free")
    assert {*CRITERIA} == set(entry.metrics)
    assert [block(12) for block in RULES.values()] == [12, 8]
    assert [block(1) for block in RULES.values()] == [1, 1]
