"""k-means clustering of features, and the clusters that region classes shown in cells would make."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from layerboard.tasks.metrics.arrays import Features, Floats, Integers
from layerboard.tasks.metrics.neighbours import CACHED_FLOATS, chunks

CHUNK_FLOATS = 1 << 22  # values compared with their centres at a time


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

    draws = np.random.RandomState(seed)
    model = KMeans(
        k, init=SpreadSamples(n_init), n_init=1, max_iter=300, tol=1e-4, algorithm="lloyd", random_state=draws
    )
    runs: list[tuple[float, Integers]] = []
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct samples than clusters
        for _ in range(n_init):
            model.fit(features)
            labels = np.asarray(model.labels_, dtype=np.int64)
            runs.append((_inertia(features, model.cluster_centers_, labels), labels))
    return np.stack([labels for _, labels in sorted(runs, key=lambda run: run[0])])


@dataclass
class SpreadSamples:
    """First centres of k-means among features [n dim], those of scikit-learn's ``kmeans_plusplus``: [k dim].

    With the same random state both draw the same samples. For some hundred, this takes less than a third of
    the time: scikit-learn checks and converts all features again for each centre. Several runs must have the
    same features, whose distances are computed once if they are few.
    """

    runs: int
    _distances: Callable[[Integers], Features] | None = None

    def __call__(self, features: Features, k: int, random_state: np.random.RandomState) -> Features:
        n, weight, tries = len(features), np.ones(len(features), features.dtype), 2 + int(np.log(k))
        if self._distances is None:
            self._distances = _distances(features, self.runs * k * tries)
        chosen = [random_state.choice(n, p=weight / weight.sum())]
        nearest = self._distances(np.array(chosen))[0]
        total = nearest @ weight
        for _ in range(1, k):
            bounds = random_state.uniform(size=tries) * total
            drawn = np.searchsorted(np.cumsum(nearest), bounds).clip(max=n - 1)
            reached = np.minimum(nearest, self._distances(drawn))
            totals = reached @ weight
            best = int(totals.argmin())
            nearest, total = reached[best], totals[best]
            chosen.append(drawn[best])
        centres: Features = features[chosen]
        return centres


def _distances(features: Features, asked: int) -> Callable[[Integers], Features]:
    """Function from rows of features to the squared distances of these to all, [rows n].

    If it is asked for at least as many rows as there are, and all fit into a chunk, they are computed before.
    """
    n = len(features)
    parts: list[Features] = [features.astype(np.float64)] if features.size <= CHUNK_FLOATS else []
    if not parts:  # would take much memory: converted again for each centre, in the cache
        parts = [features[rows] for rows in chunks(n, features.shape[1], CACHED_FLOATS)]
    squares = np.concatenate([np.einsum("ij,ij->i", part, part, dtype=np.float64) for part in parts])

    def computed(drawn: Integers) -> Features:
        known = -2 * features[drawn].astype(np.float64)
        gaps = np.concatenate([known @ part.astype(np.float64, copy=False).T for part in parts], axis=1)
        gaps += squares[drawn, None]
        gaps += squares
        squared: Features = np.maximum(gaps.astype(features.dtype, copy=False), 0)
        return squared

    return computed(np.arange(n)).__getitem__ if n <= asked and n * n <= CHUNK_FLOATS else computed


def _inertia(features: Features, centres: Features, labels: Integers) -> float:
    """Sum of squared distances to the centres, rounded to ten digits.

    scikit-learn's own inertia of float32 features is a float32 sum, whose last digits depend on the number of
    threads. They would decide the order of runs that end in the same partition.
    """
    total = 0.0
    for rows in np.array_split(np.arange(len(features)), -(-features.size // CHUNK_FLOATS)):
        gap = features[rows].astype(np.float64) - centres[labels[rows]]
        total += float(np.einsum("ij,ij->", gap, gap))
    return float(f"{total:.9e}")


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
