import pytest
import torch

from tests.tasks.agreement.correspondence import match, match_official, sample_points


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
