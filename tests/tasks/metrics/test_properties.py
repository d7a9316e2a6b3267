"""What must hold of every metric whatever the numbers are."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layerboard.tasks.metrics.neighbours import nearest, vote
from layerboard.tasks.retrieval.ranking import revisited
from tests.tasks.agreement.correspondence import match, sample_points
from tests.tasks.agreement.similarity import batched, cka
from tests.tasks.standard import TEMPERATURE

quick = settings(max_examples=20, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def normal(seed, *shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@quick
@given(seeds, st.integers(4, 12), st.integers(2, 4))
def test_cka_over_batches(seed, size, batches):
    x, y = normal(seed, batches * size, 5), normal(seed + 1, batches * size, 7)
    x[:, :5] += y[:, :5]
    whole = float(batched([x, y], len(x))[0, 1])
    assert whole == pytest.approx(cka(x, y), abs=1e-12)
    parts = batched([x, y], size)
    swapped = batched([features.roll(size, 0) for features in (x, y)], size)
    np.testing.assert_allclose(swapped, parts, rtol=0, atol=1e-12)
    repeated = batched([features[:size].repeat(batches, 1) for features in (x, y)], size)
    assert float(repeated[0, 1]) == pytest.approx(cka(x[:size], y[:size]), abs=1e-12)


@quick
@given(seeds, st.integers(3, 25), st.integers(0, 10), st.sampled_from(["easy", "medium", "hard"]))
def test_junk_never_changes_a_retrieval_score(seed, size, junk, difficulty):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, size)
    easy, hard = ([np.flatnonzero(kind == number)] for number in (1, 2))
    ranking, none = rng.permutation(size), [np.zeros(0, np.int64)]
    places = np.sort(rng.integers(0, size + 1, junk))
    spoilt = np.insert(ranking, places, size + rng.permutation(junk))
    clean = revisited(ranking[:, None], easy, hard, none, difficulty)
    dirty = revisited(spoilt[:, None], easy, hard, [np.arange(size, size + junk)], difficulty)
    assert clean.keys() == {"mAP", "mP@1", "mP@5", "mP@10"}
    for name, values in clean.items():
        np.testing.assert_array_equal(dirty[name], values)


@quick
@given(seeds, st.integers(2, 40), st.integers(1, 12), st.booleans())
def test_neighbours_do_not_see_order_and_lengths(seed, n, k, on_torch):
    device = torch.device("cpu") if on_torch else None
    bank, queries = normal(seed, n, 6).float().numpy(), normal(seed + 1, 9, 6).float().numpy()
    rng = np.random.default_rng(seed)
    order, labels = rng.permutation(n), rng.integers(0, 5, n)
    found = nearest(bank, queries, k, device=device)
    assume((np.diff(found.similarity, axis=1) < -1e-5).all())
    moved = nearest(bank[order], queries, k, device=device)
    assert (order[moved.index] == found.index).all()
    assert (vote(moved, labels[order], k, 5, TEMPERATURE) == vote(found, labels, k, 5, TEMPERATURE)).all()
    lengths = rng.uniform(0.01, 100, (n, 1)).astype(np.float32)
    scaled = nearest(bank * lengths, 7 * queries, k, device=device)
    assert (scaled.index == found.index).all()
    np.testing.assert_allclose(scaled.similarity, found.similarity, atol=1e-6)


@quick
@given(seeds, st.integers(1, 6), st.integers(1, 6), st.integers(1, 9))
def test_an_image_finds_each_of_its_token_centres(seed, cells, layers, stride):
    grid = normal(seed, layers, cells, cells, 16)
    centre = (torch.arange(cells, dtype=torch.float64) + 0.5) * stride
    points = torch.stack(torch.meshgrid(centre, centre, indexing="xy"), -1).view(-1, 2)
    found = match(sample_points(grid, points, stride), grid, cells * stride)
    # beyond the outermost centres the features are those of the border
    inside = found.clamp(centre[0], centre[-1])
    assert (inside - points).abs().max() <= 0.5
    if stride % 2:
        assert (inside == points).all()
