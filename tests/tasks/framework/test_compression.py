"""Compressions of vectors against faiss, against NumPy, and on odd vectors."""

import faiss
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from layerboard.tasks.framework.transformed import ITERATIONS, SEED, applied, fitted, quantisation_levels
from layerboard.tasks.framework.transforms import step_of
from layerboard.tasks.metrics.neighbours import nearest, unit_vectors
from layerboard.tasks.retrieval.ranking import cosine_similarities, rank

Vectors = NDArray[np.float32]


def drawn(rows: int, dim: int, seed: int = 0) -> Vectors:
    """Vectors off the origin, whose channels spread unevenly."""
    random = np.random.default_rng(seed)
    return (random.standard_normal((rows, dim)) * np.geomspace(5, 0.1, dim) + 2).astype(np.float32)


def compressed(step: str, known: Vectors, vectors: Vectors) -> Vectors:
    return applied(fitted(*step_of(step), known), vectors)


def cosines(bank: Vectors, queries: Vectors) -> NDArray[np.float64]:
    units = [
        each / np.linalg.norm(each.astype(np.float64), axis=1, keepdims=True) for each in (bank, queries)
    ]
    return np.asarray(units[1] @ units[0].T)


def test_all_directions_change_no_cosine_and_no_neighbour() -> None:
    bank, queries = drawn(300, 24), drawn(40, 24, 1)
    turned = [compressed("pca:24", bank, each) for each in (bank, queries)]
    np.testing.assert_allclose(cosines(*turned), cosines(bank, queries), atol=1e-6)
    np.testing.assert_array_equal(nearest(*turned, 10).index, nearest(bank, queries, 10).index)


def test_leading_directions_are_those_of_faiss() -> None:
    bank, queries = drawn(300, 24), drawn(40, 24, 1)
    peer = faiss.PCAMatrix(24, 6)
    peer.train(bank)
    directions = faiss.vector_to_array(peer.A).reshape(6, 24)
    found = compressed("pca:6", bank, queries)
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(abs(found), abs(unit_vectors(queries @ directions.T)), atol=1e-4)


def test_int8_is_searched_by_faiss_to_the_bit() -> None:
    bank, queries = drawn(300, 16), drawn(40, 16, 1)
    fit = quantisation_levels(bank)
    codes, asked = fit.codes(bank), fit.codes(queries)
    index = faiss.IndexScalarQuantizer(
        16, faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
    )
    index.add(codes.astype(np.float32))
    np.testing.assert_array_equal(index.reconstruct_n(0, 300), codes.astype(np.float32))
    exact = asked.astype(np.int64) @ codes.T.astype(np.int64)
    values, rows = index.search(asked.astype(np.float32), 300)
    np.testing.assert_array_equal(values, np.take_along_axis(exact, rows, axis=1))


def test_int8_reads_back_the_levels_of_a_scalar_quantizer_with_the_same_ends() -> None:
    """A level of faiss is the middle of its step, so that its ends are half a step further out."""
    bank, queries = drawn(300, 16), drawn(40, 16, 1)
    fit = quantisation_levels(bank)
    peer = faiss.ScalarQuantizer(16, faiss.ScalarQuantizer.QT_8bit)
    low = fit.middle - 127.5 * fit.step
    faiss.copy_array_to_vector(np.concatenate([low, 255 * fit.step]).astype(np.float32), peer.trained)
    inside = queries.clip(fit.middle - 127 * fit.step, fit.middle + 127 * fit.step).astype(np.float32)
    codes = peer.compute_codes(inside)
    assert (codes.astype(int) - 127 == fit.codes(inside)).mean() > 0.999  # but for halves in float32
    np.testing.assert_allclose(peer.decode(codes), fit.of(inside), atol=float(1.01 * fit.step.max()))
    np.testing.assert_allclose(np.median(abs(peer.decode(codes) - fit.of(inside))), 0, atol=1e-5)


