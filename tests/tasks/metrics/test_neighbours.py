import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from layerboard.tasks.metrics import neighbours as module
from layerboard.tasks.metrics.neighbours import Neighbours, nearest, vote
from tests.tasks.standard import TEMPERATURE


def obvious(bank, queries, k):
    """All similarities in float64, sorted by (-similarity, index)."""
    unit = [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (bank, queries)]
    similarity = unit[1].astype(np.float64) @ unit[0].astype(np.float64).T
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(similarity, order, axis=1), order


def test_ties_reach_past_the_searched_places():
    bank = np.eye(
        64, dtype=np.float32
    )  # every query of two ones is equally near to two rows, then to 62 others
    queries = bank[10:20] + bank[40:50]
    found = nearest(bank, queries, 5)
    for row, index in enumerate(found.index):
        assert index.tolist() == [10 + row, 40 + row, 0, 1, 2]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 12), st.integers(1, 50), st.booleans())
def test_equals_the_obvious_search(seed, n, m, k, on_torch):
    rng = np.random.default_rng(seed)
    # Few values make duplicates and ties; lengths of a power of two keep every similarity exact.
    pattern = rng.choice([-1, 1], size=(8, 4)).repeat(4, axis=1).astype(np.float32)
    bank, queries = pattern[rng.integers(0, 8, n)], pattern[rng.integers(0, 8, m)]
    bank *= 2.0 ** rng.integers(-2, 3, size=(n, 1))
    found = nearest(bank.astype(np.float32), queries, k, device=torch.device("cpu") if on_torch else None)
    similarity, index = obvious(bank, queries, k)
    assert (found.index == index).all()
    np.testing.assert_allclose(found.similarity, similarity, atol=1e-6)


def test_vote_ranks_tied_classes_by_number():
    found = Neighbours(np.full((1, 4), 0.5, np.float32), np.array([[0, 1, 2, 3]]))
    assert vote(found, np.array([3, 1, 3, 1]), 4, 6, TEMPERATURE).tolist() == [[1, 3, -1, -1, -1]]


def test_chunks_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(3)
    bank, queries = (rng.standard_normal((size, 12)).astype(np.float32) for size in (90, 31))
    labels = rng.integers(0, 7, 90)
    whole = nearest(bank, queries, 20, device=torch.device("cpu"))
    ranked = vote(whole, labels, 20, 7, TEMPERATURE)
    monkeypatch.setattr(module, "CHUNK_FLOATS", 64)
    monkeypatch.setattr(module, "BANK_ROWS", 13)
    parts = nearest(bank, queries, 20, device=torch.device("cpu"))
    assert (parts.index == whole.index).all()
    assert (vote(parts, labels, 20, 7, TEMPERATURE) == ranked).all()


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6])
def test_the_order_does_not_depend_on_who_searches(spread):
    rng = np.random.default_rng(4)
    bank, queries = (1 + spread * rng.standard_normal((size, 50)).astype(np.float32) for size in (400, 30))
    bank[7::40] = bank[3]
    exact = _unit64(queries) @ _unit64(bank).T
    tried = nearest(bank, queries, 20)
    on_torch = nearest(bank, queries, 20, device=torch.device("cpu"))
    assert (on_torch.index == tried.index).all()
    np.testing.assert_allclose(on_torch.similarity, tried.similarity, atol=3e-7)
    kept = np.take_along_axis(exact, tried.index, axis=1)
    np.testing.assert_allclose(tried.similarity, kept, atol=3e-7)
    assert (kept.min(axis=1) >= np.sort(exact, axis=1)[:, -20] - 3e-7).all()
    steps = np.diff(tried.similarity, axis=1)
    assert (steps <= 0).all()
    if spread < 1:  # nearly parallel: float32 rounds cosines that are not equal to one number
        units = _unit64(bank)
        apart = np.stack([((units - each) ** 2).sum(axis=1) for each in _unit64(queries)])
        kept = np.take_along_axis(apart, tried.index, axis=1)
        np.testing.assert_allclose(kept, np.sort(apart, axis=1)[:, :20], rtol=1e-3)
        steps = np.diff(units[tried.index], axis=1).any(axis=2)
    assert (np.diff(tried.index, axis=1)[steps == 0] > 0).all()


def _unit64(rows):
    rows = rows.astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_hash_collisions_keep_rows_apart(monkeypatch):
    monkeypatch.setattr(module, "_hashes", lambda rows: np.zeros(len(rows), np.uint64))
    rng = np.random.default_rng(5)
    bank = rng.standard_normal((20, 6)).astype(np.float32)
    found = nearest(bank, bank, 3)
    assert found.index[:, 0].tolist() == list(range(20))


def test_no_queries_give_no_rows():
    empty = np.empty((0, 4), np.float32)
    found = nearest(np.eye(4, dtype=np.float32), empty, 2)
    assert found.index.shape == (0, 2)
    assert vote(found, np.arange(4), 2, 4, TEMPERATURE).shape == (0, 4)


def test_refuses_what_it_cannot_search():
    good = np.ones((3, 2), np.float32)
    bad, endless = np.array([[1.0, np.nan]], np.float32), np.array([[1.0, -np.inf]], np.float32)
    for arguments, word in [
        ((good, bad, 1), "queries must not hold NaN"),
        ((bad, good, 1), "bank must not hold NaN"),
        ((endless, good, 1), "bank must not hold NaN"),
    ]:
        with pytest.raises(ValueError, match=word):
            nearest(*arguments)
