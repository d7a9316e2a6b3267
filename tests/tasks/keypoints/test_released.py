"""Keypoints by the protocols of single papers, as a run applies them, against their authors' functions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from layerboard.tasks.datasets.spair_facts import PairFacts
from layerboard.tasks.framework.base import Outcome
from layerboard.tasks.framework.protocols import PROTOCOLS, find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.keypoints.config import KeypointConfig, PairSample
from layerboard.tasks.keypoints.correspondence import SoftArgmax
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.zoo.spec import Layer
from tests.tasks.keypoints.test_problem import measured, pair, random_grids, random_problem, task_of
from tests.tasks.passes import by_metric

PAPERS = ("probe3d", "geoaware", "sd-dino", "insid3", "dift")


def rule_of(name: str) -> KeypointConfig:
    return config_of(find_protocol(name), "spair")


@pytest.mark.parametrize("name", PAPERS)
def test_the_numbers_are_the_tables(name: str) -> None:
    """Rows of the table of released evaluations, as `docs/explanation/protocols.md` has it."""
    expected = {
        "probe3d": ("truncated", "corners", "tokens", "tokens", "corner", (0.1,), False, "category"),
        "geoaware": ("exact", "token below", "tokens", "tokens", "centre", (0.1, 0.05, 0.01), False, "image"),
        "sd-dino": (
            *("exact", "token below", "tokens", "tokens", "middle pixel"),
            *((0.1, 0.05, 0.01), False, "category"),
        ),
        "insid3": (
            *("exact", "nearest token", "tokens", "tokens", "corner"),
            *((0.1, 0.05, 0.15, 0.2), True, "image"),
        ),
        "dift": ("image pixel", "bilinear", "samples", "image pixels", "corner", (0.1,), True, "image"),
    }
    rule = rule_of(name)
    found = (rule.points, rule.source, rule.unit, rule.search, rule.said)
    assert (*found, rule.alphas, rule.inclusive, rule.average) == expected[name]
    soft = {"geoaware": SoftArgmax(0.02, window=5), "insid3": SoftArgmax(0.04, sigma=7.0)}
    assert rule.soft == soft.get(name)
    assert rule.draw == (PairSample(200, 20) if name == "probe3d" else None)
    sides = {"probe3d": (800, 812), "geoaware": (960, 840), "sd-dino": (960, 840), "insid3": (768, 672)}
    views = [rule.view.scaled(224, patch).geometry((500, 375)).size for patch in (16, 14)]
    assert views == [(side, side) for side in sides.get(name, (768, 672))]


@pytest.mark.parametrize(("patch", "side"), [(16, 1024), (14, 896)])
def test_table_4_of_dinov3_is_probe3d_at_64_tokens(patch: int, side: int) -> None:
    rule = rule_of("dinov3")
    assert replace(rule, view=rule_of("probe3d").view) == rule_of("probe3d")
    view = rule.view.scaled(518, patch)  # whatever the backbone's input size
    assert view.geometry((500, 375)).size == (side, side)
    pixels = view.render(Image.new("RGB", (500, 375), (10, 20, 30)))[0]
    assert pixels.shape == (3, side, side)
    assert (int(pixels[2, side * 3 // 4 + 2].min()), int(pixels[2, 0].max())) == (
        255,
        30,
    )  # below it is white


@pytest.mark.parametrize("name", ["standard", "paper", *PAPERS])
def test_any_mix_of_choices_can_be_computed(name: str) -> None:
    """Each choice of a paper, alone, in the place of the standard's: no field of a config needs another."""
    other = rule_of(name)
    standard = rule_of("standard")
    fields = ("points", "source", "unit", "search", "soft", "said", "inclusive", "average")
    for field in (field for field in fields if getattr(other, field) != getattr(standard, field)):
        rule = replace(standard, **{field: getattr(other, field)})
        problem = replace(random_problem(3), config=rule)
        left = measured(problem, {Layer(0): random_grids(3)}, 3)[Layer(0)]
        outcome = problem.score(left)
        assert outcome.scores[0].metric == "PCK@0.1"
        assert all(np.isfinite(score.value) for score in outcome.scores)


def test_the_primary_metric_is_the_average_of_the_protocol() -> None:
    primary = {one.name: config_of(one, "spair").primary for one in PROTOCOLS if one.covers("spair")}
    assert primary["standard"] == primary["paper"] == primary["probe3d"] == primary["sd-dino"] == "PCK@0.1"
    assert primary["geoaware"] == primary["insid3"] == primary["dift"] == "PCK@0.1 per image"


def test_a_sample_takes_each_pair_once_and_all_where_there_are_few() -> None:
    pairs = random_problem(1).pairs
    taken = PairSample(most=3, seed=20).taken(pairs)
    assert {name: len(chosen) for name, chosen in taken.items()} == {"cat": 3, "dog": 3}
    assert all(len({one.key for one in chosen}) == 3 for chosen in taken.values())
    assert taken == PairSample(most=3, seed=20).taken(pairs) != PairSample(most=3, seed=21).taken(pairs)
    every = PairSample(most=200, seed=20).taken(pairs)
    assert {name: {one.key for one in chosen} for name, chosen in every.items()} == {
        name: {one.key for one in chosen} for name, chosen in pairs.items()
    }


