"""Tokens without what they say of their position: a further reading of what a forward shows.

What the position looks like is asked of the backbone once for each size of images, by a black image of that
size, before the first batch of it (`tasks.metrics.spread`).
"""

from collections.abc import Collection
from dataclasses import replace

import torch
from torch import Tensor

from benchmark.extraction.collectors import MeasuredCollector, to_host
from benchmark.extraction.loading import Batch
from tasks.metrics.spread import debiased, position_basis
from tasks.task import Measurable
from zoo.features import LayerFeatures, Shown
from zoo.features.backbone import Backbone
from zoo.spec import Layer
from zoo.view.views import View


class DebiasedCollector(MeasuredCollector):
    """Feeds a task's measurers the grids of a pass without their position.

    ``components`` directions are removed, fewer where a layer has fewer; with none of them, grids are handed
    on as they are, bit for bit.
    """

    def __init__(
        self,
        measured: Measurable,
        view: View,
        layers: Collection[Layer],
        patch_size: int = 0,
        *,
        components: int,
    ) -> None:
        super().__init__(measured, view, layers, patch_size)
        self._components = components
        self._bases: dict[tuple[int, ...], dict[Layer, Tensor]] = {}

    def prepare(self, backbone: Backbone, pixels: Tensor) -> None:
        """Ask the backbone for its bases at the size of a batch, where that is a new one."""
        size = tuple(pixels.shape[2:])
        if self._components and size not in self._bases:
            self._bases[size] = self._position_bases(backbone, size)

    def _position_bases(self, backbone: Backbone, size: tuple[int, ...]) -> dict[Layer, Tensor]:
        """What the position looks like to a backbone, in images of one height and width in pixels.

        For each layer the leading directions [dim components] of its tokens of a black image that is shown
        alone, orthonormal; NaN where these are not finite, which the layer's measurer finds then.
        """
        tokens: dict[Layer, Tensor] = {}

        def keep(features: Shown) -> None:
            assert isinstance(features, LayerFeatures)  # no probabilities are asked for
            tokens[features.layer] = features.grid[0].flatten(0, 1).float().clone()

        backbone.visit(torch.zeros((1, 3, *size), dtype=torch.uint8), keep, self.layers)
        bases: dict[Layer, Tensor] = {}
        # the host waits here once a size, not once a layer, and finds the same directions for every device
        for layer, values in to_host(tokens).items():
            finite = bool(values.isfinite().all())
            unknown = torch.full((values.shape[1], 1), torch.nan)
            basis = position_basis(values, self._components) if finite else unknown
            bases[layer] = basis.to(tokens[layer].device)
        return bases

    def see(self, batch: Batch, features: Shown) -> None:
        """Hand on a layer of a batch without its position."""
        if self._components:
            assert isinstance(features, LayerFeatures)
            basis = self._bases[tuple(batch.pixels.shape[2:])][features.layer]
            if basis.shape[1]:
                features = replace(features, grid=debiased(features.grid.float(), basis))
        super().see(batch, features)
