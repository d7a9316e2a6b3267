"""What features of a layer say of themselves."""

import pytest
import torch
from torch.nn.functional import pixel_unshuffle

from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import Layer


@pytest.mark.parametrize(
    ("dim", "side", "k"), [(64, 56, 4), (256, 56, 2), (512, 28, 2), (1024, 14, 1), (2048, 7, 1), (64, 2, 2)]
)
def test_patchwise_vectors_are_means_after_space_to_depth(dim: int, side: int, k: int) -> None:
    """Of every stage of a ResNet-50, whose last stage has 2048 channels; k by hand."""
    grid = torch.randn(2, side, side, dim, generator=torch.Generator().manual_seed(0))
    found = LayerFeatures(Layer(1), None, grid).patchwise(2048)
    assert found.shape == (2, dim * k * k)
    # torch has the offsets innermost among the channels
    expected = pixel_unshuffle(grid.permute(0, 3, 1, 2), k).mean(dim=(2, 3))
    expected = expected.unflatten(1, (dim, k * k)).transpose(1, 2).flatten(1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_every_cell_counts_where_blocks_do_not_divide_the_grid() -> None:
    grid = torch.arange(9.0).reshape(1, 3, 3, 1)
    found = LayerFeatures(Layer(1), None, grid).patchwise(4)
    torch.testing.assert_close(found, torch.tensor([[4.0, 4.0, 4.0, 4.0]]))
    assert LayerFeatures(Layer(1), None, grid[:, :1]).patchwise(4).tolist() == [[1.0]]
