"""Rankings of images of the same thing, against scikit-learn and a walk through one image at a time."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from layerboard.tasks.metrics import neighbours
from layerboard.tasks.retrieval.pairs import NONE, Pairs, Retrieved, retrieve

Vectors = NDArray[np.float32]
RNG_SEEDS = range(4)


def drawn(
    seed: int, images: int = 60, things: int = 9, noise: float = 1.2
) -> tuple[Vectors, NDArray[np.int64]]:
    """Vectors [images 6] around one of each thing, some of them twice, and the thing of each."""
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, things, images)
    vectors = rng.standard_normal((things, 6))[shown] + noise * rng.standard_normal((images, 6))
    vectors[rng.integers(0, images, 8)] = vectors[rng.integers(0, images, 8)]
    return vectors.astype(np.float32), shown


def exact(queries: Vectors, database: Vectors) -> NDArray[np.float32]:
    wide = (queries.astype(np.float64), database.astype(np.float64))
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in wide]
    return np.asarray(units[0] @ units[1].T, np.float32)


def among_all(vectors: Vectors, shown: NDArray[np.int64]) -> Retrieved:
    every = np.ones(len(vectors), np.bool_)
    return retrieve(vectors, shown, every, every, np.arange(len(vectors)))


@pytest.mark.parametrize("seed", RNG_SEEDS)
def test_rates_of_pairs_are_those_of_scikit_learn(seed: int) -> None:
    vectors, shown = drawn(seed)
    cosines, found = exact(vectors, vectors), among_all(vectors, shown)
    first, second = np.triu_indices(len(vectors), 1)
    same, values = shown[first] == shown[second], cosines[first, second]
    assert found.pairs.different == np.count_nonzero(~same)
    assert found.pairs.roc_auc == pytest.approx(roc_auc_score(same, values), abs=1e-9)
    rates, accepted, _ = roc_curve(same, values, drop_intermediate=False)
    assert found.pairs.accepted(1e-2) == pytest.approx(accepted[rates <= 1e-2].max(), abs=1e-9)
    precisions, recalls, thresholds = precision_recall_curve(same, values)
    level = float(np.median(precisions[:-1]))
    precise = np.flatnonzero(precisions[:-1] >= level)[0]
    lowest = values[same & (values >= thresholds[precise])].min()
    assert found.pairs.threshold(level) == pytest.approx((lowest, recalls[precise]), abs=1e-9)


@pytest.mark.parametrize("seed", RNG_SEEDS)
def test_ranks_are_those_of_a_walk(seed: int) -> None:
    vectors, shown = drawn(seed)
    cosines, found = exact(vectors, vectors), among_all(vectors, shown)
    for row in range(len(vectors)):
        others = [image for image in range(len(vectors)) if image != row]
        # of images that are as similar, those of other things come first
        walk = sorted(others, key=lambda image: (-cosines[row, image], shown[image] == shown[row]))
        hits = [shown[image] == shown[row] for image in walk]
        own = sum(hits)
        for k in (1, 5, 10):
            assert found.recall(k)[row] == pytest.approx(float(any(hits[:k])) if own else np.nan, nan_ok=True)
        precision = sum(hits[:own]) / own if own else np.nan
        assert found.r_precision[row] == pytest.approx(precision, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("bits", [96, 768])
def test_equal_hamming_distances_are_ties(bits: int) -> None:
    rng = np.random.default_rng(0)
    codes = np.where(rng.random((80, bits)) < 0.5, -1, 1).astype(np.float32)
    shown = rng.integers(0, 8, len(codes))
    first, second = np.triu_indices(len(codes), 1)
    alike = (codes @ codes.T)[first, second]  # whole numbers, exact
    assert np.count_nonzero(alike == 0) > 90
    expected = roc_auc_score(shown[first] == shown[second], alike)
    assert among_all(codes, shown).pairs.roc_auc == pytest.approx(expected, abs=1e-12)


def test_features_that_tell_nothing_apart_find_nothing() -> None:
    found = among_all(np.ones((30, 4), np.float32), np.arange(30) // 2)
    assert (found.recall(10) == 0).all()
    assert found.average_precision == pytest.approx(1 / 29)
    assert found.pairs.roc_auc == 0.5
    assert all(np.isnan(value) for value in found.pairs.threshold(0.9))


def test_distractors_are_ranked_and_never_right() -> None:
    vectors, shown = drawn(1)
    shown[:20] = NONE
    found = retrieve(vectors, shown, np.arange(60) >= 20, np.ones(60, np.bool_), np.arange(60))
    without = among_all(vectors[20:], shown[20:])
    assert (found.wrong >= without.wrong).all()
    assert (found.average_precision <= without.average_precision + 1e-12).all()
    assert found.pairs.different == without.pairs.different + 20 * 40
    assert (found.pairs.same == without.pairs.same).all()


def test_a_query_without_another_image_of_its_thing_is_left_out() -> None:
    vectors, shown = drawn(2)
    shown[7] = 99
    found = among_all(vectors, shown)
    assert np.isnan(found.recall(1)).tolist() == [row == 7 for row in range(60)]
    pairs = 60 * 59 // 2
    assert found.pairs.different + len(found.pairs.same) == pairs


def test_neither_the_order_nor_the_chunks_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, shown = drawn(3)
    found, order = among_all(vectors, shown), np.random.default_rng(0).permutation(60)
    monkeypatch.setattr(neighbours, "CHUNK_FLOATS", 200)
    other = among_all(vectors[order], shown[order])
    assert (other.average_precision == found.average_precision[order]).all()
    assert (other.wrong == found.wrong[order]).all()
    for name in ("same", "above", "reached"):
        assert (getattr(other.pairs, name) == getattr(found.pairs, name)).all()


def test_rates_need_ten_pairs_of_different_things() -> None:
    same, none = np.array([0.5], np.float32), np.zeros(1, np.int64)
    pairs = Pairs(same, none, none, 1000, none, same, np.zeros((1, 2), np.int32))
    assert np.isnan(replace(pairs, different=999).accepted(1e-2))
    assert pairs.accepted(1e-2) == 1
    assert np.isnan(pairs.accepted(1e-3))


@pytest.mark.parametrize("number", [25, 0], ids=["groups", "alone"])
@pytest.mark.parametrize("seed", RNG_SEEDS)
def test_average_precision_is_that_of_scikit_learn_among_images_of_other_groups(
    seed: int, number: int
) -> None:
    vectors, shown = drawn(seed)
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, number, 60) if number else np.arange(60)
    asks, ranked = rng.random(60) < 0.7, rng.random(60) < 0.8
    cosines, found = exact(vectors, vectors), retrieve(vectors, shown, asks, ranked, groups)
    assert found.average_precision.shape == (asks.sum(),)
    pairs = {}
    for place, row in enumerate(np.flatnonzero(asks)):
        others = np.flatnonzero(ranked & (groups != groups[row]))
        same = shown[others] == shown[row]
        expected = average_precision_score(same, cosines[row, others]) if same.any() else np.nan
        assert found.average_precision[place] == pytest.approx(expected, abs=1e-9, nan_ok=True)
        if same.any():
            pairs |= {frozenset((row, other)): is_same for other, is_same in zip(others, same, strict=True)}
    assert len(found.pairs.same) == sum(pairs.values())
    assert found.pairs.different == len(pairs) - sum(pairs.values())


@pytest.mark.parametrize("layout", ["apart", "mixed"])
def test_errors_of_pairs_are_those_of_leaving_out_each_thing(layout: str) -> None:
    rng = np.random.default_rng(5)
    shown = np.repeat(np.arange(40), 4)
    vectors = (rng.standard_normal((40, 6))[shown] + 0.7 * rng.standard_normal((160, 6))).astype(np.float32)
    first = np.arange(160) % 4 == 0
    asks = first if layout == "apart" else rng.random(160) < 0.6
    ranked = ~first if layout == "apart" else ~asks | (rng.random(160) < 0.6)
    shown[-12:] = NONE  # and distractors

    def retrieved(kept: NDArray[np.bool_]) -> Retrieved:
        asking = (asks & (shown != NONE))[kept]
        return retrieve(vectors[kept], shown[kept], asking, ranked[kept], np.arange(len(vectors))[kept])

    found = retrieved(shown < 40)
    without = [retrieved(shown != thing).pairs for thing in range(37)]
    for of_all, values, near in (
        (found.pairs.roc_auc_slopes(), [pairs.roc_auc for pairs in without], 0.05),
        (found.pairs.accepted_slopes(1e-2), [pairs.accepted(1e-2) for pairs in without], 0.35),
    ):
        slopes = found.shared(of_all)[:, None] * (found.shown[:, None] == np.arange(37))
        slopes = np.nansum(slopes, axis=0)
        error = np.sqrt((slopes**2).sum()) / len(found.shown)
        assert error == pytest.approx(np.sqrt(36 * np.var(values)), rel=near)
