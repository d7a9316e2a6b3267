"""Principal directions against NumPy, and what is kept of cosines."""

import numpy as np
import pytest

from layerboard.leaderboards.report.principal import (
    colours,
    principal,
    quantised,
    restore_tokens,
    turned,
    unit,
)


def tokens(count: int, dim: int) -> np.ndarray:
    generator = np.random.default_rng(count)
    return unit(generator.standard_normal((count, dim)) * np.linspace(3, 0.2, dim) + 0.5)


@pytest.mark.parametrize(("count", "dim"), [(90, 40), (40, 90), (300, 16)])
def test_directions_are_those_of_numpy(count: int, dim: int) -> None:
    found = tokens(count, dim)
    left, values, _ = np.linalg.svd(found - found.mean(axis=0), full_matrices=False)
    first = principal(found, 10)
    np.testing.assert_allclose(np.abs(first.scores), np.abs(left * values)[:, :10], atol=1e-6)
    np.testing.assert_allclose(first.shares, (values**2 / (values**2).sum())[:10], atol=1e-6)
    assert (first.scores.max(axis=0) == np.abs(first.scores).max(axis=0)).all()  # signs are fixed


@pytest.mark.parametrize(("count", "dim"), [(90, 40), (40, 90)])
def test_all_directions_give_the_cosines(count: int, dim: int) -> None:
    found = tokens(count, dim)
    every = principal(found, max(count, dim))
    np.testing.assert_allclose(every.cosines(slice(None)), found @ found.T, atol=1e-6)
    np.testing.assert_allclose(every.cosines(np.array([3, 5])), found[[3, 5]] @ found.T, atol=1e-6)
    kept = restore_tokens(*quantised(every), every.square)
    assert np.abs(kept.cosines(slice(None)) - found @ found.T).max() < 0.02


def test_few_directions_are_kept_where_they_are_enough() -> None:
    every = principal(tokens(200, 40), 40).shares.cumsum()
    for enough in (0.5, 0.9):
        count = len(principal(tokens(200, 40), 40, enough).shares)
        assert every[count - 1] >= enough > every[count - 2]
    assert principal(tokens(200, 40), 40, 0.001).scores.shape == (200, 3)


def test_fewer_directions_lose_what_the_others_hold() -> None:
    found = tokens(200, 40)
    errors = [
        np.abs(principal(found, most).cosines(slice(None)) - found @ found.T).max() for most in (2, 10, 40)
    ]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("found", [np.ones((1, 5)), np.ones((6, 5)), np.zeros((6, 5))])
def test_tokens_that_are_all_alike_have_no_direction(found: np.ndarray) -> None:
    alike = principal(unit(found), 3)
    np.testing.assert_allclose(alike.cosines(slice(None)), unit(found) @ unit(found).T, atol=1e-6)
    assert np.isfinite(alike.shares).all()
    assert (colours(np.zeros((6, 3))) == 128).all()


def test_colours_follow_another_layers_where_only_the_basis_differs() -> None:
    generator = np.random.default_rng(0)
    scores = generator.standard_normal((500, 3)) * (3, 2, 1)
    mixed = scores[:, [2, 0, 1]] * (-1, 1, -4)
    whitened = scores / scores.std(axis=0)
    np.testing.assert_allclose(turned(mixed, scores), whitened, atol=0.1)
    spread = turned(mixed, generator.standard_normal((500, 3)))
    own = mixed / mixed.std(axis=0)
    np.testing.assert_allclose(spread @ spread.T, own @ own.T, atol=1e-9)  # a rotation or a reflection
