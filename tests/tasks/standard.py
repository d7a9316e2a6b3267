"""The standard protocol's numbers, as the metrics take them, and propagation by a single layer."""

from dataclasses import fields

from torch import Tensor

from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.propagation.metric import Neighbourhood, Propagation

TEMPERATURE = config_of(STANDARD, "knn").temperature
KMEANS = {
    "seed": config_of(STANDARD, "cluster-image").seed,
    "n_init": config_of(STANDARD, "cluster-image").n_init,
}


def heard_by(config: Neighbourhood) -> dict[str, float]:
    """What a token listens to by a protocol's numbers, by name."""
    return {field.name: getattr(config, field.name) for field in fields(Neighbourhood)}


class LayerPropagation:
    """Carries the label map of one layer from frame to frame."""

    def __init__(self, first_features: Tensor, first_labels: Tensor, heard: Neighbourhood) -> None:
        self._propagation = Propagation({0: first_features}, first_labels, {0: (0,)}, [heard])

    def step(self, features: Tensor) -> Tensor:
        return self._propagation.step({0: features})[0][0]
