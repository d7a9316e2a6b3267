"""How much of tokens is their place: planted places, scikit-learn, and matches by a slow search."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from layerboard.tasks.analyses.position import matches, place_errors, places
from layerboard.tasks.metrics.spread import debiased, position_basis

PENALTIES = (1e-3, 1e-1, 10.0, 1e3)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def explained(grids: Tensor, penalties: tuple[float, ...] = PENALTIES) -> list[float]:
    """Share of the variance of rows and of columns that is read off."""
    squared, variance = place_errors(grids, penalties)
    return (1 - squared.mean(0) / variance).tolist()


def test_places_are_the_centres_of_cells() -> None:
    assert places((2, 2)).tolist() == [[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]]


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (1.0, 0.5), (3.0, 0.25)])
def test_planted_share_of_the_variance(share: float, expected: float) -> None:
    """A channel is the row and noise of so many times its variance; a large constant keeps tokens linear."""
    row = places((8, 8))[:, 0].float()
    spread = row.std(correction=0) * share**0.5
    channel = row.expand(40, 64) + spread * noise(40, 64)
    tokens = torch.stack([torch.full_like(channel, 100.0), channel], dim=-1).unflatten(1, (8, 8))
    rows, columns = explained(tokens)
    assert rows == pytest.approx(expected, abs=0.03)
    assert columns == pytest.approx(0, abs=0.01)


def test_debiased_tokens_keep_no_place() -> None:
    angles = places((10, 10)).float() * torch.pi
    code = torch.cat([angles.cos(), angles.sin()], dim=-1).unflatten(0, (10, 10))
    position, nothing = 4 * code.expand(16, 10, 10, 4), torch.zeros(10, 10, 60)
    tokens = torch.cat([torch.nn.functional.normalize(noise(16, 10, 10, 60), dim=-1), position], dim=-1)
    basis = position_basis(torch.cat([nothing, 4 * code], dim=-1).flatten(0, 1), 20)
    before, after = explained(tokens), explained(debiased(tokens, basis))
    assert min(before) > 0.95
    assert max(map(abs, after)) < 0.02
    assert matches(tokens)[0].mean() > 0.7
    assert matches(debiased(tokens, basis))[0].mean() == pytest.approx(0.01, abs=0.01)


def test_one_penalty_is_the_ridge_regression_of_scikit_learn() -> None:
    grids = noise(6, 3, 4, 5) + places((3, 4)).float().sum(1).view(1, 3, 4, 1)
    tokens = torch.nn.functional.normalize(grids, dim=-1).flatten(1, 2).double().numpy()
    truth, expected = places((3, 4)).numpy(), np.empty((6, 2))
    for half in range(2):
        learned = tokens[half::2].reshape(-1, 5)
        added = 0.3 * ((learned - learned.mean(0)) ** 2).sum(0).mean()
        fitted = Ridge(alpha=added).fit(learned, np.tile(truth, (3, 1)))
        for image in range(1 - half, 6, 2):
            expected[image] = ((fitted.predict(tokens[image]) - truth) ** 2).mean(0)
    np.testing.assert_allclose(place_errors(grids, (0.3,))[0].numpy(), expected, atol=1e-6)


def test_matches_are_those_of_a_slow_search() -> None:
    grids = noise(3, 2, 3, 4)
    where = places((2, 3)).numpy()
    same, distance = matches(grids)
    for image in range(3):
        one, other = (grids[place].flatten(0, 1).double().numpy() for place in (image, (image + 1) % 3))
        cosines = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in other] for a in one]
        best = np.argmax(cosines, axis=1)
        assert same[image].item() == pytest.approx(np.mean(best == np.arange(6)))
        expected = np.linalg.norm(where[best] - where, axis=1).mean()
        assert distance[image].item() == pytest.approx(expected)


def test_tokens_that_are_all_equal_read_off_the_mean_place() -> None:
    assert explained(torch.ones(4, 3, 3, 5)) == pytest.approx([0, 0], abs=1e-6)
    squared, variance = place_errors(noise(4, 1, 5, 3), PENALTIES)
    assert variance.tolist() == pytest.approx([0, 0.08])
    assert squared[:, 0].abs().max() < 1e-12
