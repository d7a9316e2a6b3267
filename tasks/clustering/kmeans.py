"""k-means clustering of features, and the clusters that region classes shown in cells would make."""

import warnings
from collections.abc import Sequence

import numpy as np

from layerboard.tasks.metrics.arrays import Features, Floats, Integers

_PIECE = 10 * 2**17  # numbers in float64 that scikit-learn has in memory at once


def kmeans_starts(features: Features, k: int, seed: int, n_init: int) -> Integers:
    """Cluster of each sample, 0 to k - 1, in each of several k-means runs, lowest inertia first: [n_init n].

    The runs are those of scikit-learn's KMeans with the same seed and n_init (which returns only the best):
    Lloyd's algorithm from k-means++ centres, at most 300 iterations, tolerance 1e-4. Features [n dim] are not
    normalised. With fewer than k distinct samples, there are as many clusters as distinct samples. Partitions
    may differ between versions of scikit-learn. Raises ValueError for fewer samples than clusters, a wrong
    shape, or a value that is NaN or infinite.
    """
    if features.ndim != 2 or not features.shape[1]:
        raise ValueError(f"expected features [n dim], found shape {features.shape}")
    if not 1 <= k <= len(features) or n_init < 1:
        raise ValueError(f"cannot find {k} clusters among {len(features)} samples in {n_init} runs")
    if not np.isfinite(features).all():
        raise ValueError("features must not hold NaN or infinite values")
    from sklearn import config_context
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    draws, dim = np.random.RandomState(seed), features.shape[1]
    # scikit-learn computes distances of up to so many float32 samples in one piece
    is_small = len(features) <= (dim**2 + _PIECE) ** 0.5 - dim
    init = _Centres() if is_small and features.dtype == np.float32 else "k-means++"
    runs: list[tuple[float, Integers]] = []
    with warnings.catch_warnings(), config_context(assume_finite=True):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct samples than clusters
        for _ in range(n_init):
            model = KMeans(k, init=init, n_init=1, max_iter=300, tol=1e-4, random_state=draws).fit(features)
            labels = np.asarray(model.labels_, dtype=np.int64)
            runs.append((_inertia(features, model.cluster_centers_, labels), labels))
    return np.stack([labels for _, labels in sorted(runs, key=lambda run: run[0])])


class _Centres:
    """The starting centres of scikit-learn's k-means++, bit for bit, for few float32 samples.

    Its own code takes two thirds of the time of a clustering of hundreds of samples: it checks and converts
    all of them again for each centre. Here the samples are converted once for all runs.
    """

    def __init__(self) -> None:
        self._samples, self._norms = np.empty((0, 0)), np.empty(0)

    def __call__(self, features: Features, k: int, random_state: np.random.RandomState) -> Features:
        if not len(self._samples):  # the same in each run, less their mean
            self._samples = features.astype(np.float64)
            self._norms = np.einsum("ij,ij->i", self._samples, self._samples)
        weights = np.ones(len(features), features.dtype)
        chosen = [int(random_state.choice(len(features), p=weights / weights.sum()))]
        nearest = self._distances(chosen)
        potential = nearest @ weights
        while len(chosen) < k:  # the best of some candidates, drawn by their distance to the nearest centre
            drawn = random_state.uniform(size=2 + int(np.log(k))) * potential
            candidates = np.searchsorted(np.cumsum(nearest), drawn).clip(None, len(features) - 1)
            distances = np.minimum(nearest, self._distances(candidates))
            potentials = distances @ weights[:, None]
            best = potentials.argmin()
            nearest, potential = distances[best], potentials[best]
            chosen.append(int(candidates[best]))
        return features[chosen]

    def _distances(self, rows: Sequence[int] | Integers) -> Features:
        """Squared distances of some samples to all, [rows n]."""
        squares = -2 * (self._samples[rows] @ self._samples.T)
        squares += self._norms[rows, None]
        squares += self._norms
        return np.maximum(squares.astype(np.float32), 0)


def _inertia(features: Features, centres: Features, labels: Integers) -> float:
    """Sum of squared distances to the centres, rounded to ten digits.

    scikit-learn's own inertia of float32 features is a float32 sum, whose last digits depend on the number of
    threads. They would decide the order of runs that end in the same partition.
    """
    gaps = (np.subtract(features[labels == k], centre, dtype=np.float64) for k, centre in enumerate(centres))
    return float(f"{sum(float(np.square(gap).sum()) for gap in gaps):.9e}")


def shown_classes(weights: Floats, shares: Floats) -> Integers:
    """Index of the class that covers most of the cells of each region: [regions].

    ``weights`` [regions height width] is the weight of each cell in a region; ``shares`` [classes height
    width] is the share of a cell that regions of each class cover. Ties go to the first class.
    """
    shown = weights.reshape(len(weights), -1).astype(np.float64) @ shares.reshape(len(shares), -1).T
    return np.asarray(shown.argmax(axis=1), dtype=np.int64)


def shown_purity(classes: Integers, shown: Integers, k: int) -> float:
    """Purity, in (0, 1], if every region is assigned to the class that covers most of its cells.

    ``classes`` [n] are the true classes, ``shown`` [n] the covering ones. If more than k of these occur, only
    the k groups with the most regions of one class count.
    """
    groups = (np.unique(classes[shown == kind], return_counts=True)[1].max() for kind in np.unique(shown))
    return float(sum(sorted(map(int, groups), reverse=True)[:k]) / len(classes))