def hard(viewpoint: int, mistakable: tuple[bool, ...] | None) -> PairFacts:
    return PairFacts(viewpoint, 0, 3, 1, mistakable)


def faced(facts: list[PairFacts | None]) -> KeypointTask:
    """Pairs of two points each, of which the first is always found and the second never."""
    points = np.array([[1.0, 1.0], [40.0, 30.0]])
    pairs = (
        replace(pair(number, 0, 1, ["cat", "dog"][number % 2], [points, points]), facts=one)
        for number, one in enumerate(facts)
    )
    return task_of(pairs, rule_of("standard"))


def scores_of(problem: KeypointTask) -> dict[str, float]:
    """Scores where the first point of each pair is right and the others are wrong."""
    return by_metric(outcome_of(problem))


def outcome_of(problem: KeypointTask) -> Outcome:
    """The outcome of that."""
    left = [
        {
            "error_box": np.tile([0.0, 1.0], len(pairs)),
            "error_image": np.tile([0.0, 1.0], len(pairs)),
            "varies": np.ones(1, bool),
        }
        for pairs in problem.pairs.values()
    ]
    return problem.score(left)


def test_kinds_of_pairs_are_scored_from_the_same_matches() -> None:
    problem = faced([hard(0, (True, False)), hard(2, (True, False)), hard(0, (False, True))])
    scores = scores_of(problem)
    assert scores["PCK@0.1"] == scores["PCK@0.1 viewpoint easy"] == scores["PCK@0.1 scale easy"] == 50
    assert scores["PCK@0.1 truncation both"] == scores["PCK@0.1 occlusion source"] == 50
    assert scores["PCK@0.1 geometry-aware"] == pytest.approx((50 + 100) / 2)  # of cats and of dogs
    assert "PCK@0.1 viewpoint medium" not in scores  # of which there is none
    per_image = replace(problem, config=replace(problem.config, average="image"))
    assert scores_of(per_image)["PCK@0.1 geometry-aware"] == pytest.approx(200 / 3)


def test_no_kinds_where_annotations_do_not_say() -> None:
    assert not any(" viewpoint" in name for name in scores_of(faced([hard(0, None), None])))
    scores = scores_of(faced([hard(0, None), hard(1, (True, False))]))
    assert "PCK@0.1 viewpoint medium" in scores
    assert "PCK@0.1 geometry-aware" not in scores


def apart(turns: list[int | None], facts: PairFacts | None = None) -> KeypointTask:
    """The same pairs with eighths of a turn between their viewpoints."""
    problem = faced([facts] * len(turns))
    pairs = tuple(replace(one, turn=eighths) for one, eighths in zip(problem.data.pairs, turns, strict=True))
    return replace(problem, data=replace(problem.data, pairs=pairs))


def test_turns_between_viewpoints_are_kinds_of_pairs() -> None:
    plain, scores = scores_of(apart([None] * 3)), scores_of(apart([0, 4, 0]))
    assert scores["PCK@0.1 azimuth 0"] == scores["PCK@0.1 azimuth 4"] == 50
    assert scores == plain | {name: scores[name] for name in ("PCK@0.1 azimuth 0", "PCK@0.1 azimuth 4")}
    counts = {one.metric: one.n for one in outcome_of(apart([0, 4, 0])).scores}
    assert (counts["PCK@0.1 azimuth 0"], counts["PCK@0.1 azimuth 4"]) == (4, 2)
    assert not any(" azimuth" in name for name in scores_of(apart([0, None, 0])))


def test_viewpoints_are_scored_again_and_leave_data_what_they_are() -> None:
    one, other = apart([None] * 2), apart([0, 1])
    assert one.fingerprint == one.ground_truth == other.ground_truth != other.fingerprint
    assert apart([0, 2]).fingerprint != other.fingerprint


def test_pull_is_said_of_a_soft_arg_max_alone() -> None:
    problem = random_problem(5)
    for name, there in (("standard", False), ("insid3", True)):
        rule = rule_of(name)
        own = replace(problem, config=replace(rule, view=problem.config.view))
        outcome = own.score(measured(own, {Layer(0): random_grids(5)}, 2)[Layer(0)])
        pull = by_metric(outcome).get("pull")
        assert (pull is not None) == there
        if pull is not None:
            assert 0 <= pull <= 100


@pytest.mark.parametrize(("length", "hit"), [(113, 0), (114, 100)])
def test_the_corner_of_an_image_is_half_a_token_away(length: int, hit: float) -> None:
    """The distance to the nearest token's centre is 11.31 pixels."""
    rule = replace(rule_of("standard"), search="tokens")
    corner = np.zeros((1, 2))
    sizes = {"source_size": (224, 224), "target_size": (224, 224)}
    one = pair(1, 0, 1, "cat", [corner, corner], **sizes, target_box=(0.0, 0.0, float(length), 10.0))
    problem = task_of([one], rule, [(224, 224)] * 2)
    grids = torch.randn(2, 14, 14, 3, generator=torch.Generator().manual_seed(0))
    outcome = problem.score(measured(problem, {Layer(0): grids}, 2, rule.view)[Layer(0)])
    assert by_metric(outcome)["PCK@0.1 ceiling"] == hit
