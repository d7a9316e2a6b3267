"""What the cells of a grid say of regions if each knows exactly which classes it shows."""

import numpy as np

from tasks.metrics.arrays import Floats, Integers


def shown_classes(weights: Floats, shares: Floats) -> Integers:
    """The class that the cells of each region show most, as its place among the classes: [regions].

    Args:
        weights: [regions height width] how much each cell counts for a region.
        shares: [classes height width] share of each cell that regions of each class cover.

    Of classes that are shown alike the first one counts.
    """
    shown = weights.reshape(len(weights), -1).astype(np.float64) @ shares.reshape(len(shares), -1).T
    return np.asarray(shown.argmax(axis=1), dtype=np.int64)


def shown_purity(classes: Integers, shown: Integers, k: int) -> float:
    """Purity where every region is put with the class that its cells show most, in (0, 1].

    Where more than k classes are shown, the k groups in which most regions are of one class count.

    Args:
        classes: [n] true class of each region.
        shown: [n] class that its cells show most.
        k: Clusters that there may be.

    Raises:
        ValueError: Different lengths, or no region, or no cluster.
    """
    if classes.shape != shown.shape or classes.ndim != 1 or not len(classes) or k < 1:
        raise ValueError(f"expected [n] classes twice and clusters: {classes.shape}, {shown.shape}, {k}")
    groups = (np.unique(classes[shown == kind], return_counts=True)[1].max() for kind in np.unique(shown))
    return float(sum(sorted(map(int, groups), reverse=True)[:k]) / len(classes))
