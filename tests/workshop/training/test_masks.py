"""What MAE and BEiT hide, and what they have to guess."""

import pytest
import torch
from torch import nn

from layerboard.zoo.errors import InputError
from tests.workshop.training.toys import SIDE, shapes, toy
from workshop.training import beit
from workshop.training.beit import Tokenizing, fit_tokenizer
from workshop.training.data import seeded
from workshop.training.mae import MaskedAutoencoder, normalised_patches, patches
from workshop.training.methods import method

DATA = shapes(60)


def test_mae_hides_three_quarters() -> None:
    objective = toy("mae", DATA)
    assert isinstance(objective, MaskedAutoencoder)
    assert objective.visible == 4
    order = objective.shuffled(50, seeded(0))
    assert order.shape == (50, 16)
    assert torch.equal(order.sort(dim=1).values, torch.arange(16).expand(50, -1))
    assert len({tuple(row) for row in order[:, :4].tolist()}) > 40
    assert method("mae").recipe.masked == 0.75


def test_maes_encoder_does_not_see_hidden_patches() -> None:
    objective = toy("mae", DATA)
    assert isinstance(objective, MaskedAutoencoder)
    images = torch.rand(2, 3, SIDE, SIDE, generator=seeded(0))
    order = objective.shuffled(2, seeded(1))
    seen = objective.encode(images, order)
    assert seen.shape == (2, 5, 48)
    cells = torch.zeros(2, 16).scatter_(1, order[:, objective.visible :], 1.0).view(2, 1, 4, 4)
    hidden = cells.repeat_interleave(8, 2).repeat_interleave(8, 3)
    torch.testing.assert_close(objective.encode(images * (1 - hidden), order), seen)
    assert not torch.allclose(objective.encode(images * hidden, order), seen)


def test_maes_decoder_puts_tokens_back_into_their_places() -> None:
    objective = toy("mae", DATA)
    assert isinstance(objective, MaskedAutoencoder)
    objective.decoder, objective.pixels = nn.Identity(), nn.Identity()  # type: ignore[assignment]
    objective.positions.zero_()
    order = objective.shuffled(1, seeded(0))
    encoded = torch.randn(1, 5, 48, generator=seeded(1))
    decoded = objective.decode(encoded, order)
    torch.testing.assert_close(decoded[0, order[0, :4]], objective.narrow(encoded)[0, 1:])
    torch.testing.assert_close(decoded[0, order[0, 4:]], objective.mask_token[0].expand(12, -1))


def test_patches_are_the_pixels_of_their_cells() -> None:
    images = torch.rand(2, 3, 16, 24, generator=seeded(0))
    found = patches(images, 8)
    assert found.shape == (2, 6, 192)
    assert torch.equal(found[1, 4].view(3, 8, 8), images[1, :, 8:, 8:16])
    normalised = normalised_patches(images, 8)
    torch.testing.assert_close(normalised.mean(-1), torch.zeros(2, 6), rtol=0, atol=1e-5)
    torch.testing.assert_close(normalised.var(-1), torch.ones(2, 6), rtol=0, atol=1e-3)


@pytest.mark.parametrize("cells", [4, 8, 14])
def test_beit_hides_blocks_of_the_stated_share(cells: int) -> None:
    recipe = method("beit").recipe
    masks = beit.block_mask(200, cells, recipe, seeded(0))
    assert masks.shape == (200, cells * cells)
    assert set(masks.sum(1).tolist()) == {round(0.4 * cells * cells)}
    grid = masks.view(200, cells, cells)
    neighbours = (grid[:, 1:] & grid[:, :-1]).sum() / grid[:, 1:].sum()
    assert neighbours > 0.5  # 0.4 if patches were hidden one by one
    often = grid.float().mean(0)
    assert often.min() > 0.01
    assert often.max() < 0.95


def test_visual_tokens_are_the_nearest_centres() -> None:
    generator = seeded(0)
    centres = 4 * torch.randn(8, 12, generator=generator)
    truth = torch.randint(8, (600,), generator=generator)
    points = centres[truth] + 0.1 * torch.randn(600, 12, generator=generator)
    how = Tokenizing(codes=16, components=12, images=1, rounds=10)
    codes = fit_tokenizer(points, how, seeded(1))(points)
    for code in codes.unique():
        assert len(truth[codes == code].unique()) == 1


def test_a_tokenizer_needs_patches() -> None:
    with pytest.raises(InputError, match="512 visual tokens need as many patches; found 96"):
        toy("beit", shapes(6))
