import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from layerboard.tasks.metrics import cell_labels as map_module
from layerboard.tasks.metrics import memory_search
from layerboard.tasks.metrics.cell_labels import (
    cell_counts,
    cell_draws,
    chosen_cells,
    evenly_spaced,
    label_map,
    usable_cells,
)
from layerboard.tasks.metrics.memory_search import most_similar
from layerboard.tasks.segmentation.capi import Scale, most_frequent, pixel_labels
from layerboard.tasks.segmentation.in_context import vote_labels

VOID = 255


def unit(rng, rows, dim):
    return functional.normalize(torch.from_numpy(rng.standard_normal((rows, dim))).float(), dim=-1)


class TestCells:
    @pytest.mark.parametrize(("valid", "usable"), [(0, False), (7, False), (8, True), (16, True)])
    def test_half_of_the_pixels_must_have_a_class(self, valid, usable):
        mask = np.full(16, VOID, np.uint8)
        mask[:valid] = 1
        assert usable_cells(cell_counts(mask.reshape(4, 4), (1, 1), 2), 0.5).item() == usable

    def test_all_usable_cells_are_kept_where_there_are_fewer(self):
        counts = np.array([[4, 0], [0, 4], [2, 2]])
        assert chosen_cells(counts, usable_cells(counts, 0.5), np.zeros(3), 5).tolist() == [0, 2]
        assert chosen_cells(counts, np.zeros(3, bool), np.zeros(3), 5).tolist() == []

    def test_draws_depend_on_key_grid_and_seed_alone(self):
        first = cell_draws("a.jpg", (3, 4), 0)
        assert first.shape == (12,)
        assert first.tolist() == cell_draws("a.jpg", (3, 4), 0).tolist()
        others = [
            cell_draws("b.jpg", (3, 4), 0),
            cell_draws("a.jpg", (4, 3), 0),
            cell_draws("a.jpg", (3, 4), 1),
        ]
        assert all((first != other).any() for other in others)

    @pytest.mark.parametrize(("count", "most", "found"), [(3, 5, [0, 1, 2]), (10, 3, [1, 5, 8]), (4, 1, [2])])
    def test_images_are_evenly_spaced(self, count, most, found):
        assert list(evenly_spaced(count, most)) == found


class TestVote:
    @settings(max_examples=40, deadline=None)
    @given(
        st.integers(1, 40), st.integers(1, 30), st.integers(1, 12), st.integers(0, 999), st.integers(1, 40)
    )
    def test_equals_a_full_sort_whatever_the_chunks(self, rows, queries, k, seed, chunk):
        rng = np.random.default_rng(seed)
        # few different vectors: equal similarities everywhere
        memory = torch.from_numpy(rng.integers(-1, 2, (rows, 2))).float()
        asked = torch.from_numpy(rng.integers(-1, 2, (queries, 2))).float()
        expected = np.argsort(-(asked @ memory.T).numpy(), axis=1, kind="stable")[:, :k]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory_search, "ROWS_CPU", chunk)
            patch.setattr(memory_search, "SIMILARITIES_CPU", 5 * chunk)
            found = most_similar(asked, memory, k)
        assert found.index.tolist() == expected.tolist()

    def test_one_neighbour_gives_its_label_at_any_temperature(self):
        rng = np.random.default_rng(0)
        memory, queries, labels = unit(rng, 20, 6), unit(rng, 7, 6), torch.rand(20, 3)
        voters = most_similar(queries, memory, 1)
        for temperature in (0.02, 5.0):
            assert torch.equal(vote_labels(voters, labels, temperature), labels[voters.index[:, 0]])


class TestMap:
    def test_bands_change_nothing(self):
        vectors = torch.rand(5, 7, 6)
        whole = label_map(vectors, (61, 43))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(map_module, "BAND", 1)
            assert (label_map(vectors, (61, 43)) == whole).all()

    def test_equals_upsampling_by_torch(self):
        vectors = torch.rand(4, 6, 9, dtype=torch.float64)
        large = functional.interpolate(vectors.permute(2, 0, 1)[None], (37, 50), mode="bilinear")[0]
        assert (label_map(vectors, (50, 37)) == large.argmax(0).numpy()).all()

    def test_the_lowest_of_equal_classes(self):
        assert label_map(torch.zeros(2, 2, 4), (3, 3)).tolist() == [[0] * 3] * 3
        vectors = torch.zeros(1, 1, 4)
        vectors[..., [1, 3]] = 0.5
        assert label_map(vectors, (2, 1)).tolist() == [[1, 1]]


class TestPixels:
    @settings(max_examples=30, deadline=None)
    @given(st.integers(1, 12), st.integers(0, 999))
    def test_most_frequent_equals_counting(self, count, seed):
        labels = np.random.default_rng(seed).integers(0, 4, (20, count))
        expected = [int(np.bincount(row).argmax()) for row in labels]
        assert most_frequent(torch.from_numpy(labels)).tolist() == expected

    def test_pixels_of_a_cell_in_row_major_order(self):
        mask = np.arange(16, dtype=np.uint8).reshape(4, 4)
        assert pixel_labels(mask, (2, 2))[0, 1].tolist() == [2, 3, 6, 7]
        with pytest.raises(ValueError, match="whole pixels"):
            pixel_labels(mask, (3, 2))

    def test_a_constant_feature_is_not_divided_by_rounding(self):
        values = np.tile([0.1, 1.0], (7, 1)) + np.arange(7)[:, None] * [0, 1]
        scale = Scale.of(7, values.sum(0), (values * values).sum(0))
        assert scale.deviation.tolist() == [1.0, 2.0]
