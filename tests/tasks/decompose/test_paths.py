"""The way from one protocol to another: it begins and ends where it should, whatever lies between."""

from dataclasses import fields, replace
from itertools import product

import pytest

from layerboard.tasks.decompose.paths import (
    KEYPOINTS,
    KIND,
    PROPAGATION,
    SIZE,
    TAP,
    TRANSFORM,
    End,
    Read,
    Steps,
    steps_between,
)
from layerboard.tasks.framework.protocols import PROTOCOLS, find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.keypoints.config import KeypointConfig
from layerboard.tasks.propagation.config import PropagationConfig
from layerboard.zoo.view.released import CornerSquare, OfPixels, OfTokens, ScriptFrame
from layerboard.zoo.view.views import Letterbox, RaisedFrame, Stretch, Tiles, WholeFrame

KEYPOINT_PROTOCOLS = [one.name for one in PROTOCOLS if one.covers("spair")]
VIDEO_PROTOCOLS = [one.name for one in PROTOCOLS if one.covers("davis")]


def rule_of(name: str) -> KeypointConfig:
    """The rule of a protocol with its primary share of the box's side alone."""
    rule = config_of(find_protocol(name), "spair")
    return replace(rule, alphas=rule.alphas[:1])


def frames_rule(name: str) -> PropagationConfig:
    """The rule of a protocol with its primary answers to what its source leaves open alone."""
    return replace(config_of(find_protocol(name), "davis"), others=())


def primary(name: str, tap: Read = "block", transform: str = "") -> End:
    """That rule with features."""
    return End(rule_of(name), tap, transform)


def differences(one: End, other: End) -> set[str]:
    """Fields of rules and of what they are given."""
    return {
        field.name
        for left, right in ((one, other), (one.rule, other.rule))
        for field in fields(left)
        if field.name != "rule" and getattr(left, field.name) != getattr(right, field.name)
    }


FEATURES = {TAP: {"tap"}, TRANSFORM: {"transform"}}


def require_a_path(found: Steps, first: End, second: End) -> None:
    assert found.stops[found.path[0]] == first
    assert found.stops[found.path[-1]] == second
    assert len(found.path) == len(found.choices) + 1 == len(found.alone) + 1 == len(found.last) + 1
    assert len(set(found.stops)) == len(found.stops)
    for place, choice in enumerate(found.choices):
        own = {*{**KEYPOINTS, **PROPAGATION}[choice.name]} or FEATURES.get(choice.name, {"view"})
        before, after = (found.stops[number] for number in found.path[place : place + 2])
        assert differences(before, after) <= own
        assert differences(first, found.stops[found.alone[place]]) <= own
        assert differences(second, found.stops[found.last[place]]) <= own
        assert choice.old != choice.new


@pytest.mark.parametrize("one", KEYPOINT_PROTOCOLS)
def test_keypoints_one_choice_at_a_time(one: str) -> None:
    for first, second in product([primary(one)], map(primary, KEYPOINT_PROTOCOLS)):
        require_a_path(steps_between(first, second), first, second)


@pytest.mark.parametrize("one", VIDEO_PROTOCOLS)
def test_propagation_one_choice_at_a_time(one: str) -> None:
    for other in VIDEO_PROTOCOLS:
        first, second = (End(frames_rule(name)) for name in (one, other))
        require_a_path(steps_between(first, second), first, second)


def test_a_protocol_and_itself_differ_in_nothing() -> None:
    found = steps_between(primary("insid3"), primary("insid3"))
    assert found == Steps((), (primary("insid3"),), (0,), (), ())


@pytest.mark.parametrize("name", ["insid3", "dino"])
def test_layers_and_transforms_are_choices_between_the_view_and_the_rule(name: str) -> None:
    if name == "insid3":
        first, second = primary("standard"), primary(name, "final", "debias:20")
    else:
        start, end = (config_of(find_protocol(one), "davis") for one in ("standard", name))
        first, second = End(start), End(end, "final", "debias:20")
    found = steps_between(first, second)
    require_a_path(found, first, second)
    names = [choice.name for choice in found.choices]
    place = names.index(TAP)
    assert {*names[:place]} <= {SIZE, KIND}
    assert names[place + 1] == TRANSFORM
    assert (found.choices[place + 1].old, found.choices[place + 1].new) == ("none", "debias:20")
    plain = steps_between(End(first.rule), End(second.rule))
    assert [one for one in names if one not in (TAP, TRANSFORM)] == [one.name for one in plain.choices]
    back = steps_between(second, first)
    require_a_path(back, second, first)
    assert [(one.name, one.new, one.old) for one in back.choices] == [
        (one.name, one.old, one.new) for one in found.choices
    ]


