"""Classes usually look like themselves and are usually met where they live, and never always."""

import colorsys

import numpy as np
import pytest

from workshop.render.individual import (
    COAT,
    GROUND,
    GROUNDS,
    HABITS,
    draw_coat,
    draw_ground,
    draw_individual,
    draw_kind,
)
from workshop.render.seeds import Namespace, generator
from workshop.render.templates import class_names
from workshop.render.textures import TEXTURES

DRAWS = 600


def test_every_class_has_a_habit_of_known_textures_and_grounds() -> None:
    assert tuple(HABITS) == class_names
    for habit in HABITS.values():
        assert habit.ground in GROUNDS
        assert set(habit.textures) <= set(TEXTURES)
        assert all(0 <= hue < 1 for hue in habit.coat)


def test_no_two_classes_have_the_same_habit() -> None:
    assert len({(habit.coat, habit.textures, habit.ground) for habit in HABITS.values()}) == len(HABITS)


@pytest.mark.parametrize("name", ["fish", "mug"])
def test_habits_are_kept_as_often_as_is_said(name: str) -> None:
    rng, habit = generator(Namespace.TRAINING, 5), HABITS[name]
    hues = np.array([colorsys.rgb_to_hsv(*draw_coat(rng, habit))[0] for _ in range(DRAWS)])
    apart = np.abs(hues[:, None] - np.array(habit.coat))
    usual = (np.minimum(apart, 1 - apart) <= 0.0301).any(axis=1)
    by_chance = 0.06 * len(habit.coat)
    assert usual.mean() == pytest.approx(COAT + (1 - COAT) * by_chance, abs=0.07)
    kinds = [draw_kind(rng, habit) for _ in range(DRAWS)]
    assert set(kinds) == {None, *habit.textures}
    assert np.mean([kind is not None for kind in kinds]) == pytest.approx(COAT, abs=0.07)


def test_grounds_are_usual_as_often_as_is_said() -> None:
    rng = generator(Namespace.TRAINING, 6)
    hue, (least, most), _ = GROUNDS["leaves"]
    drawn = [colorsys.rgb_to_hsv(*draw_ground(rng, "leaves")) for _ in range(DRAWS)]
    usual = np.mean([abs(one[0] - hue) <= 0.0301 and least <= one[1] <= most for one in drawn])
    assert usual == pytest.approx(GROUND, abs=0.07)
    anywhere = [colorsys.rgb_to_hsv(*draw_ground(rng, None))[0] for _ in range(DRAWS)]
    assert np.mean(np.abs(np.array(anywhere) - hue) <= 0.03) < 0.15


def test_textures_of_individuals_follow_their_class() -> None:
    fish = class_names.index("fish")
    kinds = [
        draw_individual(generator(Namespace.TRAINING, number), fish).materials[0].texture.kind
        for number in range(200)
    ]
    assert np.mean([kind in HABITS["fish"].textures for kind in kinds]) > COAT - 0.1
    assert len(set(kinds)) > 4