def test_int8_levels_end_at_quantiles_and_round_to_even() -> None:
    bank = np.linspace(-1, 1, 1001, dtype=np.float32)[:, None]
    fit = quantisation_levels(bank)
    np.testing.assert_allclose(fit.middle + 127 * fit.step, np.quantile(bank.astype(float), 0.995))
    steps = np.float32(fit.middle + fit.step * np.array([-500, -127, -1, 0, 1, 126, 900]))
    assert fit.codes(steps[:, None])[:, 0].tolist() == [-127, -127, -1, 0, 1, 126, 127]
    whole = quantisation_levels(np.repeat(np.float32([[-127.0], [127.0]]), 200, axis=0))
    assert whole.codes(np.float32([[0.5], [1.5], [-2.5]]))[:, 0].tolist() == [0, 2, -2]


def test_product_codes_are_those_of_faiss_to_the_bit() -> None:
    bank, queries = drawn(400, 16), drawn(40, 16, 1)
    peer = faiss.IndexPQ(16, 4, 8)
    peer.pq.cp.seed, peer.pq.cp.niter, peer.pq.cp.min_points_per_centroid = SEED, ITERATIONS, 1
    peer.train(unit_vectors(bank))
    peer.add(unit_vectors(queries))
    np.testing.assert_array_equal(compressed("pq:4", bank, queries), peer.reconstruct_n(0, 40))
    assert peer.sa_code_size() == 4


def test_binary_ranks_by_hamming_distance() -> None:
    bank, queries = drawn(300, 20), drawn(10, 20, 1)
    mean = bank.mean(axis=0, dtype=np.float64)
    bits, asked = (np.packbits(each >= mean, axis=1) for each in (bank, queries))
    index = faiss.IndexBinaryFlat(24)
    index.add(bits)
    distances, rows = index.search(asked, 300)
    found = cosines(*(compressed("binary", bank, each) for each in (bank, queries)))
    np.testing.assert_allclose(np.take_along_axis(found, rows, axis=1), 1 - 2 * distances / 20, atol=1e-12)


def test_equal_hamming_distances_are_equal_to_every_search() -> None:
    bank, queries = (np.sign(np.float32(drawn(rows, 96, rows) - 2)) for rows in (500, 60))
    order = np.argsort(-(queries.astype(int) @ bank.T.astype(int)), axis=1, kind="stable")
    np.testing.assert_array_equal(nearest(bank, queries, 20).index, order[:, :20])
    np.testing.assert_array_equal(nearest(bank, queries, 20, device=torch.device("cpu")).index, order[:, :20])
    np.testing.assert_array_equal(rank(cosine_similarities(bank, queries)).T, order)


def test_random_directions_keep_distances_about_and_come_again() -> None:
    bank = drawn(50, 400)
    found, again = compressed("rp:100", bank, bank), compressed("rp:100", bank[:3], bank)
    np.testing.assert_array_equal(found, again)  # they are fitted on nothing
    ratio = np.linalg.norm(found, axis=1) / np.linalg.norm(bank, axis=1)
    assert 0.7 < ratio.min() < ratio.max() < 1.3
    np.testing.assert_array_equal(compressed("first:3", bank, bank), bank[:, :3])


@pytest.mark.parametrize("step", ["pca:4", "rp:4", "first:4", "int8", "binary", "pq:4"])
def test_rows_of_nan_stay_and_constant_channels_do_no_harm(step: str) -> None:
    bank, queries = drawn(300, 8), drawn(5, 8, 1)
    bank[:, 2], bank[:, 5] = 7, 0
    queries[3], queries[4, 0] = np.nan, np.inf
    found = compressed(step, bank, queries)
    assert np.isnan(found[3:5]).all()
    assert np.isfinite(found[:3]).all()
    alone = compressed(step, bank, queries[:1])
    np.testing.assert_allclose(found[:1], alone, atol=1e-6)  # no query sees another
    assert compressed(step, bank, queries[3:4]).shape == (1, found.shape[1])