def test_another_tap_alone_needs_no_other_scores() -> None:
    """Every layer is scored by every rule, whichever of them a stop reads."""
    found = steps_between(primary("insid3"), primary("insid3", "final"))
    assert [choice.name for choice in found.choices] == [TAP]
    assert (found.path, found.scored) == ((0, 1), (0, 0))
    found = steps_between(primary("insid3"), primary("insid3", transform="debias:20"))
    assert (found.path, found.scored) == ((0, 1), (0, 1))
    assert steps_between(primary("insid3", "final"), primary("insid3", "final")).choices == ()


def test_every_field_of_a_rule_is_a_choice() -> None:
    """A field that belongs to no choice would stay what it is in the first protocol, unsaid.

    What a source leaves open is in no stop.
    """
    for rule, order in ((KeypointConfig, KEYPOINTS), (PropagationConfig, PROPAGATION)):
        named = [name for names in order.values() for name in names]
        assert sorted(["view", *named]) == sorted({field.name for field in fields(rule)} - {"others"})


def test_size_and_resizing_are_two_choices() -> None:
    found = steps_between(primary("standard"), primary("insid3"))
    assert [choice.name for choice in found.choices][:2] == [SIZE, KIND]
    views = [found.stops[number].rule.view for number in found.path[:3]]
    assert views == [Letterbox(224), OfTokens(Letterbox(768), 48), OfTokens(Stretch(768, bilinear=True), 48)]
    to_corner = steps_between(primary("standard"), primary("probe3d"))
    assert [to_corner.stops[number].rule.view for number in to_corner.path[:3]] == [
        Letterbox(224),
        OfPixels(Letterbox(800)),
        CornerSquare(800),
    ]
    sizes = [OfPixels(Letterbox(800)).scaled(224, patch).geometry((500, 375)).size for patch in (16, 14)]
    assert sizes == [(800, 800), (798, 798)]


def test_frames_change_size_and_rounding_but_tiles_come_at_once() -> None:
    rules = {
        name: End(config_of(find_protocol(name), "davis")) for name in ("standard", "paper", "dino", "dinov3")
    }
    found = steps_between(rules["standard"], rules["dinov3"])
    assert [found.stops[number].rule.view for number in found.path[:3]] == [
        WholeFrame(480),
        WholeFrame(960),
        RaisedFrame(960),
    ]
    tiles = steps_between(rules["paper"], rules["dino"])
    assert [choice.name for choice in tiles.choices] == [KIND, "decimals"]
    assert [tiles.stops[number].rule.view for number in tiles.path[:2]] == [
        Tiles(448, 224),
        ScriptFrame(480, 64),
    ]


@pytest.mark.parametrize(
    ("first", "second", "choices"),
    [
        ("dinov3", "dinov3-960", [KIND, "decoding"]),
        ("dinov3-480", "dinov3-960", [SIZE]),
        ("pe", "pe-squares", [KIND]),
        ("dino", "pe", [KIND]),
    ],
)
def test_what_a_source_leaves_open_is_no_choice(first: str, second: str, choices: list[str]) -> None:
    found = steps_between(*(End(config_of(find_protocol(name), "davis")) for name in (first, second)))
    assert [choice.name for choice in found.choices] == choices
    assert found.stops[found.path[-1]].rule == frames_rule(second)
    assert not any(stop.rule.others for stop in found.stops)


def test_the_corner_square_has_as_many_tokens_as_the_size_says() -> None:
    steps = steps_between(primary("insid3"), primary("dinov3"))
    views = [steps.stops[number].rule.view for number in steps.path[:3]]
    assert views[1:] == [OfTokens(Stretch(1024, bilinear=True), 64), OfTokens(CornerSquare(1024), 64)]
    other_way = steps_between(primary("dinov3"), primary("insid3"))
    assert other_way.stops[other_way.path[1]].rule.view == OfTokens(CornerSquare(768), 48)


def test_rules_of_two_tasks_have_no_way_between_them() -> None:
    with pytest.raises(ValueError, match="two rules of one task"):
        steps_between(primary("standard"), End(config_of(find_protocol("dino"), "davis")))
