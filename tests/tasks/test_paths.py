"""The way from one protocol to another: it begins and ends where it should, whatever lies between."""

from dataclasses import fields, replace
from itertools import product

import pytest

from tasks.keypoints.rule import KeypointRule
from tasks.paths import KEYPOINTS, KIND, PROPAGATION, SIZE, Rule, Steps, steps_between
from tasks.propagation.rule import PropagationRule
from tasks.protocols import PROTOCOLS, find_protocol
from zoo.view.released import CornerSquare, OfPixels, OfTokens, ScriptFrame
from zoo.view.views import Letterbox, RaisedFrame, Stretch, Tiles, WholeFrame

KEYPOINT_PROTOCOLS = [one.name for one in PROTOCOLS if one.speaks_of("spair")]
VIDEO_PROTOCOLS = [one.name for one in PROTOCOLS if one.speaks_of("davis")]


def primary(name: str) -> KeypointRule:
    """The rule of a protocol with its primary share of the box's side alone."""
    rule = find_protocol(name).keypoints
    return replace(rule, alphas=rule.alphas[:1])


def differences(one: Rule, other: Rule) -> set[str]:
    return {field.name for field in fields(one) if getattr(one, field.name) != getattr(other, field.name)}


def require_a_path(found: Steps, first: Rule, second: Rule) -> None:
    assert found.rules[found.path[0]] == first
    assert found.rules[found.path[-1]] == second
    assert len(found.path) == len(found.choices) + 1 == len(found.alone) + 1 == len(found.last) + 1
    assert len(set(found.rules)) == len(found.rules)
    for place, choice in enumerate(found.choices):
        own = {*(KEYPOINTS | PROPAGATION)[choice.name]} or {"view"}
        before, after = (found.rules[number] for number in found.path[place : place + 2])
        assert differences(before, after) <= own
        assert differences(first, found.rules[found.alone[place]]) <= own
        assert differences(second, found.rules[found.last[place]]) <= own
        assert choice.old != choice.new


@pytest.mark.parametrize(("one", "other"), [*product(KEYPOINT_PROTOCOLS, repeat=2)])
def test_keypoints_one_choice_at_a_time(one: str, other: str) -> None:
    first, second = primary(one), primary(other)
    require_a_path(steps_between(first, second), first, second)


@pytest.mark.parametrize(("one", "other"), [*product(VIDEO_PROTOCOLS, repeat=2)])
def test_propagation_one_choice_at_a_time(one: str, other: str) -> None:
    first, second = (find_protocol(name).propagation for name in (one, other))
    require_a_path(steps_between(first, second), first, second)


def test_a_protocol_and_itself_differ_in_nothing() -> None:
    found = steps_between(primary("insid3"), primary("insid3"))
    assert found == Steps((), (primary("insid3"),), (0,), (), ())


def test_every_field_of_a_rule_is_a_choice() -> None:
    """A field that belongs to no choice would stay what it is in the first protocol, unsaid."""
    for rule, order in ((KeypointRule, KEYPOINTS), (PropagationRule, PROPAGATION)):
        named = [name for names in order.values() for name in names]
        assert sorted(["view", *named]) == sorted(field.name for field in fields(rule))


def test_size_and_resizing_are_two_choices() -> None:
    found = steps_between(primary("standard"), primary("insid3"))
    assert [choice.name for choice in found.choices][:2] == [SIZE, KIND]
    views = [found.rules[number].view for number in found.path[:3]]
    assert views == [
        Letterbox(224),
        OfTokens(Letterbox(768), 48),
        OfTokens(Stretch(768, bilinear=True), 48),
    ]
    to_corner = steps_between(primary("standard"), primary("probe3d"))
    assert [to_corner.rules[number].view for number in to_corner.path[:3]] == [
        Letterbox(224),
        OfPixels(Letterbox(800)),
        CornerSquare(800),
    ]
    sizes = [OfPixels(Letterbox(800)).scaled(224, patch).geometry((500, 375)).size for patch in (16, 14)]
    assert sizes == [(800, 800), (798, 798)]


def test_frames_change_size_and_rounding_but_tiles_come_at_once() -> None:
    rules = {name: find_protocol(name).propagation for name in ("standard", "paper", "dino", "dinov3")}
    found = steps_between(rules["standard"], rules["dinov3"])
    assert [found.rules[number].view for number in found.path[:3]] == [
        WholeFrame(480),
        WholeFrame(960),
        RaisedFrame(960),
    ]
    tiles = steps_between(rules["paper"], rules["dino"])
    assert [choice.name for choice in tiles.choices] == [KIND, "decimals"]
    assert [tiles.rules[number].view for number in tiles.path[:2]] == [Tiles(448, 224), ScriptFrame(480, 64)]


def test_rules_of_two_tasks_have_no_way_between_them() -> None:
    with pytest.raises(ValueError, match="two rules of one task"):
        steps_between(primary("standard"), find_protocol("dino").propagation)
