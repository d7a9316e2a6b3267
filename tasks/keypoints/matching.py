"""Matching of keypoints: all pairs of a category whose images were shown, in few large products.

Points of one source image are sampled together, and points of all pairs that share a target are searched
together. Where they lie is worked out once for all layers of one grid. Nothing here asks for a value of a
tensor on the device.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tasks.base import FINITE
from tasks.checks import varies
from tasks.datasets.spair import KeypointPair
from tasks.keypoints import places
from tasks.keypoints.config import KeypointConfig
from tasks.keypoints.places import Size, before_said, stated
from tasks.metrics.bilinear import Places, sampled
from tasks.metrics.correspondence import best_pixels, least_errors, searchable
from tasks.sets import MIXED, members_of
from zoo.spec import Layer
from zoo.view.views import View

Key = tuple[int, tuple[int, int]]  # an image, by its index, and its width and height
Grids = Mapping[int, Tensor]  # of tokens [height width dim], by the position of their images
Flags = tuple[Tensor, Tensor]  # [] each, whether the grids of a batch vary, and whether they are finite


class KeptGrids:
    """The grids of one category's images, kept once for so many measurers that match them."""

    def __init__(self, users: int) -> None:
        self._users = users
        self._takes: dict[Layer, int] = {}
        self._grids: dict[Layer, dict[int, Tensor]] = {}

    def add(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        """Keep the tokens of some images, which another measurer may have given before."""
        known = self._grids.setdefault(layer, {})
        if not all(position in known for position in positions):
            known |= zip(positions, grids.to(torch.float32, copy=True), strict=True)

    def take(self, layer: Layer) -> Grids:
        """The grids of a layer by position; the last user's call lets go of them."""
        self._takes[layer] = self._takes.get(layer, 0) + 1
        return self._grids.pop(layer, {}) if self._takes[layer] == self._users else self._grids.get(layer, {})


@dataclass(frozen=True, slots=True)
class FoundPoints:
    """Where the points of all pairs are found, in the pairs' order; distances are to the true points."""

    found: Tensor  # [points 2] in pixels of the target images, float64
    error_box: Tensor  # [points] distances over the longer side of the target's box
    error_image: Tensor  # [points] the same over the longer side of the target image
    least_box: Tensor  # [points] from the nearest places that can be said, over the longer side of the box
    pull: Tensor | None  # [points] shares of a soft arg-max where similarities count as next to 0

    def arrays(self, flags: Sequence[Flags]) -> dict[str, Tensor]:
        """What is kept of a category beside points; flags of batches say whether its grids can be used."""
        changing, finite = zip(*flags or [(torch.tensor(False), torch.tensor(True))], strict=True)
        return {
            "error_box": self.error_box,
            "error_image": self.error_image,
            "varies": torch.stack(changing).any()[None],
            "least_box": self.least_box,
            **({} if self.pull is None else {"pull": self.pull}),
            FINITE: torch.stack(finite),
        }


class Matcher:
    """Matches all pairs of a category by one rule, for grids of any layer.

    ``images`` are indices of the images that the pairs need, in the order of their positions.
    """

    def __init__(
        self, pairs: Sequence[KeypointPair], images: Sequence[int], view: View, config: KeypointConfig
    ) -> None:
        self._pairs = pairs
        self._config = config
        self._position = {index: position for position, index in enumerate(images)}
        self._view = view
        self._places: dict[tuple[bool, Key, Size], Places] = {}
        self._nearest: dict[tuple[Size, ...], Tensor] = {}
        self._by_source: dict[Key, list[int]] = {}  # places of the pairs that share an image
        self._by_target: dict[Key, list[int]] = {}
        for row, pair in enumerate(pairs):
            self._by_source.setdefault((pair.source, pair.source_size), []).append(row)
            self._by_target.setdefault((pair.target, pair.target_size), []).append(row)
        self._counts = [len(pair.source_points) for pair in pairs]
        self._starts = np.cumsum([0, *self._counts])

    def match(self, grids: Grids) -> FoundPoints:
        """Find all points, by the grids of all images as the layer has them."""
        found, pull = self._found(grids)
        facts = self._facts.to(found.device, non_blocking=True)
        truth, scale, offset, in_image = (facts[row : row + 2].T for row in (0, 2, 4, 6))
        box, image = facts[8:]
        if self._config.in_image:
            points, error = found, torch.linalg.vector_norm(found - in_image, dim=1)
        else:
            points = (found - offset) / scale
            if torch.equal(self._facts[2], self._facts[3]):  # every view shows both axes at one scale
                error = torch.linalg.vector_norm(found - truth, dim=1) / scale[:, 0]
            else:
                error = torch.linalg.vector_norm((found - truth) / scale, dim=1)
        sizes = {position: (grid.shape[0], grid.shape[1]) for position, grid in grids.items()}
        targets = tuple(sizes[self._position[pair.target]] for pair in self._pairs)
        least = self._least(targets).to(found.device, non_blocking=True)
        return FoundPoints(points, error / box, error / image, least / box, pull)

    def _least(self, targets: tuple[Size, ...]) -> Tensor:
        """Smallest distance in image pixels that can be reached for each point, [points] float64.

        It is that of grids of those sizes of the pairs' targets.
        """
        if targets not in self._nearest:
            errors = [np.zeros(0)]
            for pair, size in zip(self._pairs, targets, strict=True):
                seen = stated(self._view, pair.target_size)
                _, truth = places.true_places(self._config, pair.target_points, seen)
                axes = places.sayable(self._config, pair.target_size, seen, size)
                errors.append(least_errors(truth, *axes))
            self._nearest[targets] = torch.from_numpy(np.concatenate(errors))
        return self._nearest[targets]

    def _found(self, grids: Grids) -> tuple[Tensor, Tensor | None]:
        """The place of every point, and its pull: [points 2] and [points], in the pairs' order, float64.

        Places are in pixels of the target's view; of the target image where its pixels are searched.
        """
        if not self._starts[-1]:
            none = torch.zeros(0, 2, dtype=torch.float64)
            return none, None if self._config.soft is None else none[:, 0]
        # where only samples have length 1, no token is scaled
        as_is = self._config.unit == "samples" and self._config.upsampled
        once = grids if as_is else {position: normalize(grid, dim=-1) for position, grid in grids.items()}
        unit = once if as_is else {position: normalize(grid, dim=-1) for position, grid in once.items()}
        tokens = {"tokens": unit, "both": once, "samples": grids}[self._config.unit]
        asked = []
        for source, rows in self._by_source.items():
            grid = tokens[self._position[source[0]]]
            asked.append(sampled(grid, self._placed(source, grid, source=True), self._products(rows, grid)))
        vectors = torch.cat(asked)
        if self._config.unit != "tokens":
            vectors = normalize(vectors, dim=-1)
        by_target, by_pair = (order.to(vectors.device, non_blocking=True) for order in self._orders)
        counts = [sum(self._counts[row] for row in rows) for rows in self._by_target.values()]
        parts = torch.split(vectors.index_select(0, by_target), counts)
        searched = [self._searched(unit, *each) for each in zip(self._by_target, parts, strict=True)]
        points = torch.cat([point for point, _ in searched]).index_select(0, by_pair)
        pulls = [pull for _, pull in searched if pull is not None]
        return points, torch.cat(pulls).index_select(0, by_pair).double() if pulls else None

    def _searched(self, grids: Grids, target: Key, vectors: Tensor) -> tuple[Tensor, Tensor | None]:
        """Places in a target image for the points of all pairs that share it, [points 2], and their pull."""
        tokens = grids[self._position[target[0]]]
        parts = torch.split(vectors, self._products(self._by_target[target], tokens))
        if self._config.upsampled:
            area = self._placed(target, tokens, source=False)
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

    def _products(self, rows: Sequence[int], grid: Tensor) -> list[int]:
        """How many points go into each product of the pairs that share an image.

        On a CPU each pair is a product of its own, so that what is found for it does not depend, in the last
        bits, on the others; they are small there beside the search. On a device they are one.
        """
        counts = [self._counts[row] for row in rows]
        return counts if grid.is_cpu else [sum(counts)]

    def _placed(self, image: Key, grid: Tensor, *, source: bool) -> Places:
        """Where the points of a source lie on its grid, or the pixels to search on a target's."""
        size = (grid.shape[0], grid.shape[1])
        if (source, image, size) not in self._places:
            seen = stated(self._view, image[1])
            if source:
                points = np.concatenate([self._pairs[row].source_points for row in self._by_source[image]])
                there = places.source_places(self._config, points, seen, size)
            else:
                there = places.searched_area(self._config, image[1], seen, size)
            self._places[source, image, size] = there.on(grid.device)
        return self._places[source, image, size]

    @cached_property
    def _orders(self) -> tuple[Tensor, Tensor]:
        """For each point: of targets, its place in the order of the sources; of pairs, in that of targets."""
        sources, targets = (
            np.concatenate([np.arange(self._starts[-1])[self.rows(row)] for rows in each for row in rows])
            for each in (self._by_source.values(), self._by_target.values())
        )
        return torch.from_numpy(np.argsort(sources)[targets]), torch.from_numpy(np.argsort(targets))

    def rows(self, place: int) -> slice:
        """Points of a pair among those of all pairs."""
        return slice(int(self._starts[place]), int(self._starts[place + 1]))

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
            in_view, in_image = places.true_places(self._config, pair.target_points, seen)
            lengths = max(right - left, bottom - top), max(pair.target_size)
            alike, sides = (
                np.tile(np.array(numbers, np.float64)[:, None], len(in_view))
                for numbers in ((*seen.scale, *seen.offset), lengths)
            )
            facts.append(np.concatenate([in_view.T, alike, in_image.T, sides]))
        return torch.from_numpy(np.concatenate(facts, axis=1))


class CategoryMeasurer:
    """Matches all pairs of one category once the grids of its images are there.

    Of a few pairs, the examples, it keeps the points that were found, too; their places among the pairs rise.
    """

    def __init__(self, matcher: Matcher, examples: tuple[int, ...], kept: KeptGrids) -> None:
        self._examples = examples
        self._matcher = matcher
        self._kept = kept
        self._flags: dict[Layer, list[Flags]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        self._flags.setdefault(layer, []).append((varies(grids), grids.isfinite().all()))
        self._kept.add(layer, positions, grids)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Distances over two lengths, [points] each, and the examples' points in image pixels, [points 2]."""
        matches = self._matcher.match(self._kept.take(layer))
        points = [matches.found[self._matcher.rows(row)] for row in self._examples]
        there = {"point": torch.cat([matches.found[:0], *points]).round(decimals=2).float()}
        return matches.arrays(self._flags.pop(layer, [])) | there


class KeypointSetsMeasurer:
    """Matches all pairs of one category by sets of layers; it keeps grids until their last set is done."""

    def __init__(self, matcher: Matcher, sets: Sequence[Layer]) -> None:
        self._matcher = matcher
        self._left = list(sets)
        self._units: dict[Layer, dict[int, Tensor]] = {layer: {} for layer in members_of(sets)}
        self._flags: dict[Layer, list[Flags]] = {layer: [] for layer in self._units}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        self._flags[layer].append((varies(grids), grids.isfinite().all()))
        self._units[layer] |= zip(positions, normalize(grids.float(), dim=-1), strict=True)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        self._left.remove(layer)
        try:
            matches = self._matcher.match(self._together(layer))
        finally:
            wanted = members_of(self._left)
            self._units = {member: tokens for member, tokens in self._units.items() if member in wanted}
        return matches.arrays([flags for member in layer.members for flags in self._flags[member]])

    def _together(self, layer: Layer) -> Grids:
        """The tokens of a set by position; raises ValueError where grids are of different sizes."""
        layers = [self._units[member] for member in layer.members]
        grids = {}
        for position in layers[0]:
            parts = [tokens[position] for tokens in layers]
            if len({part.shape[:2] for part in parts}) > 1:
                raise ValueError(MIXED)
            grids[position] = torch.cat(parts, dim=-1) / math.sqrt(len(layers))
        return grids
