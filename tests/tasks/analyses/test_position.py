"""How much of tokens is their place: planted places, scikit-learn, and matches by a slow search."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from layerboard.tasks.analyses.position import PositionAudit, PositionConfig, matches, place_errors, places
from layerboard.tasks.framework.base import Outcome
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import Layer
from tests.tasks.analyses.planted import left_behind, noise, sources

PENALTIES = (1e-3, 1e-1, 10.0, 1e3)


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


LAYER = Layer(2)
AUDITED = (1e-3, 1.0, 1e3)


def positioned(images: int, cells: tuple[int, int] = (4, 4)) -> Tensor:
    angles = places(cells).float() * torch.pi
    code = torch.cat([angles.cos(), angles.sin()], dim=-1).unflatten(0, cells)
    return 4 * code + 0.01 * noise(images, *cells, 4)


def audited(grids: list[Tensor], folder: Path, images: int = 64) -> Outcome:
    """What is said of one layer that shows groups of images those grids; an empty one cannot be read."""
    task = PositionAudit(sources([max(1, len(one)) for one in grids]), PositionConfig(images, AUDITED))
    every = torch.cat([one if len(one) else torch.zeros(1, *grids[0].shape[1:]) for one in grids])
    shown = {LAYER.index: [LayerFeatures(LAYER, None, every)]}
    measured = left_behind(task, folder, shown, seen=[range(len(one)) for one in grids])
    if measured.failures:
        return Outcome((), empty=measured.failures[LAYER])
    (found,) = task.findings(measured).outcomes
    assert (found.layer, found.pooling) == (LAYER, "patch")
    return found.outcome


def test_places_are_found_in_every_image_of_every_group(tmp_path: Path) -> None:
    found = audited([positioned(10), positioned(6)], tmp_path)
    values = {score.metric: (score.value, score.n) for score in found.scores}
    assert values["position-r2"][0] > 0.98
    assert values["same-place"] == (1.0, 16)
    assert values["match-distance"] == (0.0, 16)
    assert values["same-place-chance"] == (1 / 16, 16)
    assert found.items is not None
    assert found.items.keys[:2] == ("0-0", "0-1")
    for name, statistic in found.items.statistics.items():
        assert values[name][0] == pytest.approx(found.items.values[statistic.column].mean())


def test_the_first_images_of_a_group_are_looked_at(tmp_path: Path) -> None:
    grids = torch.cat([positioned(6), noise(20, 4, 4, 4)])
    first = audited([grids], tmp_path / "a", images=6)
    alone = audited([positioned(6)], tmp_path / "b")
    assert [score.n for score in first.scores] == [6] * len(first.scores)
    np.testing.assert_allclose(
        [score.value for score in first.scores], [score.value for score in alone.scores], atol=0.02
    )


@pytest.mark.parametrize(
    ("grids", "reason"),
    [
        (torch.ones(6, 4, 4, 3), "tokens are the same everywhere"),
        (noise(3, 4, 4, 3), "fewer than 4 images of each batch could be read"),
        (torch.full((6, 4, 4, 3), torch.nan), "features are not finite"),
    ],
)
def test_what_cannot_be_audited_says_why(grids: Tensor, reason: str, tmp_path: Path) -> None:
    found = audited([grids], tmp_path)
    assert not found.scores
    assert reason in found.empty


def test_a_grid_of_one_row_has_columns_only(tmp_path: Path) -> None:
    found = audited([positioned(8, (1, 6))], tmp_path)
    names = {score.metric for score in found.scores}
    assert "position-r2-column" in names
    assert "position-r2-row" not in names
    assert next(score.value for score in found.scores if score.metric == "position-r2") > 0.9


def test_groups_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    found = audited([positioned(6), torch.empty(0)], tmp_path / "one")
    assert {score.n for score in found.scores} == {6}
