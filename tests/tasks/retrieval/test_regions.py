"""Regions of grids: where a part of one grid is in others."""

import pytest
import torch
from torch.nn.functional import interpolate

from layerboard.tasks.retrieval.regions import best_regions, query_tokens

ROWS, COLUMNS, DIM = 12, 16, 24


def noise(seed: int, count: int = 1) -> torch.Tensor:
    return torch.randn(count, ROWS, COLUMNS, DIM, generator=torch.Generator().manual_seed(seed)) + 3


def test_a_region_is_found_where_it_was_put() -> None:
    query, grids = noise(0)[0], noise(1, 3)
    grids[1, 5:9, 7:12] = query[2:6, 3:8]
    regions = best_regions(query_tokens(query, (3, 2, 8, 6)), grids)
    assert regions.box[1].tolist() == [7, 5, 12, 9]
    assert regions.score[1] > 0.9 > 0.6 > max(regions.score[0], regions.score[2])


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_region_of_another_size_is_found(scale: float) -> None:
    smooth = interpolate(noise(2).permute(0, 3, 1, 2)[..., :6, :8], (ROWS, COLUMNS), mode="bilinear")
    query, grids = smooth[0].permute(1, 2, 0), noise(3)
    rows, columns = round(4 * scale), round(4 * scale)
    part = interpolate(smooth[..., 4:8, 6:10], (rows, columns), mode="bilinear", antialias=scale < 1)
    grids[0, 2 : 2 + rows, 3 : 3 + columns] = part[0].permute(1, 2, 0)
    (box,) = best_regions(query_tokens(query, (6, 4, 10, 8)), grids).box.tolist()
    assert box == [3, 2, 3 + columns, 2 + rows]


def test_a_region_that_is_larger_than_a_grid_is_cut_to_its_middle() -> None:
    query, grids = noise(4)[0], noise(5, 2)[:, :4, :5]
    grids[1] = query[4:8, 5:10]
    regions = best_regions(query_tokens(query, (0, 0, COLUMNS, ROWS)), grids)
    assert regions.box[1].tolist() == [0, 0, 5, 4]
    assert regions.score[1] > 2 * regions.score[0]


def test_a_box_within_one_cell_is_that_cell() -> None:
    query = noise(6)[0]
    regions = best_regions(query_tokens(query, (4.2, 6.3, 4.8, 6.6)), query[None])
    assert regions.box[0].tolist() == [4, 6, 5, 7]


def test_equal_tokens_and_ties_are_no_numbers_out_of_range() -> None:
    flat = torch.ones(2, 3, 4, DIM)
    regions = best_regions(query_tokens(flat[0], (0, 0, 2, 2)), flat)
    assert torch.isfinite(regions.score).all()
    assert regions.box.tolist() == [[0, 0, 2, 2]] * 2
