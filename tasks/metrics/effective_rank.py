"""Effective rank of features: over how many directions their variation is spread.

Source: Roy and Vetterli, The Effective Rank: A Measure of Effective Dimensionality, EUSIPCO 2007; Garrido et
al., RankMe: Assessing the Downstream Performance of Pretrained Self-Supervised Representations by Their Rank,
ICML 2023.
"""

import numpy as np
import torch

from tasks.metrics.arrays import Features, Floats

EPSILON = 1e-7
"""What RankMe adds to each share of a singular value."""


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
    found: Floats = torch.linalg.eigvalsh(gram.cpu()).clamp_min(0).sqrt().flip(0).numpy()
    return found


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
