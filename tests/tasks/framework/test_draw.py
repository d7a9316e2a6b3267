"""Which images are examples: by their names alone, few, strata in turn."""

import numpy as np
import pytest

from layerboard.tasks.framework.examples import SIDE, by_key, drawn_indices, shrunk, small_mask
from tests.benchmark.doubles import MemorySample

KEYS = [f"image {number}" for number in range(200)]


def test_the_draw_depends_on_names_alone() -> None:
    places = drawn_indices(KEYS, 9)
    assert places == sorted(places)
    assert len(set(places)) == 9
    turned = KEYS[::-1]
    assert {turned[place] for place in drawn_indices(turned, 9)} == {KEYS[place] for place in places}
    assert drawn_indices(KEYS, 9) != list(range(9))
    assert drawn_indices(KEYS[:3], 9) == [0, 1, 2]
    assert drawn_indices([], 9) == []


def test_other_images_change_the_draw_only_where_they_are_drawn() -> None:
    before = {KEYS[place] for place in drawn_indices(KEYS[:-1], 9)}
    after = {KEYS[place] for place in drawn_indices(KEYS, 9)}
    assert before == after or after - before == {KEYS[-1]}


def test_a_name_that_comes_twice_is_drawn_once() -> None:
    assert drawn_indices(["a", "b", "a"], 5) == [0, 1]


def test_strata_take_turns() -> None:
    strata = [0] * 150 + [1] * 49 + [2]
    counts = np.bincount([strata[place] for place in drawn_indices(KEYS, 7, strata)])
    assert counts.tolist() == [3, 3, 1]


@pytest.mark.parametrize(
    ("size", "small"),
    [((192, 144), (96, 72)), ((40, 30), (40, 30)), ((4000, 3), (96, 1)), ((96, 97), (95, 96))],
)
def test_sizes_keep_their_shape(size: tuple[int, int], small: tuple[int, int]) -> None:
    assert shrunk(size) == small


def test_a_small_mask_holds_the_ids_in_its_corner() -> None:
    mask = np.zeros((144, 192), np.uint8)
    mask[:, 96:] = 2
    small = small_mask(mask)
    assert small.shape == (SIDE, SIDE)
    assert (small[:72, :48] == 0).all()
    assert (small[:72, 48:] == 2).all()
    assert (small[72:] == 255).all()


def test_samples_by_name_are_in_the_order_of_the_names() -> None:
    samples = [MemorySample(key, 0) for key in ("a", "b", "c")]
    assert list(by_key(samples, ["c", "", "a", "c", "gone"])) == ["c", "a"]
