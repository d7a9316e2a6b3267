"""Tokens without what they say of their position: a further reading of what a forward shows.

What the position looks like is asked of the backbone once for each size of images, by a black image of that
size, before the first batch of it (`tasks.metrics.debias`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmark.extraction.collectors import Collector, to_host
from benchmark.extraction.loading import Batch
from tasks.metrics.debias import debiased, position_basis
from zoo.features import Backbone, LayerFeatures, Shown
from zoo.spec import Layer

Size = tuple[int, int]
"""Height and width in pixels of what goes through a backbone: of an image, or of a tile."""


@dataclass(frozen=True)
class Bases:
    """What the position looks like to a backbone, in images of one size.

    Attributes:
        size: The size; at another one they say nothing.
        of_layer: For each layer [dim components], orthonormal; NaN where its tokens are not finite.
    """

    size: Size
    of_layer: Mapping[Layer, Tensor]

    @classmethod
    def ask(cls, backbone: Backbone, size: Size, layers: frozenset[Layer], components: int) -> "Bases":
        """Show a backbone a black image, alone, and keep the leading directions of each layer's tokens."""
        tokens: dict[Layer, Tensor] = {}

        def keep(shown: Shown) -> None:
            assert isinstance(shown, LayerFeatures)  # no probabilities are asked for
            tokens[shown.layer] = shown.grid[0].flatten(0, 1).float().clone()

        backbone.visit(torch.zeros((1, 3, *size), dtype=torch.uint8), keep, layers)
        # the host waits here once a size, not once a layer, and finds the same directions for every device
        found = {layer: _basis(one, components) for layer, one in to_host(tokens).items()}
        return cls(size, {layer: basis.to(tokens[layer].device) for layer, basis in found.items()})


class DebiasedCollector:
    """Shows a collector the layers of a pass with the position removed from their grids.

    With no directions to remove, grids are handed on as they are, bit for bit.

    Args:
        inner: Who listens.
        components: Directions that are removed, from 0; fewer where a layer has fewer.
    """

    def __init__(self, inner: Collector, components: int) -> None:
        self._inner = inner
        self._components = components
        self._bases: dict[Size, Bases] = {}

    @property
    def layers(self) -> frozenset[Layer]:
        """Layers that it wants to see."""
        return self._inner.layers

    def prepare(self, backbone: Backbone, pixels: Tensor) -> None:
        """Ask the backbone for its bases at the size of a batch, where that is a new one."""
        size = (pixels.shape[2], pixels.shape[3])
        if self._components and size not in self._bases:
            self._bases[size] = Bases.ask(backbone, size, self.layers, self._components)

    def see(self, batch: Batch, shown: Shown) -> None:
        """Hand on a layer of a batch without its position."""
        if not self._components:
            self._inner.see(batch, shown)
            return
        assert isinstance(shown, LayerFeatures)
        basis = self._bases[batch.pixels.shape[2], batch.pixels.shape[3]].of_layer[shown.layer]
        grid = debiased(shown.grid.float(), basis) if basis.shape[1] else shown.grid
        self._inner.see(batch, replace(shown, grid=grid))

    def again(self) -> frozenset[Layer]:
        """Layers that it was shown and has not used yet."""
        return self._inner.again()

    def finish(self, groups: range) -> dict[str, Tensor]:
        """Arrays of the shard."""
        return self._inner.finish(groups)


def _basis(tokens: Tensor, components: int) -> Tensor:
    """Directions of the position; NaN where tokens are not finite, which the layer's measurer finds then."""
    if not bool(tokens.isfinite().all()):
        return torch.full((tokens.shape[1], 1), torch.nan)
    return position_basis(tokens, components)
