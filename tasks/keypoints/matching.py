"""Matching of keypoints: all pairs of a category whose images were shown, in few large products.

Points of one source image are sampled together, and points of all pairs that share a target are searched
together. Where they lie is worked out once for all layers of one grid. Nothing here asks for a value of a
tensor on the device.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from tasks.base import FINITE
from tasks.checks import varies
from tasks.datasets.spair import KeypointPair
from tasks.keypoints.config import KeypointConfig
from tasks.keypoints.places import (
    Size,
    before_said,
    sayable,
    searched_area,
    source_places,
    stated,
    true_places,
)
from tasks.metrics.bilinear import Places, sampled
from tasks.metrics.correspondence import best_pixels, least_errors, searchable
from tasks.sets import MIXED, members_of
from zoo.spec import Layer
from zoo.view.views import View

Key = tuple[int, tuple[int, int]]
"""An image, by its index, and its width and height."""

Grids = Mapping[int, Tensor]
"""Grids of tokens [height width dim] by the position of their images."""


class KeptGrids:
    """The grids of one category's images, kept once for all that match them."""

    def __init__(self, users: int) -> None:
        """Keep none yet.

        Args:
            users: How many measurers take the grids of each layer.
        """
        self._users = users
        self._takes: dict[Layer, int] = {}
        self._grids: dict[Layer, dict[int, Tensor]] = {}

    def add(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        """Keep the tokens of some images, which another measurer may have given before."""
        known = self._grids.setdefault(layer, {})
        if all(position in known for position in positions):
            return
        for position, grid in zip(positions, grids.to(torch.float32, copy=True), strict=True):
            known[position] = grid

    def take(self, layer: Layer) -> Grids:
        """The grids of a layer by position; the last user's call lets go of them."""
        self._takes[layer] = self._takes.get(layer, 0) + 1
        return self._grids.pop(layer, {}) if self._takes[layer] == self._users else self._grids.get(layer, {})


class CategoryMeasurer:
    """Matches all pairs of one category once the grids of its images are there.

    Of a few pairs, the examples, it keeps the points that were found, too.
    """

    def __init__(self, matcher: "Matcher", examples: tuple[int, ...], kept: KeptGrids) -> None:
        """Start a category.

        Args:
            matcher: How its pairs are matched.
            examples: Places of the examples among the pairs, rising.
            kept: Where the grids are kept.
        """
        self._examples = examples
        self._matcher = matcher
        self._kept = kept
        self._varies: dict[Layer, list[Tensor]] = {}
        self._finite: dict[Layer, list[Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        self._varies.setdefault(layer, []).append(varies(grids))
        self._finite.setdefault(layer, []).append(grids.isfinite().all())
        self._kept.add(layer, positions, grids)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Distances over two lengths, [points] each, and the examples' points in image pixels, [points 2]."""
        matches = self._matcher.match(self._kept.take(layer))
        points = [matches.found[self._matcher.rows(row)] for row in self._examples]
        return {
            "error_box": matches.error_box,
            "error_image": matches.error_image,
            "varies": _together(self._varies.pop(layer, []), torch.any, torch.tensor([False])),
            "least_box": matches.least_box,
            "point": torch.cat([matches.found[:0], *points]).round(decimals=2).float(),
            **({} if matches.pull is None else {"pull": matches.pull}),
            FINITE: _together(self._finite.pop(layer, []), torch.all, torch.tensor([True])),
        }


@dataclass(frozen=True, slots=True)
class FoundPoints:
    """Where the points of all pairs are found, in the pairs' order.

    Attributes:
        found: [points 2] in pixels of the target images, float64.
        error_box: [points] distances to the true points, over the longer side of the target's box.
        error_image: [points] the same over the longer side of the target image.
        least_box: [points] distances from the true points to the nearest places that can be said, over the
            longer side of the target's box.
        pull: [points] shares of a soft arg-max that lie where similarities count as next to 0; None where the
            best place is taken.
    """

    found: Tensor
    error_box: Tensor
    error_image: Tensor
    least_box: Tensor
    pull: Tensor | None


class Matcher:
    """Matches all pairs of a category by one rule, for grids of any layer."""

    def __init__(
        self, pairs: Sequence[KeypointPair], images: Sequence[int], view: View, config: KeypointConfig
    ) -> None:
        """Join pairs with their images.

        Args:
            pairs: The pairs.
            images: Indices of the images that they need, in the order of their positions.
            view: How these are shown.
            config: How they are matched.
        """
        self._pairs = pairs
        self._config = config
        self._position = {index: position for position, index in enumerate(images)}
        self._view = view
        self._places: dict[tuple[str, Key, Size], Places] = {}
        self._nearest: dict[tuple[Size, ...], Tensor] = {}

    def match(self, grids: Grids) -> FoundPoints:
        """Find all points.

        Args:
            grids: Of all images by position, as the layer has them.
        """
        places, pull = self._found(grids)
        facts = self._facts.to(places.device, non_blocking=True)
        truth, scale, offset, in_image = (facts[row : row + 2].T for row in (0, 2, 4, 6))
        box, image = facts[8:]
        if self._by_image:
            points, error = places, torch.linalg.vector_norm(places - in_image, dim=1)
        elif self._isotropic:
            points = (places - offset) / scale
            error = torch.linalg.vector_norm(places - truth, dim=1) / scale[:, 0]
        else:
            points = (places - offset) / scale
            error = torch.linalg.vector_norm((places - truth) / scale, dim=1)
        sizes = {position: (grid.shape[0], grid.shape[1]) for position, grid in grids.items()}
        targets = tuple(sizes[self._position[pair.target]] for pair in self._pairs)
        least = self._least(targets).to(places.device, non_blocking=True)
        return FoundPoints(points, error / box, error / image, least / box, pull)

    def _least(self, targets: tuple[Size, ...]) -> Tensor:
        """Smallest distance in image pixels that can be reached for each point, [points] float64.

        Args:
            targets: Size of the target's grid of each pair.
        """
        if targets not in self._nearest:
            errors = [np.zeros(0)]
            for pair, size in zip(self._pairs, targets, strict=True):
                seen = stated(self._view, pair.target_size)
                _, truth = true_places(self._config, pair.target_points, seen)
                errors.append(least_errors(truth, *sayable(self._config, pair.target_size, seen, size)))
            self._nearest[targets] = torch.from_numpy(np.concatenate(errors))
        return self._nearest[targets]

    def _found(self, grids: Grids) -> tuple[Tensor, Tensor | None]:
        """The place of every point, and its pull: [points 2] and [points], in the pairs' order, float64.

        Places are in pixels of the target's view; of the target image where its pixels are searched.
        """
        if not len(self._facts.T):
            none = torch.zeros(0, 2, dtype=torch.float64)
            return none, None if self._config.soft is None else none[:, 0]
        # where only samples have length 1, no token is scaled
        as_is = self._config.unit == "samples" and self._config.upsampled
        once = grids if as_is else {position: normalize(grid, dim=-1) for position, grid in grids.items()}
        unit = once if as_is else {position: normalize(grid, dim=-1) for position, grid in once.items()}
        tokens = {"tokens": unit, "both": once, "samples": grids}[self._config.unit]
        vectors = torch.cat([self._sampled(tokens, key) for key in self._by_source])
        if self._config.unit != "tokens":
            vectors = normalize(vectors, dim=-1)
        by_target, by_pair = (
            order.to(vectors.device, non_blocking=True) for order in (self._from_sources, self._from_targets)
        )
        counts = [sum(self._counts(places)) for places in self._by_target.values()]
        parts = torch.split(vectors.index_select(0, by_target), counts)
        searched = [self._searched(unit, *each) for each in zip(self._by_target, parts, strict=True)]
        places = torch.cat([point for point, _ in searched]).index_select(0, by_pair)
        pulls = [pull for _, pull in searched if pull is not None]
        return places, torch.cat(pulls).index_select(0, by_pair).double() if pulls else None

    def _sampled(self, grids: Grids, source: Key) -> Tensor:
        """Features of all points that are asked for of a source image, pair after pair: [points dim]."""
        grid = grids[self._position[source[0]]]
        return sampled(
            grid, self._placed("source", source, grid), self._products(self._by_source[source], grid)
        )

    def _searched(self, grids: Grids, target: Key, vectors: Tensor) -> tuple[Tensor, Tensor | None]:
        """Places in a target image for the points of all pairs that share it, [points 2], and their pull."""
        tokens = grids[self._position[target[0]]]
        parts = torch.split(vectors, self._products(self._by_target[target], tokens))
        if self._config.upsampled:
            area = self._placed("target", target, tokens)
            prepared = searchable(tokens, area, scaled=self._config.unit != "tokens")
            return best_pixels(parts, prepared).double() + before_said(self._config, 1.0), None
        height, width, _ = tokens.shape
        maps = torch.cat([some @ tokens.flatten(0, 1).T for some in parts]).view(-1, height, width)
        pull: Tensor | None = None
        if self._config.soft is None:
            best = maps.flatten(1).argmax(1)
            point = torch.stack([best % width, best // width], 1)
        else:
            point, pull = self._config.soft.found(maps)
        cell = stated(self._view, target[1]).size[0] / width
        return point.double() * cell + before_said(self._config, cell), pull

    def _products(self, places: Sequence[int], grid: Tensor) -> list[int]:
        """How many points go into each product of the pairs that share an image.

        On a CPU each pair is a product of its own, so that what is found for it does not depend, in the last
        bits, on the others; they are small there beside the search. On a device they are one.
        """
        counts = self._counts(places)
        return counts if grid.is_cpu else [sum(counts)]

    def _counts(self, places: Sequence[int]) -> list[int]:
        return [len(self._pairs[row].source_points) for row in places]

    def _placed(self, role: str, image: Key, grid: Tensor) -> Places:
        """Where the points of a source lie on its grid, or the pixels to search on a target's."""
        size = (grid.shape[0], grid.shape[1])
        if (role, image, size) not in self._places:
            make = self._points_of if role == "source" else self._area_of
            self._places[role, image, size] = make(image, size).on(grid.device)
        return self._places[role, image, size]

    def _points_of(self, image: Key, size: Size) -> Places:
        points = np.concatenate([self._pairs[row].source_points for row in self._by_source[image]])
        return source_places(self._config, points, stated(self._view, image[1]), size)

    def _area_of(self, image: Key, size: Size) -> Places:
        return searched_area(self._config, image[1], stated(self._view, image[1]), size)

    @cached_property
    def _by_image(self) -> bool:
        """Whether pixels of the images themselves are searched."""
        return self._config.upsampled and self._config.search == "image pixels"

    @cached_property
    def _isotropic(self) -> bool:
        """Whether every view shows both axes at one scale."""
        scales = (stated(self._view, pair.target_size).scale for pair in self._pairs)
        return all(across == down for across, down in scales)

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
        return np.concatenate([rows[self.rows(row)] for places in groups.values() for row in places])

    def rows(self, place: int) -> slice:
        """Points of a pair among those of all pairs."""
        return slice(int(self._starts[place]), int(self._starts[place + 1]))

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(len(pair.source_points) for pair in self._pairs)])

    @cached_property
    def _facts(self) -> Tensor:
        """What is known of every point, float64 [10 points], in pixels.

        The true place in the target's view (x, y); scale and offset of that view (x, y of each); the true
        place in the target image (x, y); the longer side of the target's box and of the target image, in
        pixels of the image.
        """
        facts = [np.zeros((10, 0))]
        for pair in self._pairs:
            seen, (left, top, right, bottom) = stated(self._view, pair.target_size), pair.target_box
            alike = np.array([*seen.scale, *seen.offset], np.float64)
            lengths = np.array([max(right - left, bottom - top), max(pair.target_size)], np.float64)
            in_view, in_image = true_places(self._config, pair.target_points, seen)
            repeated = [np.tile(numbers[:, None], len(in_view)) for numbers in (alike, lengths)]
            facts.append(np.concatenate([in_view.T, repeated[0], in_image.T, repeated[1]]))
        return torch.from_numpy(np.concatenate(facts, axis=1))


def _grouped(keys: Sequence[Key]) -> dict[Key, list[int]]:
    """Places of each key, in the order in which keys come first."""
    groups: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    return groups


def _together(flags: Sequence[Tensor], how: Callable[[Tensor], Tensor], none: Tensor) -> Tensor:
    """Flags [] of all batches as one, [1]."""
    return how(torch.stack(list(flags)))[None] if flags else none


class KeypointSetsMeasurer:
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
            self._units = {member: tokens for member, tokens in self._units.items() if member in wanted}
        changing = [flag for member in layer.members for flag in self._varies[member]]
        finite = [flag for member in layer.members for flag in self._finite[member]]
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
        layers = [self._units[member] for member in layer.members]
        scale = math.sqrt(len(layers))
        grids = {}
        for position in layers[0]:
            parts = [tokens[position] for tokens in layers]
            if len({part.shape[:2] for part in parts}) > 1:
                raise ValueError(MIXED)
            grids[position] = torch.cat(parts, dim=-1) / scale
        return grids
