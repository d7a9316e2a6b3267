import numpy as np
import pytest
import torch

from layerboard.tasks.datasets.spair_facts import GROUPS
from layerboard.tasks.keypoints.correspondence import AVERAGES, SoftArgmax, pck_averages


class TestSoftArgmax:
    def test_pull_is_the_weight_of_what_is_hidden(self) -> None:
        maps = torch.zeros(1, 60, 60, dtype=torch.float64)
        maps[0, 30, 30] = 0.2
        way = SoftArgmax(0.02, window=5)
        inside = 11 * 11 - 1
        weight = torch.exp(torch.tensor(0.2 / 0.02, dtype=torch.float64)).item()
        assert way.found(maps)[1].item() == pytest.approx((3600 - inside - 1) / (weight + 3599))
        assert SoftArgmax(0.02).found(maps)[1].item() == 0


class TestAverages:
    def test_pairs_without_a_point_are_left_out(self) -> None:
        found = pck_averages(np.array([True, False, True]), np.array([0, 0, 2]), ["a", "a", "b"])
        assert found == dict(zip(AVERAGES, (0.75, 0.75, 2 / 3, 0.75, 0.75), strict=True))

    def test_nothing_to_average(self) -> None:
        none = np.zeros(0, np.int64)
        assert all(np.isnan(value) for value in pck_averages(none.astype(bool), none, ["a"]).values())


class TestGroups:
    def test_groups_are_disjoint(self) -> None:
        assert len(GROUPS) == 18
        for groups in GROUPS.values():
            ids = [one for group in groups for one in group]
            assert len(ids) == len(set(ids))
