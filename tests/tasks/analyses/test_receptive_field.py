"""Receptive fields of known shape, from what a backbone says to scores and arrays."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from layerboard.tasks.analyses.receptive_field import (
    ReceptiveFieldConfig,
    ReceptiveFieldTask,
    half_area,
    half_radius,
)
from layerboard.tasks.framework.base import Findings, Outcome
from layerboard.tasks.framework.stored import Fields
from layerboard.zoo.spec import Layer
from tests.benchmark.doubles import probed, source

SIDE, GRID = 64, (8, 8)
LAYER = Layer(2)


def problem(*, images: int = 32, channels: int | None = 32, seed: int = 0) -> ReceptiveFieldTask:
    probe = source([[1] * 30, [2] * 40], joint=True)
    where = probed(probe, 32)
    return ReceptiveFieldTask(where, ReceptiveFieldConfig(images, channels, seed))


def fields(strength: np.ndarray, cells: tuple[int, int] = GRID, coarsest: tuple[int, int] = GRID) -> Fields:
    return Fields({LAYER: strength}, {LAYER: cells}, coarsest, 32, {})


def found_of(said: Fields) -> Findings:
    return problem().results(SimpleNamespace(fields=lambda *_: said))


def outcome(said: Fields) -> Outcome:
    (one,) = found_of(said).outcomes
    assert (one.layer, one.pooling) == (LAYER, "patch")
    return one.outcome


def values(said: Fields) -> list[float]:
    found = outcome(said).scores
    assert [one.metric for one in found] == ["erf-half-radius", "erf-half-area", "erf-centre-share"]
    assert {(one.n, one.unit) for one in found} == {(32, "images")}
    return [one.value for one in found]


def test_a_uniform_field_and_one_of_the_own_patch() -> None:
    uniform = values(fields(np.full((SIDE, SIDE), 2.0)))
    assert uniform == [pytest.approx(0.399, abs=0.004), 0.5, pytest.approx(1 / 64)]
    patch = np.zeros((SIDE, SIDE))
    patch[32:40, 32:40] = 1
    assert values(fields(patch)) == [pytest.approx(0.399 * 8 / SIDE, abs=0.008), 0.5 / 64, 1]


def test_the_share_is_that_of_the_coarsest_cell_around_the_centre_of_a_finer_grid() -> None:
    """Of a ConvNet: the centre of a map of 16 x 16 lies at the top left of the centre of the last, 2 x 2."""
    cell = np.zeros((SIDE, SIDE))
    cell[32:36, 32:36] = 1
    radius, _, share = values(fields(cell, (16, 16), (2, 2)))
    assert radius == pytest.approx(0.399 * 4 / SIDE, abs=0.008)
    assert share == 1
    odd = np.zeros((56, 56))
    odd[24:32, 24:32] = 1
    assert values(fields(odd, (14, 14), (7, 7)))[2] == 1


def test_no_gradient_has_no_value_and_its_array_is_empty() -> None:
    assert outcome(fields(np.zeros((SIDE, SIDE)))).empty == "no pixel changes it: all gradients are zero"
    assert outcome(fields(np.full((SIDE, SIDE), np.nan))).empty == "gradients are not finite"
    assert np.isnan(found_of(fields(np.zeros((SIDE, SIDE)))).arrays["erf"]).all()
    refused = found_of(Fields({}, {}, (0, 0), 0, {Layer(1): "it gives no gradients."}))
    assert [one.outcome.empty for one in refused.outcomes] == ["it gives no gradients."]
    assert not refused.arrays


def test_arrays_have_blocks_and_taps_as_axes_and_fields_sum_to_one() -> None:
    ones = np.ones((SIDE, SIDE))
    layers = [Layer(1, "mlp"), Layer(1), Layer(3)]
    said = Fields(dict.fromkeys(layers, ones), dict.fromkeys(layers, GRID), GRID, 5, {Layer(3, "mlp"): "no"})
    found = found_of(said)
    assert [one.layer for one in found.outcomes] == [*layers[:2], Layer(3, "mlp"), layers[2]]
    assert found.arrays["erf"].shape == (2, 2, SIDE, SIDE)
    assert found.arrays["block"].tolist() == [1, 3]
    assert found.arrays["tap"].tolist() == ["mlp", "block"]
    assert found.arrays["erf"][0, 1].sum() == pytest.approx(1)
    assert np.isnan(found.arrays["erf"][1, 0]).all()


def test_images_are_drawn_evenly_and_channels_by_seed() -> None:
    task = problem(images=8)
    keys = [sample.key for sample in task.source.samples]
    assert keys == ["0-0", "0-10", "0-20", "1-0", "1-9", "1-19", "1-29", "1-39"]
    assert len(problem(images=100).source.samples) == 70
    assert not task.source.joint
    assert task.source.name != task.data.probe.name
    assert len(set(problem().channels(96))) == 32
    assert problem().channels(96) == problem().channels(96) != problem(seed=1).channels(96)
    assert problem().channels(4) == problem(channels=None).channels(4) == [0, 1, 2, 3]
    assert task.fingerprint != problem().fingerprint


def test_all_places_of_the_blocks_are_asked_for() -> None:
    found = problem().layers((Layer(0), Layer(2), Layer(2, "final")))
    assert [str(layer) for layer in found] == ["0", "2.attention", "2.mid", "2.mlp", "2.branch", "2"]
    assert replace(problem(), config=ReceptiveFieldConfig(1, 1, 0)).layers((Layer(0),)) == (Layer(0),)


WIDE = 224
CENTRE = (120.0, 120.0)


def distances(side: int, centre: tuple[float, float]) -> np.ndarray:
    rows, columns = (np.arange(side) + 0.5 - place for place in centre)
    return np.hypot(rows[:, None], columns[None])


@pytest.mark.parametrize("size", [16, 56, 57])
def test_a_box_has_the_radius_of_half_its_area(size: int) -> None:
    """A patch of its own, or what one k x k box filter sees."""
    field, start = np.zeros((WIDE, WIDE)), 120 - size // 2
    field[start : start + size, start : start + size] = 1 / size**2
    centre = start + size / 2, start + size / 2
    assert half_radius(field, centre) * WIDE == pytest.approx(0.399 * size, abs=0.5)
    assert half_area(field) == np.ceil(size**2 / 2) / WIDE**2


def test_a_gaussian_has_its_quantiles() -> None:
    sigma = 20.0
    field = np.exp(-(distances(WIDE, CENTRE) ** 2) / (2 * sigma**2))
    assert half_radius(field, CENTRE) * WIDE == pytest.approx(1.1774 * sigma, abs=0.3)
    assert half_area(field) * WIDE**2 == pytest.approx(2 * np.pi * np.log(2) * sigma**2, rel=0.01)


def test_scale_does_not_matter_and_the_radius_of_an_oblong_is_over_the_root_of_its_area() -> None:
    field = np.random.default_rng(0).random((8, 8))
    assert half_radius(7 * field, (4, 4)) == half_radius(field, (4, 4))
    assert half_area(7 * field) == half_area(field)
    oblong = np.zeros((4, 16))
    oblong[2, 15] = 1
    assert half_radius(oblong, (2.5, 8.5)) == 7 / 8
