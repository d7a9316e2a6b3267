"""Means of a grid over the regions of an image, and which class the cells of each region show most.

Source: the weights of cells are those of the code of Walmer et al., CVPR 2023.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from tasks.datasets.coco import RegionImage
from tasks.metrics.cell_areas import cell_shares
from tasks.metrics.region_classes import shown_classes
from zoo.spec import Layer


def region_weights(mask: NDArray[np.uint8], grid: tuple[int, int]) -> NDArray[np.float32]:
    """Share of a region in each cell of a (height, width) grid, summing to 1; all zero where it vanishes.

    The mask (0 and 1) is resized as an 8-bit image, bicubic, as in the code of Walmer et al., CVPR 2023.
    """
    picture = Image.fromarray(mask * np.uint8(255)).resize((grid[1], grid[0]), Image.Resampling.BICUBIC)
    weights = np.asarray(picture, np.float32)
    total = weights.sum()
    return weights / total if total else weights


class RegionMeasurer:
    """Weighted means of one image's regions, and which class the cells of each show most.

    The weights, and what is shown, are shared by layers with the same grid.
    """

    def __init__(self, image: RegionImage) -> None:
        self._image = image
        self._masks: list[NDArray[np.uint8]] | None = None
        self._weights: dict[tuple[int, int], Tensor] = {}
        self._shown: dict[tuple[int, int], Tensor] = {}
        self._means: dict[Layer, dict[str, Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        """Take one image's grid [1 height width dim]; see `tasks.base.Measurer`."""
        del positions  # a group is one image
        grid = grids[0]
        size = (grid.shape[0], grid.shape[1])
        weights = self._resized(size, grid.device)
        means = weights.flatten(1) @ grid.float().flatten(0, 1)
        covered = weights.flatten(1).any(dim=1)
        shown = self._shown[size].clone()  # a file of tensors shares no memory among them
        self._means[layer] = {"mean": means, "covered": covered, "shown": shown}

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Of each region the mean [regions dim], whether any cell counts, and the class shown most."""
        return self._means.pop(layer)

    def _resized(self, grid: tuple[int, int], device: torch.device) -> Tensor:
        if grid not in self._weights:
            if self._masks is None:
                self._masks = [region.mask() for region in self._image.regions]
            stack = np.stack([region_weights(mask, grid) for mask in self._masks])
            self._weights[grid] = torch.from_numpy(stack).to(device)
            self._shown[grid] = torch.from_numpy(self._classes(stack, self._masks)).to(device)
        return self._weights[grid]

    def _classes(self, weights: NDArray[np.float32], masks: Sequence[NDArray[np.uint8]]) -> NDArray[np.int64]:
        """The class that the cells of each region show most: [regions]."""
        of_region = np.array([region.label for region in self._image.regions], np.int64)
        classes = np.unique(of_region)
        grid = (weights.shape[1], weights.shape[2])
        covered = (
            np.logical_or.reduce([mask for mask, own in zip(masks, of_region, strict=True) if own == label])
            for label in classes
        )
        shares = np.stack([cell_shares(mask, grid) for mask in covered])
        return np.asarray(classes[shown_classes(weights.astype(np.float64), shares)])
