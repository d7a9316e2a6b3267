"""Layers as one: exactly what their unit vectors side by side give, by sums of each one's similarities."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from layerboard.tasks.classification.knn import nearest_of_layers
from layerboard.tasks.framework.transformed import side_by_side
from layerboard.tasks.metrics import memory_search
from layerboard.tasks.metrics import neighbours as search
from layerboard.tasks.metrics.memory_search import most_similar, most_similar_of_layers
from layerboard.tasks.metrics.neighbours import nearest
from layerboard.tasks.propagation.carrying import Neighbourhood
from layerboard.tasks.propagation.metric import Propagation
from tests.tasks.standard import LayerPropagation

RANDOM = np.random.default_rng(5)
SETS = {"a": ("a",), "ab": ("a", "b"), "ba": ("b", "a"), "abc": ("a", "b", "c"), "aa": ("a", "a")}
HEARD = Neighbourhood(n_last_frames=2, topk=4, radius=2, circle=False, temperature=0.1)


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


def test_a_constant_layer_changes_no_order_and_halves_what_tells_neighbours_apart():
    banks, queries = layers(80), layers(6)
    banks["b"][:], queries["b"][:] = 3, 3
    found = searched(banks, queries, {"a": ("a",), "ab": ("a", "b")}, 10)
    np.testing.assert_array_equal(found["ab"].index, found["a"].index)
    np.testing.assert_allclose(found["ab"].similarity, (1 + found["a"].similarity) / 2, atol=1e-6)


def test_no_query_has_no_neighbours():
    assert not list(nearest_of_layers(layers(8), {name: one[:0] for name, one in layers(1).items()}, SETS, 3))
    assert not list(nearest_of_layers(layers(8), layers(2), {}, 3))


def grids(frames: int, height: int = 5, width: int = 6) -> dict[str, torch.Tensor]:
    shape = frames * height * width
    every = layers(shape)
    return {
        name: torch.from_numpy(one).double().view(frames, height, width, -1) for name, one in every.items()
    }


def mask(height: int = 5, width: int = 6) -> torch.Tensor:
    labels = torch.zeros(height, width, 2, dtype=torch.float64)
    labels[..., 0] = 1
    labels[1:3, 2:4] = torch.tensor([0.0, 1.0], dtype=torch.float64)
    return labels


def carried(frames: dict[str, torch.Tensor], members, heard=HEARD) -> dict[str, torch.Tensor]:
    count = len(next(iter(frames.values())))
    first = {name: grid[0] for name, grid in frames.items()}
    propagation = Propagation(first, mask(), members, [heard])
    steps = [propagation.step({name: grid[at] for name, grid in frames.items()}) for at in range(1, count)]
    return {name: torch.stack([one[name][0] for one in steps]) for name in members}


def alone(frames: torch.Tensor, heard=HEARD) -> torch.Tensor:
    propagation = LayerPropagation(frames[0], mask(), heard)
    return torch.stack([propagation.step(frame) for frame in frames[1:]])


def test_masks_are_carried_as_by_tokens_side_by_side():
    frames = grids(5)
    several = {name: members for name, members in SETS.items() if name != "a"}
    found = carried(frames, several)
    for name, members in several.items():
        both = torch.cat([normalize(frames[one], dim=-1) for one in members], dim=-1)
        torch.testing.assert_close(found[name], alone(both), atol=1e-9, rtol=0)


def test_a_constant_layer_acts_as_twice_the_temperature():
    """Planted: {l, a constant layer} is l at 0.2 where the rule says 0.1."""
    frames = grids(4)
    frames["b"] = torch.ones_like(frames["b"])
    twice = Neighbourhood(n_last_frames=2, topk=4, radius=2, circle=False, temperature=0.2)
    found = carried(frames, {"ab": ("a", "b")})["ab"]
    torch.testing.assert_close(found, alone(frames["a"], twice), atol=1e-12, rtol=0)
    assert not torch.allclose(found, alone(frames["a"]), atol=1e-3)


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
