"""Effective receptive fields of known shape have known radii, areas and shares."""

import numpy as np
import pytest

from layerboard.tasks.analyses.receptive_field import half_area, half_radius

SIDE = 224
CENTRE = (120.0, 120.0)


def distances(side: int, centre: tuple[float, float]) -> np.ndarray:
    rows, columns = (np.arange(side) + 0.5 - place for place in centre)
    return np.hypot(rows[:, None], columns[None])


@pytest.mark.parametrize("size", [16, 56, 57])
def test_a_box_has_the_radius_of_half_its_area(size: int) -> None:
    """A patch of its own, or what one k x k box filter sees."""
    field, start = np.zeros((SIDE, SIDE)), 120 - size // 2
    field[start : start + size, start : start + size] = 1 / size**2
    centre = start + size / 2, start + size / 2
    assert half_radius(field, centre) * SIDE == pytest.approx(0.399 * size, abs=0.5)
    assert half_area(field) == np.ceil(size**2 / 2) / SIDE**2


def test_a_gaussian_has_its_quantiles() -> None:
    sigma = 20.0
    field = np.exp(-(distances(SIDE, CENTRE) ** 2) / (2 * sigma**2))
    assert half_radius(field, CENTRE) * SIDE == pytest.approx(1.1774 * sigma, abs=0.3)
    assert half_area(field) * SIDE**2 == pytest.approx(2 * np.pi * np.log(2) * sigma**2, rel=0.01)


def test_a_field_of_one_pixel_has_its_distance() -> None:
    field = np.zeros((8, 8))
    field[4, 7] = 1
    assert half_radius(field, (4.5, 4.5)) == 3 / 8
    assert half_area(field) == 1 / 64


def test_scale_does_not_matter_and_the_radius_of_an_oblong_is_over_the_root_of_its_area() -> None:
    field = np.random.default_rng(0).random((8, 8))
    assert half_radius(7 * field, (4, 4)) == half_radius(field, (4, 4))
    assert half_area(7 * field) == half_area(field)
    oblong = np.zeros((4, 16))
    oblong[2, 15] = 1
    assert half_radius(oblong, (2.5, 8.5)) == 7 / 8
