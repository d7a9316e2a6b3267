"""Which layers an option means."""

from dataclasses import replace

import pytest

from layerboard.benchmark.plan.layers import select_layers
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Layer
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
