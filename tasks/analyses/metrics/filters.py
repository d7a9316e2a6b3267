"""Measures of a network's first weights: patch filters and learned position embeddings.

Source: Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021, figure 7 (left and centre).
"""

from math import isnan

import numpy as np

from layerboard.tasks.metrics.arrays import ROUNDING, Floats
from layerboard.tasks.statistics.layer_choice import rank_correlation

TIED = 10  # decimals to which cosines are rounded before ranking, so that rounding errors become ties


def principal_filters(filters: Floats) -> tuple[Floats, Floats] | None:
    """Principal components of filters [dim 3 patch patch]; None if all filters are the same.

    Returns the shares of the variance, the largest first, which sum to 1: [components]; and the components as
    images in [0, 1], with the sign that makes the entry of largest magnitude positive: [components patch
    patch 3]. The mean filter is subtracted first. Components whose variance is rounding error are left out.
    """
    flat = filters.reshape(len(filters), -1).astype(np.float64)
    _, values, rows = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    noise = ROUNDING * np.finfo(np.float64).eps * np.sqrt(flat.size) * np.abs(flat).max(initial=0.0)
    values, rows = values[values > noise], rows[values > noise]
    if not len(values):
        return None
    components = rows.reshape(len(rows), *filters.shape[1:]).transpose(0, 2, 3, 1)
    return values**2 / (values**2).sum(), np.stack([_as_image(component) for component in components])


def _as_image(component: Floats) -> Floats:
    """A component scaled to [0, 1]; grey where it is constant."""
    largest = component.flat[np.abs(component).argmax()]
    component = component * np.sign(largest)
    low, high = component.min(), component.max()
    flat = high - low <= ROUNDING * np.finfo(np.float64).eps * abs(largest)
    return np.full_like(component, 0.5) if flat else (component - low) / (high - low)


def position_similarity(positions: Floats) -> tuple[Floats, dict[str, float]] | None:
    """Cosines between position embeddings [rows columns dim], and their summary; None if one is zero.

    Returns the cosine of all pairs of cells [rows columns rows columns], and numbers over pairs of two
    different cells: ``distance-rho``, Spearman's correlation of the cosine with the negated distance of the
    cells, and the mean cosine of pairs in the same ``row``, in the same ``column``, and of all ``other``
    pairs. A number without a value is left out.
    """
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
    rho = rank_correlation(pairs.round(TIED), -np.hypot(rows, columns))
    kinds = {"row": rows == 0, "column": columns == 0, "other": (rows > 0) & (columns > 0)}
    means = {kind: float(pairs[chosen].mean()) for kind, chosen in kinds.items() if chosen.any()}
    return cosine.reshape(*cells, *cells), ({} if isnan(rho) else {"distance-rho": rho}) | means
