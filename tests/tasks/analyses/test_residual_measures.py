"""Residual sums with known ratios and cosines."""

import math

import pytest
import torch

from layerboard.tasks.analyses.residuals import frobenius_ratio, norm_ratio, sum_gap, token_cosines


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def with_angle(ratio: float, angle: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One token whose skip is so many times as long as its branch, with that cosine between them."""
    skip = torch.tensor([[ratio, 0.0]])
    return skip, torch.tensor([[angle, math.sqrt(1 - angle**2)]])


def test_ratios_do_not_see_rotations_and_common_scales() -> None:
    skip, branch = noise(4, 6, 8), noise(4, 6, 8, seed=1)
    rotation = torch.linalg.qr(noise(8, 8, seed=2)).Q
    turned = norm_ratio(3 * skip @ rotation, 3 * branch @ rotation)
    torch.testing.assert_close(turned, norm_ratio(skip, branch), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("angle", [-0.9, 0.0, 0.3, 1.0])
def test_cosines_follow_from_ratio_and_angle(ratio: float, angle: float) -> None:
    skip, branch = with_angle(ratio, angle)
    length = math.sqrt(ratio**2 + 2 * ratio * angle + 1)
    assert token_cosines(skip, branch).item() == pytest.approx(angle, abs=1e-6)
    assert token_cosines(skip, skip + branch).item() == pytest.approx((ratio + angle) / length, abs=1e-6)
    assert token_cosines(branch, skip + branch).item() == pytest.approx(
        (ratio * angle + 1) / length, abs=1e-6
    )


def test_nothing_to_divide_by_is_nan_in_its_own_token_only() -> None:
    skip, branch = noise(2, 3, 4), noise(2, 3, 4, seed=1)
    branch[0, 1] = 0
    assert norm_ratio(skip, branch).isnan().tolist() == [[False, True, False], [False] * 3]
    assert token_cosines(skip, branch).isnan().tolist() == [[False, True, False], [False] * 3]
    assert not frobenius_ratio(skip, branch).isnan().any()
    assert frobenius_ratio(skip, torch.zeros_like(skip)).isnan().all()


def test_the_gap_of_a_sum() -> None:
    skip, branch = noise(2, 3, 4), noise(2, 3, 4, seed=1)
    output = skip + branch
    assert sum_gap(skip + branch, output).tolist() == [0, pytest.approx(output.abs().max().item())]
    output[1, 2, 3] += 5
    assert sum_gap(skip + branch, output)[0].item() == pytest.approx(5, abs=1e-5)
    for broken in (math.nan, math.inf):
        skip[0, 0, 0] = broken
        assert not sum_gap(skip + branch, skip + branch).isfinite().all()


def test_low_precision_is_measured_in_float32() -> None:
    skip = torch.full((1, 1, 600), 200.0, dtype=torch.float16)  # its square overflows
    assert norm_ratio(skip, skip / 2).item() == pytest.approx(2, abs=1e-3)
