"""Criteria without labels: over how many directions vectors spread, and whether two sets agree who is alike.

Sources: Roy and Vetterli, The Effective Rank: A Measure of Effective Dimensionality, EUSIPCO 2007; Garrido
et al., RankMe: Assessing the Downstream Performance of Pretrained Self-Supervised Representations by Their
Rank, ICML 2023; Agrawal et al., alpha-ReQ: Assessing Representation Quality in Self-Supervised Learning by
Measuring Eigenspectrum Decay, NeurIPS 2022 (decay); Huh et al., The Platonic Representation Hypothesis,
ICML 2024, appendix A (mutual k-nearest neighbours).
"""

import numpy as np
import torch

from layerboard.tasks.metrics.arrays import Features, Floats, Integers
from layerboard.tasks.metrics.neighbours import Vectors, nearest

EPSILON = 1e-7  # what RankMe adds to each share of a singular value
ROUNDED = 1e-7  # share of the largest singular value below which one is taken for rounding
FEWEST = 3  # ranks that a decay is fitted to at least


def singular_values(features: Features, device: torch.device | None = None) -> Floats:
    """Singular values of finite features [n dim], the largest first: [min(n, dim)] float64.

    They are the roots of the eigenvalues of the smaller Gram matrix, in float64: those below a hundred
    millionth of the largest are rounding, and as good as 0. The product runs on the device, the CPU if None.
    """
    values = torch.as_tensor(features, dtype=torch.float64, device=device)
    gram = values.T @ values if values.shape[0] > values.shape[1] else values @ values.T
    roots: Floats = torch.linalg.eigvalsh(gram.cpu()).clamp_min(0).sqrt().flip(0).numpy()
    return roots


def effective_rank(values: Floats, added: float = 0.0) -> float:
    """exp of the entropy of singular values as shares of their sum: k for k equal ones; NaN for zeros alone.

    Those of centred features are the roots of the eigenvalues of their covariance, up to one factor, which
    does not matter. Something may be added to every share.
    """
    total = values.sum()
    return equal_shares(values / total + added) if total > 0 else float("nan")


def equal_shares(shares: Floats) -> float:
    """How many equal shares would be spread as evenly as these, which sum to 1: exp of their entropy."""
    some = shares[shares > 0]
    return float(np.exp(-(some * np.log(some)).sum()))


def rankme(values: Floats) -> float:
    """Effective rank of features that are not centred, with `EPSILON` on every share, as RankMe has it."""
    return effective_rank(values, EPSILON)


def spectrum_decay(values: Floats) -> float:
    """Exponent a of the power law rank^-a that eigenvalues of a covariance follow: 0 for equal ones.

    Least squares of the logarithm of the eigenvalue on that of its rank, each weighted by 1 / rank, so that
    equal stretches of the logarithm count alike, over the first half of the ranks: eigenvalues of a sample
    fall off towards its last ranks whatever the features. alpha-ReQ chooses its ranks by hand. The values are
    singular values of centred features, the largest first; those below `ROUNDED` of it are left out. NaN
    where half of the ranks are fewer than `FEWEST`.
    """
    there = values[values > ROUNDED * values.max(initial=0)]
    ranks = np.arange(1, len(there) // 2 + 1)
    if len(ranks) < FEWEST:
        return float("nan")
    x, y, weights = np.log(ranks), 2 * np.log(there[: len(ranks)]), 1 / ranks
    away = x - np.average(x, weights=weights)
    return float(-(weights * away * y).sum() / (weights * away * away).sum()) + 0.0


def other_neighbours(vectors: Vectors, k: int, device: torch.device | None = None) -> Integers:
    """The k (below n) other images of highest cosine to each image [n dim]: [n k]; ties by lower index."""
    if not 1 <= k < len(vectors):
        raise ValueError(f"expected k of 1 to {len(vectors) - 1}, found {k}")
    neighbours = nearest(vectors, vectors, k + 1, device=device).index
    # among equal vectors an image may be missing from its own neighbours: then the last one goes
    own = neighbours == np.arange(len(vectors))[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(neighbours[~own].reshape(len(vectors), k), np.int64)


def overlap(first: Integers, second: Integers) -> Floats:
    """Share of each image's neighbours that two searches [n k] have in common, [n]; by chance k / (n - 1)."""
    k = first.shape[1]
    return np.asarray((first[:, :, None] == second[:, None, :]).any(axis=2).sum(axis=1) / k, np.float64)


def retrieved(vectors: Vectors, others: Vectors, device: torch.device | None = None) -> Floats:
    """Whether the vector of highest cosine to another view of each image [n dim] is, or equals, its own."""
    nearest_index = nearest(vectors, others, 1, device=device).index[:, 0]
    return np.asarray((vectors[nearest_index] == vectors).all(axis=1), np.float64)
