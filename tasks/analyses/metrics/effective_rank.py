"""Label-free criteria: effective rank and spectrum of vectors, and agreement of the neighbours of two sets.

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

EPSILON = 1e-7  # added to each share of a singular value by RankMe
ROUNDED = 1e-7  # singular values below this share of the largest one count as rounding error
FEWEST = 3  # least number of ranks that a decay is fitted to


def singular_values(features: Features, device: torch.device | None = None) -> Floats:
    """Singular values of finite features [n dim], the largest first: [min(n, dim)] float64.

    They are the square roots of the eigenvalues of the smaller Gram matrix, in float64: those below a hundred
    millionth of the largest are rounding error. The product runs on the device, or on the CPU if it is None.
    """
    values = torch.as_tensor(features, dtype=torch.float64, device=device)
    gram = values.T @ values if values.shape[0] > values.shape[1] else values @ values.T
    roots: Floats = torch.linalg.eigvalsh(gram.cpu()).clamp_min(0).sqrt().flip(0).numpy()
    return roots


def effective_rank(values: Floats, added: float = 0.0) -> float:
    """exp of the entropy of singular values as shares of their sum: k for k equal ones; NaN if all are zero.

    ``added`` is added to every share.
    """
    total = values.sum()
    return equal_shares(values / total + added) if total > 0 else float("nan")


def equal_shares(shares: Floats) -> float:
    """exp of the entropy of shares that sum to 1: the number of equal shares with the same entropy."""
    some = shares[shares > 0]
    return float(np.exp(-(some * np.log(some)).sum()))


def rankme(values: Floats) -> float:
    """RankMe: effective rank of uncentred features, with `EPSILON` added to every share."""
    return effective_rank(values, EPSILON)


def spectrum_decay(values: Floats) -> float:
    """Exponent a of the power law rank^-a fitted to the eigenvalues of a covariance: 0 for equal ones.

    A weighted least-squares fit of log eigenvalue on log rank, over the first half of the ranks. The weight
    is 1 / rank, so that equal intervals of log rank count the same. The second half is left out because the
    eigenvalues of a finite sample fall off there for any features; alpha-ReQ chooses the range by hand.
    ``values`` are the singular values of centred features, the largest first; those below `ROUNDED` times the
    largest are left out. NaN if half of the ranks are fewer than `FEWEST`.
    """
    there = values[values > ROUNDED * values.max(initial=0)]
    ranks = np.arange(1, len(there) // 2 + 1)
    if len(ranks) < FEWEST:
        return float("nan")
    x, y, weights = np.log(ranks), 2 * np.log(there[: len(ranks)]), 1 / ranks
    away = x - np.average(x, weights=weights)
    return float(-(weights * away * y).sum() / (weights * away * away).sum()) + 0.0


def other_neighbours(vectors: Vectors, k: int, device: torch.device | None = None) -> Integers:
    """The k < n other images with the highest cosine to each image [n dim]: [n k]; ties by lower index."""
    neighbours = nearest(vectors, vectors, k + 1, device=device).index
    # among equal vectors an image may be missing from its own neighbours: then the last one is dropped
    own = neighbours == np.arange(len(vectors))[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(neighbours[~own].reshape(len(vectors), k), np.int64)


def overlap(first: Integers, second: Integers) -> Floats:
    """Share of each image's neighbours that two searches [n k] have in common: [n]; k / (n - 1) by chance."""
    k = first.shape[1]
    return np.asarray((first[:, :, None] == second[:, None, :]).any(axis=2).sum(axis=1) / k, np.float64)


def retrieved(vectors: Vectors, others: Vectors, device: torch.device | None = None) -> Floats:
    """Whether the nearest vector to another view of each image is its own, or an equal one: 1 or 0, [n]."""
    nearest_index = nearest(vectors, others, 1, device=device).index[:, 0]
    return np.asarray((vectors[nearest_index] == vectors).all(axis=1), np.float64)
