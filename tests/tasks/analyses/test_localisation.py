"""Tokens that hold known patches have known similarities, ranks and distances."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.benchmark.passes.shards import MeasuredLayers
from layerboard.tasks.analyses.localisation import (
    LocalisationConfig,
    LocalisationTask,
    border,
    cell_grams,
    image_patches,
    localisation,
    pool_to_cells,
    pooled_cells,
    token_hsic,
    token_patch_cka,
)
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.doubles import SPEC, probed, source
from tests.tasks.agreement.similarity import cka
from tests.tasks.analyses.planted import left_behind

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


PLACES, PATCH, SHOWN = (4, 4), 2, 40
VIEW = ResizeCrop(8, 8)
LAYER = Layer(3)
PIXELS = torch.randint(0, 256, (SHOWN, 3, 8, 8), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


def problem(images: int = SHOWN, *, batch: int = 256, cells: int = 256) -> LocalisationTask:
    probe = source([[1] * images], view=VIEW)
    where = probed(probe, batch)
    return LocalisationTask(where, LocalisationConfig(batch, cells))


def measured(task: LocalisationTask, folder: Path, grids: Tensor, seen: int = SHOWN) -> MeasuredLayers:
    """What a pass leaves behind that shows those grids of the first images of the one group."""
    shown = {LAYER.index: [LayerFeatures(LAYER, None, grids)]}
    return left_behind(task, folder, shown, seen=[range(seen)], pixels=PIXELS, patch=PATCH)


def scores(task: LocalisationTask, groups: MeasuredLayers) -> dict[tuple[str, str], float]:
    """Values by pooling and metric."""
    outcomes = task.findings(groups).outcomes
    return {(one.pooling, score.metric): score.value for one in outcomes for score in one.outcome.scores}


def test_tokens_that_are_their_patches_hold_their_places(tmp_path: Path) -> None:
    task = problem(batch=20)
    found = task.findings(measured(task, tmp_path, image_patches(PIXELS, PLACES)))
    assert [one.pooling for one in found.outcomes] == ["patch", "interior", "border"]
    for one in found.outcomes:
        values = [score.value for score in one.outcome.scores]
        assert values[:3] == [1, 1, 0]
        assert values[3] > 0.5
        assert {(score.n, score.unit) for score in one.outcome.scores} == {(SHOWN, "images")}
    assert found.arrays["token_patch"].shape == (1, 16, 16)
    np.testing.assert_allclose(found.arrays["token_patch"][0].diagonal(), 1, atol=1e-6)
    assert found.arrays["cells"].tolist() == [4, 4]
    assert found.arrays["block"].tolist() == [3]


def test_tokens_of_the_average_are_at_chance_and_shifted_ones_one_step_off(tmp_path: Path) -> None:
    grids = image_patches(PIXELS, PLACES)
    task = problem()
    same = grids.mean(dim=(1, 2), keepdim=True).expand_as(grids)
    average = scores(task, measured(task, tmp_path / "same", same))
    assert average["patch", "localisation"] == 0.5
    assert average["patch", "localisation-top1"] == 1 / 16
    assert average["patch", "localisation-contrast"] == pytest.approx(0, abs=1e-6)
    shifted = scores(task, measured(task, tmp_path / "shifted", grids.roll(-1, dims=2)))
    assert shifted["patch", "localisation-top1"] == 0
    assert shifted["patch", "localisation-distance"] == pytest.approx(0.5)


def test_finer_maps_are_averaged_to_the_coarsest_grid_and_large_grids_to_few_cells(tmp_path: Path) -> None:
    """A ConvNet's early maps, here the pixels themselves, are compared with patches of its last grid."""
    fine = PIXELS.permute(0, 2, 3, 1) / 255
    task = problem()
    found = task.findings(measured(task, tmp_path / "fine", fine))
    assert found.arrays["cells"].tolist() == [4, 4]
    assert scores(task, measured(task, tmp_path / "again", fine))["patch", "localisation"] == 1
    small = problem(cells=4)
    found = small.findings(measured(small, tmp_path / "small", image_patches(PIXELS, PLACES)))
    assert found.arrays["cells"].tolist() == [2, 2]
    interior = next(one.outcome for one in found.outcomes if one.pooling == "interior")
    assert interior.scores == ()
    assert "2 x 2 cells" in interior.empty


def test_what_cannot_be_compared_says_why(tmp_path: Path) -> None:
    grids, task = image_patches(PIXELS, PLACES), problem()

    def reason(folder: str, shown: Tensor, seen: int = SHOWN) -> str:
        (one,) = task.findings(measured(task, tmp_path / folder, shown, seen)).outcomes
        return one.outcome.empty

    assert reason("still", torch.ones_like(grids)) == "tokens or patches do not vary over the images"
    broken = grids.clone()
    broken[0, 1, 1, 1] = float("nan")
    assert reason("nan", broken) == "features are not finite"
    assert reason("few", grids, 3) == "3 images are fewer than 4, which a batch needs"


def test_blocks_are_measured_whatever_is_scored_of_them() -> None:
    layers = (Layer(0), Layer(2, "mlp"), Layer(2), Layer(3, "final"))
    assert problem().feed.layers(layers, SPEC) == (Layer(0), Layer(2), Layer(3))
    assert problem().feed.whole
    assert problem().fingerprint != problem(cells=4).fingerprint
