"""Matching of keypoints: all pairs of a category whose images were shown, in few large products.

Points of one source image are sampled together, and points of all pairs that share a target are searched
together. Where they lie is worked out once for all layers of one grid. Nothing here asks for a value of a
tensor on the device.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from tasks.base import FINITE
from tasks.checks import varies
from tasks.datasets.base import KeypointPair
from tasks.metrics.bilinear import (
    Places,
    official_places,
    official_search,
    point_places,
    sampled,
    searched_places,
)
from tasks.metrics.correspondence import best_pixels, searchable
from zoo.spec import Layer
from zoo.view.geometry import Geometry
from zoo.view.views import View

Key = tuple[int, tuple[int, int]]
"""An image, by its index, and its width and height."""

Size = tuple[int, int]
"""Height and width of a grid of tokens."""


class CategoryMeasurer:
    """Keeps the grids of one category's images and matches all of its pairs at the end.

    Of a few pairs, the examples, it keeps the points that were found, too.
    """

    def __init__(
        self,
        pairs: tuple[KeypointPair, ...],
        images: tuple[int, ...],
        view: View,
        whole_pixels: bool,
        examples: tuple[int, ...],
    ) -> None:
        """Start a category.

        Args:
            pairs: Its pairs.
            images: Indices of the images that they need, in the order in which they are shown.
            view: How they are shown.
            whole_pixels: As of `tasks.keypoints.KeypointRule`.
            examples: Places of the examples among the pairs, rising.
        """
        self._pairs = pairs
        self._examples = examples
        self._whole_pixels = whole_pixels
        self._position = {index: position for position, index in enumerate(images)}
        self._view = view
        self._grids: dict[Layer, dict[int, Tensor]] = {}
        self._varies: dict[Layer, list[Tensor]] = {}
        self._finite: dict[Layer, list[Tensor]] = {}
        self._places: dict[tuple[str, Key, Size], Places] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        """Keep the tokens of some images, of length 1."""
        self._varies.setdefault(layer, []).append(varies(grids))
        self._finite.setdefault(layer, []).append(grids.isfinite().all())
        kept = self._grids.setdefault(layer, {})
        for position, grid in zip(positions, normalize(grids.float(), dim=-1), strict=True):
            kept[position] = grid

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Distances over two lengths, [points] each, and the examples' points in image pixels, [points 2]."""
        found = self._found(self._grids.pop(layer, {}))
        facts = self._facts.to(found.device, non_blocking=True)
        truth, scale, offset, (box, image) = facts[:2].T, facts[2:4].T, facts[4:6].T, facts[6:]
        error = torch.linalg.vector_norm(found - truth, dim=1) / scale[:, 0]
        in_image = (found - offset) / scale
        shown = [in_image[self._rows(place)] for place in self._examples]
        return {
            "error_box": error / box,
            "error_image": error / image,
            "varies": _together(self._varies.pop(layer, []), torch.any, torch.tensor([False])),
            "point": torch.cat([in_image[:0], *shown]).round(decimals=2).float(),
            FINITE: _together(self._finite.pop(layer, []), torch.all, torch.tensor([True])),
        }

    def _found(self, grids: Mapping[int, Tensor]) -> Tensor:
        """The best place of every point in the target's view, in the pairs' order: [points 2], float64."""
        if not len(self._facts.T):
            return torch.zeros(0, 2, dtype=torch.float64)
        unit = {position: normalize(grid, dim=-1) for position, grid in grids.items()}
        shown = unit if self._whole_pixels else grids
        vectors = torch.cat([self._sampled(shown, key) for key in self._by_source])
        if not self._whole_pixels:
            vectors = normalize(vectors, dim=-1)
        by_target, by_pair = (
            order.to(vectors.device, non_blocking=True) for order in (self._from_sources, self._from_targets)
        )
        counts = [
            sum(len(self._pairs[place].source_points) for place in places)
            for places in self._by_target.values()
        ]
        parts = torch.split(vectors.index_select(0, by_target), counts)
        found = [self._searched(unit, *each) for each in zip(self._by_target, parts, strict=True)]
        pixels = torch.cat(found).index_select(0, by_pair).double()
        return pixels if self._whole_pixels else pixels + 0.5

    def _sampled(self, grids: Mapping[int, Tensor], source: Key) -> Tensor:
        """Features of all points that are asked for of a source image, pair after pair: [points dim]."""
        grid = grids[self._position[source[0]]]
        return sampled(
            grid, self._placed("source", source, grid), self._products(self._by_source[source], grid)
        )

    def _searched(self, grids: Mapping[int, Tensor], target: Key, vectors: Tensor) -> Tensor:
        """Best pixels of a target image for the points of all pairs that share it: [points 2]."""
        tokens = grids[self._position[target[0]]]
        area = self._placed("target", target, tokens)
        prepared = searchable(tokens, area, scaled=not self._whole_pixels)
        parts = self._products(self._by_target[target], tokens)
        return best_pixels(torch.split(vectors, parts), prepared)

    def _products(self, places: Sequence[int], grid: Tensor) -> list[int]:
        """How many points go into each product of the pairs that share an image.

        On a CPU each pair is a product of its own, so that what is found for it does not depend, in the last
        bits, on the others; they are small there beside the search. On a device they are one.
        """
        counts = self._counts(places)
        return counts if grid.is_cpu else [sum(counts)]

    def _counts(self, places: Sequence[int]) -> list[int]:
        return [len(self._pairs[place].source_points) for place in places]

    def _placed(self, role: str, image: Key, grid: Tensor) -> Places:
        """Where the points of a source lie on its grid, or the pixels to search on a target's."""
        size = (grid.shape[0], grid.shape[1])
        if (role, image, size) not in self._places:
            make = self._points_of if role == "source" else self._area_of
            self._places[role, image, size] = make(image, size).on(grid.device)
        return self._places[role, image, size]

    def _points_of(self, image: Key, size: Size) -> Places:
        seen, side = self._view.geometry(image[1]), self._view.geometry(image[1]).size[0]
        points = np.concatenate([self._pairs[place].source_points for place in self._by_source[image]])
        if self._whole_pixels:
            pixels = torch.from_numpy(in_single_precision(points, seen))
            return official_places(pixels.clamp(0, side - 1), size, side)
        return point_places(torch.from_numpy(seen.to_view(points)), size, side / size[0])

    def _area_of(self, image: Key, size: Size) -> Places:
        seen = self._view.geometry(image[1])
        if self._whole_pixels:
            return official_search(seen.size[0], size)
        return searched_places(seen.size[0], size, seen.content)

    @cached_property
    def _by_source(self) -> dict[Key, list[int]]:
        """Places of the pairs that share a source image."""
        return _grouped([(pair.source, pair.source_size) for pair in self._pairs])

    @cached_property
    def _by_target(self) -> dict[Key, list[int]]:
        """Places of the pairs that share a target image."""
        return _grouped([(pair.target, pair.target_size) for pair in self._pairs])

    @cached_property
    def _from_sources(self) -> Tensor:
        """For each point in the order of the targets, its place in the order of the sources."""
        return torch.from_numpy(np.argsort(self._order(self._by_source))[self._order(self._by_target)])

    @cached_property
    def _from_targets(self) -> Tensor:
        """For each point in the order of the pairs, its place in the order of the targets."""
        return torch.from_numpy(np.argsort(self._order(self._by_target)))

    def _order(self, groups: Mapping[Key, list[int]]) -> NDArray[np.int64]:
        """Places of the points in the order of the pairs, group by group."""
        rows = np.arange(self._starts[-1])
        return np.concatenate([rows[self._rows(place)] for places in groups.values() for place in places])

    def _rows(self, place: int) -> slice:
        """Points of a pair among those of all pairs."""
        return slice(int(self._starts[place]), int(self._starts[place + 1]))

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(len(pair.source_points) for pair in self._pairs)])

    @cached_property
    def _facts(self) -> Tensor:
        """Of every point, float64 [8 points], in pixels.

        The true place in the target's view (x, y); scale and offset of that view (x, y of each); the longer
        side of the target's box and of the target image, in pixels of the image.
        """
        facts = [np.zeros((8, 0))]
        for pair in self._pairs:
            seen, (left, top, right, bottom) = self._view.geometry(pair.target_size), pair.target_box
            lengths = (max(right - left, bottom - top), max(pair.target_size))
            alike = np.array([*seen.scale, *seen.offset, *lengths], np.float64)
            truth = seen.to_view(pair.target_points).T
            facts.append(np.concatenate([truth, np.tile(alike[:, None], truth.shape[1])]))
        return torch.from_numpy(np.concatenate(facts, axis=1))


def in_single_precision(points: NDArray[np.float64], geometry: Geometry) -> NDArray[np.float32]:
    """Points [n 2] of an image in its view, float32 after each step, as the published code has them."""
    scale, offset = (np.asarray(numbers, np.float32) for numbers in (geometry.scale, geometry.offset))
    return points.astype(np.float32) * scale + offset


def _grouped(keys: Sequence[Key]) -> dict[Key, list[int]]:
    """Places of each key, in the order in which keys come first."""
    groups: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    return groups


def _together(flags: Sequence[Tensor], how: Callable[[Tensor], Tensor], none: Tensor) -> Tensor:
    """Flags [] of all batches as one, [1]."""
    return how(torch.stack(list(flags)))[None] if flags else none
