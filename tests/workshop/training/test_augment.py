"""Random views: the same picture where nothing is drawn, Pillow's pixels where it is resized."""

import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from workshop.training.augment import TrainingView, augment, hue_rotation, resampling
from workshop.training.data import seeded

EVERYTHING = TrainingView(
    side=24, scale=(0.2, 1.0), flip=0.5, jitter=0.8, grey=0.2, blur=0.5, solarise=0.2
)  # fmt: skip


@pytest.fixture
def images() -> Tensor:
    return torch.randint(0, 256, (16, 3, 32, 32), dtype=torch.uint8, generator=seeded("images"))


def test_a_view_that_changes_nothing(images: Tensor) -> None:
    torch.testing.assert_close(augment(images, TrainingView(side=32), seeded(0)), images / 255)


@pytest.mark.parametrize("side", [16, 24, 48])
def test_resizing_is_pillows(images: Tensor, side: int) -> None:
    found = augment(images[:2], TrainingView(side=side), seeded(0))
    for view, pixels in zip(found, images, strict=False):
        picture = Image.fromarray(pixels.permute(1, 2, 0).numpy())
        resized = picture.resize((side, side), Image.Resampling.BILINEAR)
        assert np.abs(255 * view.permute(1, 2, 0).numpy() - np.asarray(resized)).max() < 1.01


def test_views_are_in_range_differ_and_come_again(images: Tensor) -> None:
    same = images[:1].expand(8, -1, -1, -1)
    first, again, other = (augment(same, EVERYTHING, seeded(seed)) for seed in (0, 0, 1))
    assert first.shape == (8, 3, 24, 24)
    assert first.dtype == torch.float32
    assert first.min() >= 0
    assert first.max() <= 1
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert len({tuple(view.flatten().tolist()) for view in first}) == 8


def test_a_flip_mirrors(images: Tensor) -> None:
    torch.testing.assert_close(
        augment(images, TrainingView(side=32, flip=1.0), seeded(0)), images.flip(3) / 255
    )


def test_crops_cover_the_stated_share() -> None:
    ramp = torch.arange(64, dtype=torch.uint8).expand(400, 3, 64, 64)
    view = TrainingView(side=64, scale=(0.25, 0.25), ratio=(1.0, 1.0))
    lines = 255 * augment(ramp, view, seeded(0))[:, 0, 0]
    width = (lines[:, 60] - lines[:, 3]) / 57 * 64
    torch.testing.assert_close(width, torch.full((400,), 32.0), rtol=0, atol=0.05)
    start = lines[:, 3] - 3.5 * 0.5 + 0.5
    assert start.min() < 1
    assert start.max() > 31


def test_rows_of_a_resampling_sum_to_one() -> None:
    weights = resampling(torch.tensor([0.0, 3.3]), torch.tensor([10.0, 2.0]), 5, 12)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5))


def test_grey_views_have_equal_channels(images: Tensor) -> None:
    grey = augment(images, TrainingView(side=32, grey=1.0), seeded(0))
    torch.testing.assert_close(grey[:, 0], grey[:, 1])
    luma = torch.tensor([0.299, 0.587, 0.114])
    torch.testing.assert_close(grey[:, 0], torch.einsum("c,bchw->bhw", luma, images / 255), rtol=0, atol=1e-3)


def test_hue_turns_colours_and_keeps_greys() -> None:
    turn = torch.tensor([0.0, 2 * math.pi, 1.0])
    rotation = hue_rotation(turn)
    torch.testing.assert_close(rotation[:2], torch.eye(3).expand(2, 3, 3), rtol=0, atol=1e-5)
    torch.testing.assert_close(rotation[2] @ torch.ones(3), torch.ones(3), rtol=0, atol=2e-3)
    assert (rotation[2] - torch.eye(3)).abs().max() > 0.2


def test_jitter_has_its_probability(images: Tensor) -> None:
    many = images.repeat(25, 1, 1, 1)
    jittered = augment(many, TrainingView(side=32, jitter=0.3), seeded(0))
    changed = ((jittered - many / 255).abs().amax(dim=(1, 2, 3)) > 1e-4).float().mean()
    assert abs(changed - 0.3) < 0.07


def test_blurring_smooths_and_keeps_the_level() -> None:
    dots = torch.zeros(4, 3, 33, 33, dtype=torch.uint8)
    dots[..., 16, 16] = 255
    view = TrainingView(side=33, blur=1.0, sigma=(1.0, 1.0))
    found = augment(dots, view, seeded(0))
    torch.testing.assert_close(found.sum(dim=(2, 3)), torch.ones(4, 3), rtol=0, atol=1e-4)
    torch.testing.assert_close(found[0, 0, 16, 17] / found[0, 0, 16, 16], torch.tensor(math.exp(-0.5)))


def test_solarising_inverts_what_is_bright(images: Tensor) -> None:
    pixels = images / 255
    expected = torch.where(pixels >= 0.5, 1 - pixels, pixels)
    torch.testing.assert_close(augment(images, TrainingView(side=32, solarise=1.0), seeded(0)), expected)
