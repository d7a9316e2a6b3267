"""Layers as one: exactly what their unit vectors side by side give, by sums of each one's similarities."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from layerboard.tasks.framework.transformed import side_by_side
from layerboard.tasks.metrics import memory_search
from layerboard.tasks.metrics import neighbours as search
from layerboard.tasks.metrics.memory_search import most_similar, most_similar_of_layers
from layerboard.tasks.metrics.neighbours import nearest, nearest_of_layers

RANDOM = np.random.default_rng(5)
SETS = {"a": ("a",), "ab": ("a", "b"), "ba": ("b", "a"), "abc": ("a", "b", "c"), "aa": ("a", "a")}


def layers(count: int, widths: tuple[int, ...] = (7, 5, 9)) -> dict[str, np.ndarray]:
    """Vectors of three layers, whose lengths differ by much."""
    return {
        name: (scale * RANDOM.standard_normal((count, width))).astype(np.float32)
        for name, width, scale in zip("abc", widths, (1, 100, 0.01), strict=True)
    }


def test_vectors_side_by_side_have_the_mean_cosine():
    every = layers(20)
    both = side_by_side([every["a"], every["b"]])
    assert np.linalg.norm(both, axis=1) == pytest.approx(1)
    unit = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in every.values()]
    np.testing.assert_allclose(both @ both.T, (unit[0] @ unit[0].T + unit[1] @ unit[1].T) / 2, atol=1e-6)
    every["a"][3], every["b"][4] = np.nan, 0
    both = side_by_side([every["a"], every["b"]])
    assert np.isnan(both[3]).any()
    assert not both[4, 7:].any()


def searched(*arguments) -> dict[str, search.Neighbours]:
    """Neighbours of all queries."""
    parts = list(nearest_of_layers(*arguments))
    return {
        name: search.concatenate_neighbours([one[name] for one in parts], arguments[3])
        for name in arguments[2]
    }


@pytest.mark.parametrize("rows", [1 << 16, 50])
def test_neighbours_of_sets_are_those_of_vectors_side_by_side(monkeypatch, rows):
    monkeypatch.setattr(search, "BANK_ROWS", rows)
    monkeypatch.setattr(search, "CHUNK_FLOATS", 2000)
    banks, queries = layers(240), layers(30)
    for bank in banks.values():
        bank[200:240] = bank[0:40]  # repeated images tie exactly, and the earlier one counts
        bank[100:130] = bank[99]  # more of them than a search looks beyond
    found = searched(banks, queries, SETS, 12)
    for name, members in SETS.items():
        bank, asked = (side_by_side([every[one] for one in members]) for every in (banks, queries))
        expected = nearest(bank, asked, 12)
        np.testing.assert_array_equal(found[name].index, expected.index)
        np.testing.assert_allclose(found[name].similarity, expected.similarity, atol=3e-7)
    np.testing.assert_array_equal(found["ab"].similarity, found["ba"].similarity)
    np.testing.assert_array_equal(found["a"].similarity, found["aa"].similarity)


def test_no_query_has_no_neighbours():
    assert not list(nearest_of_layers(layers(8), {name: one[:0] for name, one in layers(1).items()}, SETS, 3))
    assert not list(nearest_of_layers(layers(8), layers(2), {}, 3))


@pytest.mark.parametrize("rows", [1 << 15, 9])
def test_voters_of_sets_are_those_of_tokens_side_by_side(monkeypatch, rows):
    monkeypatch.setattr(memory_search, "ROWS_CPU", rows)
    monkeypatch.setattr(memory_search, "SIMILARITIES_CPU", 60)
    units = [
        {name: normalize(torch.from_numpy(one), dim=-1) for name, one in layers(n).items()} for n in (40, 11)
    ]
    memory, queries = units
    found = most_similar_of_layers(queries, memory, SETS, 6)
    for name, members in SETS.items():
        both = [torch.cat([one[member] for member in members], -1) / math.sqrt(len(members)) for one in units]
        expected = most_similar(both[1], both[0], 6)
        assert torch.equal(found[name].index, expected.index)
        torch.testing.assert_close(found[name].similarity, expected.similarity, atol=1e-6, rtol=0)
