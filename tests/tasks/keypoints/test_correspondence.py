import pytest
import torch
from torch.nn import functional

from tests.tasks.agreement.correspondence import match, match_official, sample_points


def upsampled(grid, side):
    """Features upsampled to every pixel: [side side dim]."""
    return functional.interpolate(grid.permute(2, 0, 1)[None], size=(side, side), mode="bilinear")[0].permute(
        1, 2, 0
    )


def test_points_take_the_bilinear_value_at_their_exact_position():
    grid = torch.arange(12.0, dtype=torch.float64).view(3, 4, 1)
    points = torch.tensor([[8.0, 8.0], [16.0, 8.0], [24.0, 20.0], [0.0, 0.0], [64.0, 48.0], [12.0, 24.0]])
    assert sample_points(grid, points, 16).flatten().tolist() == [0, 0.5, 4, 0, 11, 4.25]
    pixels = torch.stack(torch.meshgrid(torch.arange(12), torch.arange(12), indexing="xy"), -1).view(-1, 2)
    values = sample_points(grid[:, :3], pixels + 0.5, 4)
    torch.testing.assert_close(values, upsampled(grid[:, :3], 12).reshape(-1, 1))


def test_ties_on_the_border_go_to_the_first_pixel():
    grid = torch.eye(4).view(2, 2, 4)
    assert match(torch.eye(4), grid, 8).tolist() == [[0.5, 0.5], [6.5, 0.5], [0.5, 6.5], [6.5, 6.5]]
    assert match_official(grid, grid, torch.tensor([[7.9, 7.2]]), 8).tolist() == [[6, 6]]


def test_layers_are_matched_at_once_and_targets_are_shared():
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(3, 4, 4, 9, generator=generator) for _ in range(2))
    points = torch.tensor([[3.0, 5.5], [20.2, 31.0]])
    content = (0.0, 4.0, 32.0, 28.0)
    found = match(sample_points(source, points, 8), target, 32, content)
    assert found.shape == (3, 2, 2)
    for layer in range(3):
        alone = match(sample_points(source[layer], points, 8), target[layer], 32, content)
        assert (alone == found[layer]).all()
    assert match_official(source, target, points, 32).shape == (3, 2, 2)


def test_refuses_wrong_input():
    with pytest.raises(ValueError, match="no pixel"):
        match(torch.ones(4, 3), torch.ones(2, 2, 3), 8, (3.6, 0.0, 4.4, 8.0))
