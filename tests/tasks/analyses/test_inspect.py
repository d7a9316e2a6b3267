"""What is said of planted filters and positions, and of backbones that have none."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from layerboard.tasks.analyses.inspect import InspectConfig, InspectTask
from layerboard.tasks.framework.base import Findings
from layerboard.zoo.features import Weights
from layerboard.zoo.spec import WHOLE_BACKBONE
from tests.tasks.analyses.test_filters import sines

ONE = (1.0, 1.0, 1.0)
NONE = Weights(None, None, None, {"filters": "no filters.", "positions": "no positions."})
TASK = InspectTask(None, InspectConfig(28))


def found_of(weights: Weights, std: tuple[float, float, float]) -> Findings:
    return TASK.results(SimpleNamespace(weights=lambda: weights, spec=SimpleNamespace(std=std)))


def values(found: Findings) -> dict[str, float]:
    assert {one.layer for one in found.outcomes} == {WHOLE_BACKBONE}
    return {score.metric: score.value for one in found.outcomes for score in one.outcome.scores}


def test_planted_filters_and_positions_have_their_numbers() -> None:
    weights = Weights(torch.eye(12).view(12, 3, 2, 2), torch.from_numpy(sines(14, 768)).float(), None, {})
    found = found_of(weights, ONE)
    expected = {
        "filter-rank": 11,
        "filter-variance-28": 1,
        "position-distance-rho": 0.8440,
        "position-row": 0.8981,
        "position-column": 0.8981,
        "position-other": 0.7962,
    }
    assert values(found) == pytest.approx(expected, abs=2e-4)
    assert [score.n for one in found.outcomes for score in one.outcome.scores] == [12] * 2 + [196] * 4
    assert found.arrays["filters"].shape == (11, 2, 2, 3)
    assert found.arrays["filter_variance"] == pytest.approx(np.full(11, 1 / 11))
    assert found.arrays["position_cosine"].shape == (14, 14, 14, 14)
    assert "position_bias" not in found.arrays


def test_filters_are_taken_as_they_act_on_colours_from_zero_to_one() -> None:
    """Each channel is divided by what its normalisation divides by; two filters have one component."""
    filters = torch.zeros(2, 3, 1, 1)
    filters[0] = torch.tensor([0.2, 0.1, 0.4])[:, None, None]
    found = found_of(Weights(filters, None, None, {}), (0.2, 0.1, 0.4))
    assert values(found)["filter-rank"] == pytest.approx(1)
    assert found.arrays["filters"].flatten().tolist() == [0.5] * 3  # grey: all channels alike


def test_what_a_backbone_has_not_got_has_no_value_and_its_reason() -> None:
    found = found_of(NONE, ONE)
    assert not found.arrays
    filters, positions = (one.outcome for one in found.outcomes)
    assert not filters.scores
    assert not positions.scores
    assert filters.empty == "no filters."
    assert positions.missing == {"position-distance-rho": "no positions."}
    still = found_of(Weights(torch.ones(4, 3, 2, 2), torch.zeros(2, 2, 3), None, {}), ONE)
    filters, positions = (one.outcome for one in still.outcomes)
    assert filters.empty == "all filters are the same"
    assert positions.missing == {"position-distance-rho": "a position embedding is zero, so it has no cosine"}


def test_a_bias_table_is_kept_without_a_number() -> None:
    bias = torch.arange(2 * 3 * 5 * 5.0).view(2, 3, 5, 5)
    found = found_of(Weights(None, None, bias, {}), ONE)
    assert values(found) == {}
    np.testing.assert_array_equal(found.arrays["position_bias"], bias.numpy())
