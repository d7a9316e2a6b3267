"""Inspection of a network's first weights, without images: patch filters and position embeddings.

Source: Dosovitskiy et al., ICLR 2021, figure 7 (left and centre): principal components of the patch
embedding's filters, and the similarity of the position embeddings of the patches.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.label_free import equal_shares
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.framework.base import Findings, LayerOutcome, Outcome, Score, digest
from layerboard.tasks.framework.stored import MeasurableBackbone
from layerboard.tasks.framework.task import Task
from layerboard.tasks.metrics.arrays import ROUNDING, Floats
from layerboard.tasks.statistics.rank_correlation import rank_correlation
from layerboard.zoo.features import Weights
from layerboard.zoo.spec import WHOLE_BACKBONE

Found = tuple[Outcome, dict[str, NDArray[np.generic]]]  # scores, and arrays that are kept


@dataclass(frozen=True, slots=True)
class InspectConfig:
    """The numbers of inspection."""

    components: int  # number of principal components that are shown and whose variance is summed


class InspectTask(Task):
    """Patch filters and position embeddings of a network.

    ``filter-rank``: effective number of principal components of the filters, as they act on RGB in [0, 1];
    ``filter-variance-28``: share of the variance in the first 28. ``position-distance-rho``: Spearman's
    correlation of the similarity of two positions with their nearness; ``position-row``, ``-column`` and
    ``-other``: mean cosine of pairs in one row, in one column, and of all others.
    """

    config: InspectConfig
    configs: ClassVar = {"standard": InspectConfig(components=28)}
    needs = "backbone"
    dataset = "weights"
    split = ""
    coverage = Coverage()

    @cached_property
    def fingerprint(self) -> str:
        return digest("inspect", 1, self.config)

    def results(self, backbone: MeasurableBackbone) -> Findings:
        """Findings for the whole backbone, whose normalisation divides RGB in [0, 1] by its std."""
        weights = backbone.weights()
        filters, arrays = self._filters(weights, np.asarray(backbone.spec.std, np.float64))
        positions, cosines = _positions(weights)
        arrays |= cosines
        if weights.position_bias is not None:
            arrays["position_bias"] = _array(weights.position_bias).astype(np.float32)
        outcomes = (("filters", filters), ("positions", positions))
        return Findings(tuple(LayerOutcome(WHOLE_BACKBONE, *outcome) for outcome in outcomes), arrays)

    def _filters(self, weights: Weights, std: Floats) -> Found:
        """Scores and arrays of the filters as they act on RGB in [0, 1]."""
        scaled = None if weights.filters is None else _array(weights.filters) / std[:, None, None]
        components = None if scaled is None else principal_filters(scaled)
        if scaled is None or components is None:
            return Outcome((), empty=weights.reason.get("filters", "all filters are the same")), {}
        (shares, images), count = components, self.config.components
        values = {
            "filter-rank": equal_shares(shares),
            f"filter-variance-{count}": float(shares[:count].sum()),
        }
        drawn = images[:count].astype(np.float32)
        return _outcome(values, len(scaled), "filters"), {"filters": drawn, "filter_variance": shares}


def _positions(weights: Weights) -> Found:
    embeddings = None if weights.positions is None else _array(weights.positions)
    similarity = None if embeddings is None else position_similarity(embeddings)
    if embeddings is None or similarity is None:
        reason = weights.reason.get("positions", "a position embedding is zero, so it has no cosine")
        return Outcome((), missing={"position-distance-rho": reason}), {}
    cosine, values = similarity
    named = {f"position-{name}": value for name, value in values.items()}
    count = embeddings.shape[0] * embeddings.shape[1]
    return _outcome(named, count, "positions"), {"position_cosine": cosine.astype(np.float32)}


def _outcome(values: Mapping[str, float], count: int, unit: str) -> Outcome:
    return Outcome(tuple(Score(name, value, count, unit) for name, value in values.items()))


def _array(weights: Tensor) -> Floats:
    return np.asarray(weights.detach().double().cpu().numpy(), np.float64)


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
    places = np.divmod(np.arange(len(flat)), cells[1])
    rows, columns = (np.abs(index[first] - index[second]) for index in places)
    rho = rank_correlation(pairs.round(TIED), -np.hypot(rows, columns))
    kinds = {"row": rows == 0, "column": columns == 0, "other": (rows > 0) & (columns > 0)}
    means = {kind: float(pairs[chosen].mean()) for kind, chosen in kinds.items() if chosen.any()}
    return cosine.reshape(*cells, *cells), ({} if isnan(rho) else {"distance-rho": rho}) | means
