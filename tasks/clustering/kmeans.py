"""k-means clustering of features, and the clusters that region classes shown in cells would make."""

import warnings
from collections.abc import Iterator

import numpy as np

from layerboard.tasks.metrics.arrays import Features, Floats, Integers

_PIECE = 10 * 2**17  # numbers in float64 that scikit-learn has in memory at once


def kmeans_starts(features: Features, k: int, seed: int, n_init: int) -> Integers:
    """Cluster of each sample, 0 to k - 1, in each of several k-means runs, lowest inertia first: [n_init n].

    The runs are those of scikit-learn's KMeans with the same seed and n_init (which returns only the best):
    Lloyd's algorithm from k-means++ centres, at most 300 iterations, tolerance 1e-4. Features [n dim] are not
    normalised; they are finite, and n is at least k. With fewer than k distinct samples, there are as many
    clusters as distinct samples. Partitions may differ between versions of scikit-learn.
    """
    from sklearn import config_context
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    draws, dim = np.random.RandomState(seed), features.shape[1]
    # scikit-learn computes distances of up to so many float32 samples in one piece
    is_small = features.dtype == np.float32 and len(features) <= (dim**2 + _PIECE) ** 0.5 - dim
    centres = _centres(features, k, draws, n_init) if is_small else iter(())
    init = (lambda *_, **__: next(centres)) if is_small else "k-means++"
    runs: list[tuple[float, Integers]] = []
    with warnings.catch_warnings(), config_context(assume_finite=True):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct samples than clusters
        for _ in range(n_init):
            model = KMeans(k, init=init, n_init=1, max_iter=300, tol=1e-4, random_state=draws).fit(features)
            labels = np.asarray(model.labels_, dtype=np.int64)
            # Its own inertia of float32 features is a float32 sum, whose last digits depend on the number of
            # threads. They would decide the order of runs that end in the same partition.
            gaps = np.subtract(features, model.cluster_centers_[labels], dtype=np.float64)
            inertia = float(f"{np.einsum('ij,ij->', gaps, gaps):.9e}")
            runs.append((inertia, labels))
    return np.stack([labels for _, labels in sorted(runs, key=lambda run: run[0])])


def _centres(features: Features, k: int, draws: np.random.RandomState, runs: int) -> Iterator[Features]:
    """The starting centres of scikit-learn's k-means++ for each of several runs.

    Its own code takes most of the time of a clustering of hundreds of samples: it checks and converts all of
    them again for each centre. Here distances are computed once, and all runs choose a centre together.
    """
    centred = features - features.mean(axis=0)
    squares = centred.astype(np.float64) @ centred.T.astype(np.float64)
    norms = squares.diagonal()
    distances = np.maximum((norms[:, None] - 2 * squares + norms).astype(np.float32), 0)
    weights = np.ones(len(features), np.float32)
    chances, shape = weights / weights.sum(), (k - 1, 2 + int(np.log(k)))
    # in the order in which the runs would draw, one after the other
    drawn = [(draws.choice(len(features), p=chances), draws.uniform(size=shape)) for _ in range(runs)]
    every, chosen = np.arange(runs), [np.array([first for first, _ in drawn])]
    nearest = distances[chosen[0]]
    potential = nearest[:, None] @ weights  # [runs 1]
    for shares in np.stack([further for _, further in drawn], axis=1):
        # the best of some candidates, drawn by their distance to the nearest centre
        before = np.cumsum(nearest, axis=1)[:, None] < (shares * potential)[:, :, None]
        candidates = before.sum(axis=2).clip(None, len(features) - 1)
        among = np.minimum(nearest[:, None], distances[candidates])
        potentials = (among @ weights[:, None])[:, :, 0]
        best = potentials.argmin(axis=1)
        nearest, potential = among[every, best], potentials[every, best, None]
        chosen.append(candidates[every, best])
    return iter(centred[np.stack(chosen, axis=1)])


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
