"""Inspection of a network's first weights, without an image: its patch filters and its positions.

Source: Dosovitskiy et al., ICLR 2021, figure 7 (left and centre): principal components of the patch
embedding's filters, and the similarity of the position embeddings of the patches.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import Findings, LayerOutcome, Outcome, Score, digest
from tasks.metrics.arrays import Floats
from tasks.metrics.filters import (
    PositionSimilarity,
    PrincipalFilters,
    position_similarity,
    principal_filters,
)
from tasks.task import WeightsTask
from zoo.features import Weights
from zoo.spec import WHOLE_BACKBONE

FILTERS, POSITIONS = "filters", "positions"
"""Poolings of the records."""


@dataclass(frozen=True, slots=True)
class InspectConfig:
    """The numbers of inspection.

    Attributes:
        components: Principal components of the filters that are shown and whose variance is added up.
    """

    components: int


CONFIGS = {
    "standard": InspectConfig(components=28),
}
"""By name of the protocol."""


@dataclass(frozen=True, eq=False)
class InspectTask(WeightsTask):
    """What the first weights of a network look like.

    ``filter-rank``: effective number of principal components of the filters, as they act on RGB in [0, 1];
    ``filter-variance-28``: share of the variance in the first 28. ``position-distance-rho``: Spearman's
    correlation of the similarity of two positions with their nearness; ``position-row``, ``-column`` and
    ``-other``: mean cosine of pairs in one row, in one column, and of all others.
    """

    data: None
    config: InspectConfig
    configs = CONFIGS

    @cached_property
    def fingerprint(self) -> str:
        return digest("inspect", 1, self.config)

    def findings(self, weights: Weights, std: tuple[float, float, float]) -> Findings:
        """What the weights say about the backbone as a whole.

        Arrays, where there are such weights: ``filters`` [components height width 3] in [0, 1] and
        ``filter_variance`` [all components] shares; ``position_cosine`` [rows columns rows columns];
        ``position_bias`` as `Weights` has it.
        """
        filters = None if weights.filters is None else principal_filters(_scaled(weights.filters, std))
        positions = None if weights.positions is None else position_similarity(_array(weights.positions))
        outcomes = (
            LayerOutcome(WHOLE_BACKBONE, FILTERS, self._filters(weights, filters)),
            LayerOutcome(WHOLE_BACKBONE, POSITIONS, _positions(weights, positions)),
        )
        return Findings(outcomes, dict(self._arrays(weights, filters, positions)))

    def _filters(self, weights: Weights, found: PrincipalFilters | None) -> Outcome:
        if found is None or weights.filters is None:
            return Outcome((), empty=weights.reason.get("filters", "all filters are the same"))
        count = self.config.components
        values = {"filter-rank": found.rank, f"filter-variance-{count}": found.variance(count)}
        return _outcome(values, len(weights.filters), "filters")

    def _arrays(
        self, weights: Weights, filters: PrincipalFilters | None, positions: PositionSimilarity | None
    ) -> Iterator[tuple[str, NDArray[np.generic]]]:
        if filters is not None:
            yield "filters", filters.images[: self.config.components].astype(np.float32)
            yield "filter_variance", filters.shares
        if positions is not None:
            yield "position_cosine", positions.cosine.astype(np.float32)
        if weights.position_bias is not None:
            yield "position_bias", _array(weights.position_bias).astype(np.float32)


def _positions(weights: Weights, found: PositionSimilarity | None) -> Outcome:
    if found is None or weights.positions is None:
        reason = weights.reason.get("positions", "a position is zero and has no direction")
        return Outcome((), missing={"position-distance-rho": reason})
    values = {
        "position-distance-rho": found.distance_rho,
        "position-row": found.row,
        "position-column": found.column,
        "position-other": found.other,
    }
    rows, columns = weights.positions.shape[:2]
    there = {name: value for name, value in values.items() if value is not None}
    return _outcome(there, rows * columns, "positions")


def _outcome(values: Mapping[str, float], count: int, unit: str) -> Outcome:
    return Outcome(tuple(Score(name, value, count, unit) for name, value in values.items()))


def _scaled(filters: Tensor, std: tuple[float, float, float]) -> Floats:
    """Filters as they act on RGB in [0, 1]."""
    return _array(filters) / np.asarray(std, np.float64)[:, None, None]


def _array(weights: Tensor) -> Floats:
    return np.asarray(weights.detach().double().cpu().numpy(), np.float64)
