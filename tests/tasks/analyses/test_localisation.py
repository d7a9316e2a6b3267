"""Tokens that hold known patches have known similarities, ranks and distances."""

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.tasks.analyses.localisation import (
    border,
    cell_grams,
    image_patches,
    localisation,
    pool_to_cells,
    pooled_cells,
    token_hsic,
    token_patch_cka,
)
from tests.tasks.agreement.similarity import cka

GRID, IMAGES = (4, 4), 24


def patches(seed: int = 0) -> Tensor:
    """Independent patches [n cells dim]."""
    return torch.randn(IMAGES, 16, 12, generator=torch.Generator().manual_seed(seed))


def similarity(tokens: Tensor, those: Tensor) -> np.ndarray:
    """CKA of tokens with patches in one batch."""
    return token_patch_cka(*(hsic.numpy() for hsic in token_hsic(tokens, cell_grams(those))))


def test_similarities_are_those_of_one_pair_at_a_time_and_batches_add_up() -> None:
    tokens, those = patches(1).repeat(1, 2, 1) + patches(2).repeat(1, 2, 1), patches(2).repeat(1, 2, 1)
    found = similarity(tokens, those)
    assert found.shape == (32, 32)
    for token, patch in ((0, 0), (17, 3), (31, 20)):
        assert found[token, patch] == pytest.approx(cka(tokens[:, token], those[:, patch]), abs=1e-6)
    halves = [token_hsic(tokens[rows], cell_grams(those[rows])) for rows in (slice(0, 12), slice(12, 24))]
    sums = (sum(hsic).numpy() for hsic in zip(*halves, strict=True))
    assert np.isfinite(token_patch_cka(*sums)).all()


def test_equal_similarities_count_half_and_share_the_first_place() -> None:
    found = localisation(np.ones((4, 4)), (2, 2))
    assert found["localisation"].tolist() == [0.5] * 4
    assert found["localisation-top1"].tolist() == [0.25] * 4
    assert found["localisation-distance"] == pytest.approx([(2 + 2**0.5) / 4] * 4)
    assert found["localisation-contrast"].tolist() == [0] * 4


def test_tokens_and_patches_that_do_not_vary_are_left_out() -> None:
    tokens, those = patches(), patches()
    tokens[:, 3] = 2.5
    those[:, 5] = 0
    found = similarity(tokens, those)
    assert np.isnan(found[3]).all()
    assert np.isnan(found[:, 5]).all()
    lower = localisation(found, GRID)["localisation"]
    assert np.flatnonzero(np.isnan(lower)).tolist() == [3, 5]
    assert np.nanmean(lower) == 1
    assert np.isnan(localisation(np.ones((1, 1)), (1, 1))["localisation"]).all()


def test_too_few_images_and_values_that_are_not_finite() -> None:
    with pytest.raises(ValueError, match="expected at least 4 samples, found 3"):
        cell_grams(patches()[:3])
    broken = patches()
    broken[0, 2, 0] = torch.inf
    _, tokens, _ = token_hsic(broken, cell_grams(patches()))
    assert tokens.isfinite().logical_not().nonzero().flatten().tolist() == [2]


def test_patches_are_the_pixels_of_their_cells() -> None:
    pixels = torch.arange(2 * 3 * 8 * 12).view(2, 3, 8, 12).to(torch.uint8)
    found = image_patches(pixels, (2, 3))
    assert found.shape == (2, 2, 3, 48)
    torch.testing.assert_close(found[1, 0, 2], (pixels[1, :, :4, 8:] / 255).flatten())


def test_large_grids_are_averaged_to_the_finest_that_is_small_enough() -> None:
    assert pooled_cells((16, 16), 256) == (16, 16)
    assert pooled_cells((28, 28), 256) == (14, 14)
    assert pooled_cells((37, 37), 256) == (13, 13)
    assert pooled_cells((3, 200), 256) == (2, 100)
    grids = torch.arange(16.0).view(1, 4, 4, 1)
    assert pool_to_cells(grids, (2, 2)).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert pool_to_cells(grids.half(), (4, 4)).dtype == torch.float32
    assert border((3, 4)).reshape(3, 4).sum() == 10
