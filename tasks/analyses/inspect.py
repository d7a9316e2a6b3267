"""Inspection of a network's first weights, without images: patch filters and position embeddings.

Source: Dosovitskiy et al., ICLR 2021, figure 7 (left and centre): principal components of the patch
embedding's filters, and the similarity of the position embeddings of the patches.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.metrics.effective_rank import equal_shares
from layerboard.tasks.analyses.metrics.filters import position_similarity, principal_filters
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.framework.base import Findings, LayerOutcome, Outcome, Score, digest
from layerboard.tasks.framework.stored import MeasurableBackbone
from layerboard.tasks.framework.task import Task
from layerboard.tasks.metrics.arrays import Floats
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
    coverage = Coverage(())

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
