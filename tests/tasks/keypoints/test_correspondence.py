"""Matching of keypoints by its functions, beside what the references of `tests.tasks.agreement` decide."""

import numpy as np
import pytest
import torch

from layerboard.tasks.datasets.spair_facts import GROUPS
from layerboard.tasks.keypoints.correspondence import AVERAGES, SoftArgmax, pck_averages
from tests.tasks.agreement.correspondence import match, match_official, sample_points


def test_ties_on_the_border_go_to_the_first_pixel():
    grid = torch.eye(4).view(2, 2, 4)
    assert match(torch.eye(4), grid, 8).tolist() == [[0.5, 0.5], [6.5, 0.5], [0.5, 6.5], [6.5, 6.5]]
    assert match_official(grid, grid, torch.tensor([[7.9, 7.2]]), 8).tolist() == [[6, 6]]


def test_layers_are_matched_at_once_and_targets_are_shared():
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(3, 4, 4, 9, generator=generator) for _ in range(2))
    points = torch.tensor([[3.0, 5.5], [20.2, 31.0]])
    content = (0.0, 4.0, 32.0, 28.0)
    found = match(sample_points(source, points, 8), target, 32, content)
    assert found.shape == (3, 2, 2)
    for layer in range(3):
        alone = match(sample_points(source[layer], points, 8), target[layer], 32, content)
        assert (alone == found[layer]).all()
    assert match_official(source, target, points, 32).shape == (3, 2, 2)


def test_refuses_wrong_input():
    with pytest.raises(ValueError, match="no pixel"):
        match(torch.ones(4, 3), torch.ones(2, 2, 3), 8, (3.6, 0.0, 4.4, 8.0))


def test_pull_is_the_weight_of_what_is_hidden() -> None:
    maps = torch.zeros(1, 60, 60, dtype=torch.float64)
    maps[0, 30, 30] = 0.2
    way = SoftArgmax(0.02, window=5)
    inside = 11 * 11 - 1
    weight = torch.exp(torch.tensor(0.2 / 0.02, dtype=torch.float64)).item()
    assert way.found(maps)[1].item() == pytest.approx((3600 - inside - 1) / (weight + 3599))
    assert SoftArgmax(0.02).found(maps)[1].item() == 0


def test_pairs_without_a_point_are_left_out() -> None:
    found = pck_averages(np.array([True, False, True]), np.array([0, 0, 2]), ["a", "a", "b"])
    assert found == dict(zip(AVERAGES, (0.75, 0.75, 2 / 3, 0.75, 0.75), strict=True))
    none = np.zeros(0, np.int64)
    assert all(np.isnan(value) for value in pck_averages(none.astype(bool), none, ["a"]).values())


def test_groups_are_disjoint() -> None:
    assert len(GROUPS) == 18
    for groups in GROUPS.values():
        ids = [one for group in groups for one in group]
        assert len(ids) == len(set(ids))
