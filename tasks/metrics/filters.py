"""Measures of a network's first weights: its patch filters, and the positions that it has learned.

Source: Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021, figure 7 (left and centre).
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from tasks.metrics.arrays import ROUNDING, Floats

TIED = 10  # decimals of a cosine: what differs behind them differs by rounding alone, and is a tie of ranks


@dataclass(frozen=True, slots=True)
class PrincipalFilters:
    """Principal components of patch filters."""

    shares: Floats  # of the variance, the largest first, [components]; they sum to 1
    images: Floats  # [components patch patch 3] in [0, 1], the largest entry in size positive

    @property
    def rank(self) -> float:
        """Effective rank (Roy and Vetterli, EUSIPCO 2007): exp of the entropy of the shares."""
        some = self.shares[self.shares > 0]
        return float(np.exp(-(some * np.log(some)).sum()))

    def variance(self, count: int) -> float:
        return float(self.shares[:count].sum())


def principal_filters(filters: Floats) -> PrincipalFilters | None:
    """Principal components of filters [dim 3 patch patch]; None where all filters are the same.

    The mean filter is taken off first. What varies by rounding alone is no component.
    """
    flat = filters.reshape(len(filters), -1).astype(np.float64)
    centred = flat - flat.mean(axis=0)
    _, values, rows = np.linalg.svd(centred, full_matrices=False)
    noise = ROUNDING * np.finfo(np.float64).eps * np.sqrt(flat.size) * np.abs(flat).max(initial=0.0)
    values, rows = values[values > noise], rows[values > noise]
    if not len(values):
        return None
    shares = values**2 / (values**2).sum()
    components = rows.reshape(len(rows), *filters.shape[1:]).transpose(0, 2, 3, 1)
    return PrincipalFilters(shares, np.stack([_as_image(component) for component in components]))


def _as_image(component: Floats) -> Floats:
    """A component scaled to [0, 1]; grey where it is constant."""
    largest = component.flat[np.abs(component).argmax()]
    component = component * np.sign(largest)
    low, high = component.min(), component.max()
    flat = high - low <= ROUNDING * np.finfo(np.float64).eps * abs(largest)
    return np.full_like(component, 0.5) if flat else (component - low) / (high - low)


@dataclass(frozen=True, slots=True)
class PositionSimilarity:
    """How alike the positions of a grid are, over pairs of two different cells; None where unknown."""

    cosine: Floats  # of all pairs of cells, [rows columns rows columns]
    distance_rho: float | None  # Spearman's correlation with nearness (distance of the cells, negated)
    row: float | None  # mean cosine of pairs in one row
    column: float | None  # the same in one column
    other: float | None  # the same of all other pairs


def position_similarity(positions: Floats) -> PositionSimilarity | None:
    """How alike positions [rows columns dim] are; None where one of them is zero and has no direction."""
    cells = positions.shape[:2]
    flat = positions.reshape(cells[0] * cells[1], -1).astype(np.float64)
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    if not (length > 0).all():
        return None
    cosine = (flat / length) @ (flat / length).T
    first, second = np.triu_indices(len(flat), 1)
    pairs = cosine[first, second]
    rows, columns = (
        np.abs(index[first] - index[second]) for index in np.divmod(np.arange(len(flat)), cells[1])
    )
    return PositionSimilarity(
        cosine.reshape(*cells, *cells),
        _correlation(pairs, -np.hypot(rows, columns)),
        _mean(pairs[rows == 0]),
        _mean(pairs[columns == 0]),
        _mean(pairs[(rows > 0) & (columns > 0)]),
    )


def _correlation(first: Floats, second: Floats) -> float | None:
    """Spearman's correlation of cosines with something; None where one of the two does not vary."""
    first = first.round(TIED)
    if not len(first) or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(spearmanr(first, second).statistic)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
