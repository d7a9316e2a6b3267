"""What is said of planted filters and positions, and of backbones that have none."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from layerboard.tasks.analyses.inspect import (
    InspectConfig,
    InspectTask,
    position_similarity,
    principal_filters,
)
from layerboard.tasks.analyses.label_free import equal_shares
from layerboard.tasks.framework.base import Findings
from layerboard.zoo.features import Weights
from layerboard.zoo.spec import WHOLE_BACKBONE

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


def sines(side: int, dim: int) -> np.ndarray:
    """Fixed two-dimensional positions of sines and cosines, [side side dim], as MoCo-v3 and MAE have them."""
    frequency = 10000.0 ** (-np.arange(dim // 4) / (dim // 4))
    angle = np.arange(side)[:, None] * frequency
    axis = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    shape = (side, side, dim // 2)
    return np.concatenate([np.broadcast_to(axis[:, None], shape), np.broadcast_to(axis[None], shape)], axis=2)


def test_multiples_of_one_filter_have_rank_one_and_show_it() -> None:
    random = np.random.default_rng(0)
    one = random.normal(size=(3, 4, 4))
    found = principal_filters(random.normal(size=(20, 1, 1, 1)) * one)
    assert found is not None
    shares, images = found
    assert equal_shares(shares) == pytest.approx(1)
    assert images.shape == (1, 4, 4, 3)
    largest = one.flat[np.abs(one).argmax()]
    signed = (one * np.sign(largest)).transpose(1, 2, 0)
    np.testing.assert_allclose(images[0], (signed - signed.min()) / np.ptp(signed), atol=1e-9)


def test_components_are_those_of_the_covariance() -> None:
    filters = np.random.default_rng(1).normal(size=(40, 3, 2, 2))
    values = np.sort(np.linalg.eigvalsh(np.cov(filters.reshape(40, 12), rowvar=False)))[::-1]
    found = principal_filters(filters)
    assert found is not None
    shares, images = found
    np.testing.assert_allclose(shares, values / values.sum())
    assert images.min() == 0
    assert images.max() == 1
    assert (np.ptp(images, axis=(1, 2, 3)) == 1).all()


def test_filters_that_are_all_the_same_have_no_components_and_a_constant_one_is_grey() -> None:
    assert principal_filters(np.full((8, 3, 2, 2), 0.7)) is None
    found = principal_filters(np.array([[[[1.0]], [[1.0]], [[1.0]]], [[[2.0]], [[2.0]], [[2.0]]]]))
    assert found is not None
    assert found[1].tolist() == [[[[0.5, 0.5, 0.5]]]]


def test_rows_and_columns_are_told_apart() -> None:
    """Positions that say the row alone are the same in one row, orthogonal elsewhere."""
    rows = np.broadcast_to(np.eye(3)[:, None], (3, 4, 3))
    found, turned = (position_similarity(positions) for positions in (rows, rows.transpose(1, 0, 2)))
    assert found is not None
    assert turned is not None
    rho = found[1].pop("distance-rho")
    assert found[1] == {"row": 1, "column": 0, "other": 0}
    assert turned[1] == {"distance-rho": rho, "row": 0, "column": 1, "other": 0}


def test_positions_without_direction_or_pairs_have_no_values() -> None:
    assert position_similarity(np.zeros((2, 2, 4))) is None
    alike = position_similarity(np.ones((2, 2, 4)))
    assert alike is not None
    assert "distance-rho" not in alike[1]
    assert alike[1]["row"] == pytest.approx(1)
    single = position_similarity(np.ones((1, 1, 4)))
    assert single is not None
    assert single[1] == {}
    line = position_similarity(np.eye(4)[None])
    assert line is not None
    assert line[1] == {"row": 0}
