"""Which layers and taps options mean."""

from dataclasses import replace

import pytest

from layerboard.benchmark.plan.layers import select_layers, with_taps
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec, Layer, Stage, Tap
from layerboard.zoo.spec.origin import OBJECT
from tests.benchmark.doubles import SPEC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all", ["1", "2", "3", "final"]),
        ("2", ["2"]),
        ("0-2", ["0", "1", "2"]),
        ("final", ["final"]),
        ("final, 1", ["1", "final"]),
        ("1,1-2", ["1", "2"]),
    ],
)
def test_layers_of_an_option(text: str, expected: list[str]) -> None:
    assert [str(layer) for layer in select_layers(text, SPEC)] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [("4", "layers 0 to 3, there is no layer 4"), ("last", "found 'last'"), ("3-1", "has none of '3-1'")],
)
def test_wrong_layers_are_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        select_layers(text, SPEC)


def test_the_floor_always_has_all_its_draws() -> None:
    floor = replace(SPEC, family="random", has_final=False)
    assert select_layers("12,final", floor) == (Layer(1), Layer(2), Layer(3))


def test_the_final_norm_that_a_convnet_lacks() -> None:
    convnet = replace(SPEC, has_final=False)
    assert select_layers("1,final", convnet) == (Layer(1),)
    with pytest.raises(InputError, match="no final norm, and so no layer 'final'; its last block is 3: give"):
        select_layers("final", convnet)


def test_a_long_text_is_shortened_in_its_sentence() -> None:
    for text in ("x" * 5000, "9" * 5000):
        with pytest.raises(InputError) as error:
            select_layers(text, SPEC)
        assert len(str(error.value)) < 400


TOKENS = replace(SPEC, heads=2)


@pytest.mark.parametrize(
    ("layers", "spec", "taps", "expected"),
    [
        ("all", TOKENS, ("block",), "1 2 3 final"),
        ("all", TOKENS, ("norm1", "norm2"), "1.norm1 1.norm2 2.norm1 2.norm2 3.norm1 3.norm2"),
        ("0-1,final", TOKENS, ("block", "attention", "mlp"), "0 1.attention 1.mlp 1 final"),
        ("2,3", TOKENS, ("block", "block-normed"), "2 2.block-normed 3 3.block-normed"),
        ("1-2", TOKENS, ("norm1", "skip"), "1.norm1 2.norm1"),
        ("1-2", SPEC, ("norm1", "skip"), "1.skip 2.skip"),
        ("1-2", SPEC, ("block", "skip", "branch"), "1.skip 1.branch 1 2.skip 2.branch 2"),
        ("3", SPEC, ("input",), "3.input"),
    ],
)
def test_layers_are_read_at_the_taps_that_a_backbone_has(
    layers: str, spec: BackboneSpec, taps: tuple[Tap, ...], expected: str
) -> None:
    assert " ".join(map(str, select_layers(layers, spec, taps))) == expected


def test_taps_that_a_backbone_has_not() -> None:
    own = replace(TOKENS, origin=OBJECT)
    with pytest.raises(InputError, match="double has none of the taps asked for: leave it or --taps out"):
        select_layers("all", own, ("norm1",))
    assert select_layers("1", replace(own, taps=("mlp", "norm1")), ("norm1",)) == (Layer(1, "norm1"),)
    with pytest.raises(InputError, match="layers '0,final' have no mlp"):
        select_layers("0,final", TOKENS, ("mlp",))
    stages = replace(TOKENS, stages=(Stage(2, 4, 4), Stage(1, 8, 8)))  # the norm takes the last stage alone
    assert select_layers("all", stages, ("block-normed",)) == (Layer(3, "block-normed"),)
    with pytest.raises(
        InputError, match="layers '1-2' have no block-normed in double; blocks from 3 on have"
    ):
        select_layers("1-2", stages, ("block-normed",))
    floor = replace(SPEC, family="random", has_final=False)
    assert select_layers("all", floor, ("norm1",)) == (Layer(1), Layer(2), Layer(3))


def test_what_taps_leave_out_is_said_once() -> None:
    vits = [replace(TOKENS, name=name) for name in ("a", "b")]
    convnet, floor = replace(SPEC, name="c"), replace(SPEC, name="r", family="random")
    both = [*vits, convnet, floor]
    assert with_taps(both, ("block",)) == (both, [])
    assert with_taps(both, ("input",)) == (both, [])
    assert with_taps(both, ("block", "norm1", "mlp", "branch")) == (
        both,
        ["left out: branch of a, b: no such tap", "left out: norm1, mlp of c: no such tap"],
    )
    assert with_taps(both, ("norm1",)) == ([*vits, floor], ["left out: c, without norm1"])
    bare = replace(convnet, has_final=False)
    assert with_taps([*vits, bare], ("block", "block-normed")) == (
        [*vits, bare],
        ["left out: block-normed of c: no final norm is known"],
    )
    with pytest.raises(InputError, match="no block of c has the tap block-normed, as no final norm is known"):
        with_taps([bare], ("block-normed",))
    with pytest.raises(InputError, match="no block of a, b has the tap skip; --taps takes block, input, nor"):
        with_taps([*vits, floor], ("norm1", "skip"))
    assert with_taps([floor], ("norm1",)) == ([floor], [])
