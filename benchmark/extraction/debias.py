"""Tokens without what they say of their position: a further reading of what a forward shows.

What the position looks like is asked of the backbone once for each size of images, by a black image of that
size, before the first batch of it (`tasks.metrics.spread`).
"""

from dataclasses import replace

import torch
from torch import Tensor

from benchmark.extraction.collectors import Collector, to_host
from benchmark.extraction.loading import Batch
from tasks.metrics.spread import debiased, position_basis
from zoo.features import LayerFeatures, Shown
from zoo.features.backbone import Backbone
from zoo.spec import Layer


class DebiasedCollector(Collector):
    """Shows a collector the layers of a pass with the position removed from their grids.

    With no directions to remove, grids are handed on as they are, bit for bit.

    Args:
        inner: Who listens.
        components: Directions that are removed, from 0; fewer where a layer has fewer.
    """

    def __init__(self, inner: Collector, components: int) -> None:
        self._inner = inner
        self._components = components
        self._bases: dict[tuple[int, int], dict[Layer, Tensor]] = {}

    @property
    def layers(self) -> frozenset[Layer]:
        return self._inner.layers

    def prepare(self, backbone: Backbone, pixels: Tensor) -> None:
        """Ask the backbone for its bases at the size of a batch, where that is a new one."""
        size = (pixels.shape[2], pixels.shape[3])
        if self._components and size not in self._bases:
            self._bases[size] = position_bases(backbone, size, self.layers, self._components)

    def see(self, batch: Batch, features: Shown) -> None:
        """Hand on a layer of a batch without its position."""
        if not self._components:
            self._inner.see(batch, features)
            return
        assert isinstance(features, LayerFeatures)
        basis = self._bases[batch.pixels.shape[2], batch.pixels.shape[3]][features.layer]
        grid = debiased(features.grid.float(), basis) if basis.shape[1] else features.grid
        self._inner.see(batch, replace(features, grid=grid))

    def again(self) -> frozenset[Layer]:
        return self._inner.again()

    def finish(self, groups: range) -> dict[str, Tensor]:
        return self._inner.finish(groups)


def position_bases(
    backbone: Backbone, size: tuple[int, int], layers: frozenset[Layer], components: int
) -> dict[Layer, Tensor]:
    """What the position looks like to a backbone, in images of one height and width in pixels.

    Returns:
        For each layer the leading directions [dim components] of its tokens of a black image that is shown
        alone, orthonormal; NaN where its tokens are not finite.
    """
    tokens: dict[Layer, Tensor] = {}

    def keep(features: Shown) -> None:
        assert isinstance(features, LayerFeatures)  # no probabilities are asked for
        tokens[features.layer] = features.grid[0].flatten(0, 1).float().clone()

    backbone.visit(torch.zeros((1, 3, *size), dtype=torch.uint8), keep, layers)
    # the host waits here once a size, not once a layer, and finds the same directions for every device
    bases = {layer: _basis(values, components) for layer, values in to_host(tokens).items()}
    return {layer: basis.to(tokens[layer].device) for layer, basis in bases.items()}


def _basis(tokens: Tensor, components: int) -> Tensor:
    """Directions of the position; NaN where tokens are not finite, which the layer's measurer finds then."""
    if not bool(tokens.isfinite().all()):
        return torch.full((tokens.shape[1], 1), torch.nan)
    return position_basis(tokens, components)
