import numpy as np
import pytest
import torch

from layerboard.tasks.datasets.spair_facts import GROUPS, geometry_aware
from layerboard.tasks.keypoints.correspondence import AVERAGES, Axis, SoftArgmax, pck_averages


class TestSoftArgmax:
    def test_a_single_peak_is_found_exactly(self) -> None:
        maps = torch.full((2, 9, 11), -1.0)
        maps[0, 4, 7] = maps[1, 0, 10] = 1.0
        found = SoftArgmax(0.01).found(maps)[0]
        torch.testing.assert_close(found, torch.tensor([[7.0, 4.0], [10.0, 0.0]]))

    @pytest.mark.parametrize(("cosine", "pull"), [(0.6, 0.0007), (0.4, 0.09), (0.3, 0.56), (0.2, 0.94)])
    def test_low_similarities_are_pulled_to_the_centre(self, cosine: float, pull: float) -> None:
        """A peak of one token, all others 0: the share is n^2 e^(-c / beta) / (1 + the same)."""
        maps = torch.zeros(1, 48, 48, dtype=torch.float64)
        maps[0, 0, 0] = cosine
        x, y = SoftArgmax(0.04, sigma=7).found(maps)[0][0].tolist()
        assert x == pytest.approx(y)
        assert x == pytest.approx(pull * 23.5, abs=0.3)

    def test_pull_is_the_weight_of_what_is_hidden(self) -> None:
        maps = torch.zeros(1, 60, 60, dtype=torch.float64)
        maps[0, 30, 30] = 0.2
        way = SoftArgmax(0.02, window=5)
        inside = 11 * 11 - 1
        weight = torch.exp(torch.tensor(0.2 / 0.02, dtype=torch.float64)).item()
        assert way.found(maps)[1].item() == pytest.approx((3600 - inside - 1) / (weight + 3599))
        assert SoftArgmax(0.02).found(maps)[1].item() == 0


class TestCeilings:
    def test_the_nearest_position_of_each_axis(self) -> None:
        axis = Axis(2.0, 4.0, 3)  # 2, 6, 10
        values = np.array([-5.0, 3.9, 4.0, 4.1, 10.0, 99.0])
        assert axis.nearest(values).tolist() == [2, 2, 2, 6, 10, 10]
        assert Axis(2.0, 4.0, 3, between=True).nearest(values).tolist() == [2, 3.9, 4.0, 4.1, 10, 10]
        assert Axis(2.0, 0.0, 1).nearest(values).tolist() == [2.0] * 6


class TestAverages:
    def test_pairs_without_a_point_are_left_out(self) -> None:
        found = pck_averages(np.array([True, False, True]), np.array([0, 0, 2]), ["a", "a", "b"])
        assert found == dict(zip(AVERAGES, (0.75, 0.75, 2 / 3, 0.75, 0.75), strict=True))

    def test_nothing_to_average(self) -> None:
        none = np.zeros(0, np.int64)
        assert all(np.isnan(value) for value in pck_averages(none.astype(bool), none, ["a"]).values())


class TestGroups:
    def test_two_of_a_group_must_be_seen_in_the_target(self) -> None:
        assert geometry_aware(GROUPS["cat"], [2, 3, 9], [2, 3, 9]) == [2, 3]
        assert geometry_aware(GROUPS["cat"], [2], [2, 3]) == [2]
        assert geometry_aware(GROUPS["cat"], [2, 3], [2]) == []
        assert geometry_aware((), [2, 3], [2, 3]) == []

    def test_groups_are_disjoint(self) -> None:
        assert len(GROUPS) == 18
        for groups in GROUPS.values():
            ids = [one for group in groups for one in group]
            assert len(ids) == len(set(ids))
