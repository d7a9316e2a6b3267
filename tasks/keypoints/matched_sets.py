"""Keypoints found again by several layers together: their unit tokens side by side.

The cosine of such tokens is the mean of the layers' cosines, and what is sampled or enlarged between tokens
is that of each layer, so every rule of matching holds for a set as it does for a layer.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from tasks.base import FINITE
from tasks.checks import varies
from tasks.fused import MIXED
from tasks.keypoints.matching import Grids, Matcher
from tasks.sets import members_of
from zoo.spec import Layer


class SetsMeasurer:
    """Matches all pairs of one category by each of several sets of layers.

    It keeps the grids of each layer once, however many sets the layer is in, until the last of them is
    finished.
    """

    def __init__(self, matcher: Matcher, sets: Sequence[Layer]) -> None:
        """Start a category.

        Args:
            matcher: How its pairs are matched.
            sets: The sets.
        """
        self._matcher = matcher
        self._left = list(sets)
        self._units: dict[Layer, dict[int, Tensor]] = {layer: {} for layer in members_of(sets)}
        self._varies: dict[Layer, list[Tensor]] = {layer: [] for layer in self._units}
        self._finite: dict[Layer, list[Tensor]] = {layer: [] for layer in self._units}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        """Keep the tokens of some images, of length 1."""
        self._varies[layer].append(varies(grids))
        self._finite[layer].append(grids.isfinite().all())
        self._units[layer] |= zip(positions, normalize(grids.float(), dim=-1), strict=True)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Distances over two lengths, [points] each, as of `CategoryMeasurer`; no examples."""
        self._left.remove(layer)
        try:
            matches = self._matcher.match(self._together(layer))
        finally:
            wanted = members_of(self._left)
            self._units = {one: kept for one, kept in self._units.items() if one in wanted}
        changing = [flag for one in layer.members for flag in self._varies[one]]
        finite = [flag for one in layer.members for flag in self._finite[one]]
        return {
            "error_box": matches.error_box,
            "error_image": matches.error_image,
            "least_box": matches.least_box,
            "varies": torch.stack(changing).any()[None] if changing else torch.tensor([False]),
            **({} if matches.pull is None else {"pull": matches.pull}),
            FINITE: torch.stack(finite) if finite else torch.tensor([True]),
        }

    def _together(self, layer: Layer) -> Grids:
        """The tokens of a set by position; raises ValueError where grids are of different sizes."""
        kept = [self._units[one] for one in layer.members]
        scale = math.sqrt(len(kept))
        grids = {}
        for position in kept[0]:
            parts = [one[position] for one in kept]
            if len({part.shape[:2] for part in parts}) > 1:
                raise ValueError(MIXED)
            grids[position] = torch.cat(parts, dim=-1) / scale
        return grids
