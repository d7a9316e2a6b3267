"""Planted scores of units: means, hits, and columns of a known covariance."""

import numpy as np

from layerboard.tasks.statistics.weighted import Ratios, Trials


def zeros(n):
    return np.zeros(n, np.int64)


def ratios(totals, counts=None, group=None, stratum=None):
    totals = np.asarray(totals, float)
    totals = totals[:, None] if totals.ndim == 1 else totals
    n = len(totals)
    counts = np.ones(n) if counts is None else np.asarray(counts, float)
    return Ratios(totals, counts, *(zeros(n) if ids is None else np.asarray(ids) for ids in (group, stratum)))


def hits(right, held=None, stratum=None, value=1.0):
    """Numbers of hits of each unit, by how many trials it holds."""
    right = np.asarray(right, float)
    right = right[:, None] if right.ndim == 1 else right
    held = np.ones(len(right)) if held is None else np.asarray(held, float)
    stratum = zeros(len(right)) if stratum is None else np.asarray(stratum)
    trials = Trials(held, np.full(right.shape[1], value))
    return Ratios(value * right, held, zeros(len(right)), stratum, trials)


def percent(right):
    """Hits of single trials, each 100."""
    return hits(right, value=100.0)


def whitened(n, scores, seed=0):
    """Columns of mean 0 whose sample covariance is exactly the identity."""
    values = np.random.default_rng(seed).normal(size=(n, scores))
    values -= values.mean(axis=0)
    return np.linalg.qr(values)[0] * np.sqrt(n - 1)
