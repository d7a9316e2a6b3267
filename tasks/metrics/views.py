"""How far two sets of vectors of the same images agree about which images are alike.

Source of the overlap: Huh et al., The Platonic Representation Hypothesis, ICML 2024, appendix A (mutual
k-nearest neighbours).
"""

import numpy as np
import torch

from tasks.metrics.arrays import Floats, Integers
from tasks.metrics.neighbours import nearest
from tasks.metrics.search import Vectors


def other_neighbours(vectors: Vectors, k: int, device: torch.device | None = None) -> Integers:
    """The k other images of highest cosine to each image, [n k]; ties by lower index.

    Args:
        vectors: [n dim], finite.
        k: At most n - 1.
        device: Where the search runs; the CPU if None.

    Raises:
        ValueError: Too few images, or what `nearest` refuses.
    """
    if not 1 <= k < len(vectors):
        raise ValueError(f"expected k of 1 to {len(vectors) - 1}, found {k}")
    neighbours = nearest(vectors, vectors, k + 1, device=device).index
    # among equal vectors an image may be missing from its own neighbours: then the last one goes
    own = neighbours == np.arange(len(vectors))[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(neighbours[~own].reshape(len(vectors), k), np.int64)


def overlap(first: Integers, second: Integers) -> Floats:
    """Share of each image's neighbours that two searches [n k] have in common, [n] in 0..1.

    Unrelated vectors of n images have k / (n - 1) on average.
    """
    k = first.shape[1]
    shared = (first[:, :, None] == second[:, None, :]).any(axis=2)
    return np.asarray(shared.sum(axis=1) / k, np.float64)


def retrieved(vectors: Vectors, others: Vectors, device: torch.device | None = None) -> Floats:
    """Whether the vector of highest cosine to another view of each image is its own: [n], 0 or 1.

    An image whose equal, vector for vector, is found is taken as found.

    Args:
        vectors: [n dim], finite.
        others: [n dim] of the other view.
        device: Where the search runs; the CPU if None.
    """
    nearest_index = nearest(vectors, others, 1, device=device).index[:, 0]
    return np.asarray((vectors[nearest_index] == vectors).all(axis=1), np.float64)
