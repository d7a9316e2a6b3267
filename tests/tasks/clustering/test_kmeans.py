import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from layerboard.tasks.clustering.kmeans import kmeans_starts, shown_classes, shown_purity
from layerboard.tasks.metrics.cell_labels import area_labels, cell_areas, cell_shares
from layerboard.tasks.metrics.partitions import ari, nmi, purity
from tests.tasks.standard import KMEANS

labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


@pytest.mark.parametrize("distinct", [1, 3])
def test_kmeans_of_few_different_samples_has_as_many_clusters(distinct):
    features = np.repeat(np.arange(distinct, dtype=np.float32), 4)[:, None] * np.ones((1, 5), np.float32)
    assert len(set(kmeans_starts(features, 4, **KMEANS)[0].tolist())) == distinct


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(("n", "dim", "k"), [(2, 1, 2), (60, 5, 7), (200, 64, 12), (1100, 20, 4)])
def test_starts_are_those_of_scikit_learn(kind, n, dim, k):
    features = np.random.default_rng(n).standard_normal((n, dim)).astype(kind)
    features[n // 2 :] = features[: n - n // 2]  # equal samples
    for seed in (0, 1) if n < 1000 else (0,):
        draws = np.random.RandomState(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            runs = [KMeans(k, n_init=1, random_state=draws).fit(features) for _ in range(3)]
        expected = [run.labels_ for run in sorted(runs, key=lambda run: run.inertia_)]
        assert (kmeans_starts(features, k, seed, 3) == np.stack(expected)).all()


@settings(max_examples=10, deadline=None)
@given(labels, st.permutations(range(5)))
def test_names_of_clusters_do_not_matter(pairs, names):
    classes, clusters = (np.array(column) for column in zip(*pairs, strict=True))
    renamed = np.array(names)[clusters]
    for measure in (purity, nmi, ari):
        assert measure(classes, renamed) == pytest.approx(measure(classes, clusters), abs=1e-9)
        assert measure(classes[::-1], clusters[::-1]) == pytest.approx(measure(classes, clusters), abs=1e-9)
        assert measure(classes, classes) == pytest.approx(1)


class Rounded(KMeans):
    """k-means whose float32 sums come out lower at each run, as those of other threads may."""

    runs = 0

    def fit(self, *arguments):
        fitted = super().fit(*arguments)
        Rounded.runs += 1
        fitted.inertia_ *= 1 - 1e-7 * Rounded.runs
        return fitted


def test_starts_that_end_in_one_partition_are_ordered_by_their_number(monkeypatch):
    rng = np.random.default_rng(0)
    blobs = rng.standard_normal((3, 1, 64)) * 20 + rng.standard_normal((3, 130, 64))
    features = blobs.reshape(-1, 64).astype(np.float32)
    starts = kmeans_starts(features, 3, seed=0, n_init=10)
    assert sum(ari(starts[0], labels) == 1 for labels in starts) > 1
    monkeypatch.setattr("sklearn.cluster.KMeans", Rounded)
    assert (kmeans_starts(features, 3, seed=0, n_init=10) == starts).all()


def test_shares_are_exact_where_pixels_lie_in_several_cells() -> None:
    mask = np.array([[1, 0, 1], [0, 0, 1]], np.uint8)
    assert cell_areas(mask, (1, 2)).tolist() == [[2, 4]]  # of 6 units a cell
    assert cell_shares(mask, (1, 2)) == pytest.approx(np.array([[1 / 3, 2 / 3]]))
    assert cell_shares(np.ones((7, 5), np.uint8), (3, 4)) == pytest.approx(np.ones((3, 4)))
    labels = area_labels(np.array([[0, 2], [255, 1]], np.uint8), (1, 1), 4)
    assert labels.tolist() == [[[0.5, 0.25, 0.25, 0.0]]]


def test_the_class_of_the_largest_weighted_share_is_shown_and_of_equals_the_first() -> None:
    weights = np.array([[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]])
    shares = np.array([[[0.4, 0.1]], [[0.2, 0.3]], [[0.4, 0.0]]])
    assert shown_classes(weights, shares).tolist() == [0, 0, 1]


def test_of_more_groups_than_clusters_the_purest_count() -> None:
    classes, shown = np.array([1, 1, 2, 2, 2, 3]), np.array([1, 1, 2, 2, 2, 3])
    found = [shown_purity(classes, shown, k) for k in (1, 2, 3, 9)]
    assert found == pytest.approx([3 / 6, 5 / 6, 1, 1])
    assert shown_purity(classes, np.zeros(6, np.int64), 3) == 0.5
