"""Effective rank of features: over how many directions their variation is spread, and how fast it falls.

Source: Roy and Vetterli, The Effective Rank: A Measure of Effective Dimensionality, EUSIPCO 2007; Garrido et
al., RankMe: Assessing the Downstream Performance of Pretrained Self-Supervised Representations by Their Rank,
ICML 2023; Agrawal et al., alpha-ReQ: Assessing Representation Quality in Self-Supervised Learning by
Measuring Eigenspectrum Decay, NeurIPS 2022 (decay).
"""

import numpy as np
import torch

from tasks.metrics.arrays import Features, Floats

EPSILON = 1e-7
"""What RankMe adds to each share of a singular value."""

ROUNDED = 1e-7
"""Share of the largest singular value below which one is taken for rounding."""

FEWEST = 3
"""Ranks that a decay is fitted to at least."""


def singular_values(features: Features, device: torch.device | None = None) -> Floats:
    """Singular values of features [n dim], the largest first: [min(n, dim)] float64.

    They are the roots of the eigenvalues of the smaller Gram matrix, in float64: those below a hundred
    millionth of the largest are rounding, and as good as 0.

    Args:
        features: Finite.
        device: Where the product runs; the CPU if None.
    """
    values = torch.as_tensor(features, dtype=torch.float64, device=device)
    gram = values.T @ values if values.shape[0] > values.shape[1] else values @ values.T
    roots: Floats = torch.linalg.eigvalsh(gram.cpu()).clamp_min(0).sqrt().flip(0).numpy()
    return roots


def effective_rank(values: Floats) -> float:
    """exp of the entropy of singular values as shares of their sum: k for k equal ones; NaN for zeros alone.

    Args:
        values: Singular values, at least 0: of centred features they are the roots of the eigenvalues of
            their covariance, up to one factor, which does not matter.
    """
    total = values.sum()
    if not total > 0:
        return float("nan")
    shares = values[values > 0] / total
    return float(np.exp(-(shares * np.log(shares)).sum()))


def rankme(values: Floats) -> float:
    """The same of features that are not centred, with `EPSILON` on every share, as RankMe has it."""
    total = values.sum()
    if not total > 0:
        return float("nan")
    shares = values / total + EPSILON
    return float(np.exp(-(shares * np.log(shares)).sum()))


def spectrum_decay(values: Floats) -> float:
    """Exponent a of the power law rank^-a that eigenvalues of a covariance follow: 0 for equal ones.

    Least squares of the logarithm of the eigenvalue on that of its rank, each weighted by 1 / rank, so that
    equal stretches of the logarithm count alike, over the first half of the ranks: eigenvalues of a sample
    fall off towards its last ranks whatever the features. alpha-ReQ chooses its ranks by hand.

    Args:
        values: Singular values of centred features, the largest first; those below `ROUNDED` of it are left
            out.

    Returns:
        The exponent; NaN where half of the ranks are fewer than `FEWEST`.
    """
    there = values[values > ROUNDED * values.max(initial=0)]
    ranks = np.arange(1, len(there) // 2 + 1)
    if len(ranks) < FEWEST:
        return float("nan")
    x, y, weights = np.log(ranks), 2 * np.log(there[: len(ranks)]), 1 / ranks
    away = x - np.average(x, weights=weights)
    return float(-(weights * away * y).sum() / (weights * away * away).sum()) + 0.0
