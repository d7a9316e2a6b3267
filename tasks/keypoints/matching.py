"""Matching of keypoints: all pairs of a category, in a few large products.

Points of one source image are sampled together, and points of all pairs with the same target are searched
together. Their positions are computed once for all layers with equal grids. Nothing here waits for the
device.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from layerboard.tasks.datasets.spair import KeypointPair
from layerboard.tasks.framework.checks import LayerFlags
from layerboard.tasks.framework.measurers import TokenMeasurer
from layerboard.tasks.keypoints import places
from layerboard.tasks.keypoints.config import KeypointConfig
from layerboard.tasks.keypoints.correspondence import best_pixels, least_errors
from layerboard.tasks.keypoints.places import Size, point_geometry, predicted_offset
from layerboard.tasks.metrics.bilinear import Places, sampled
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

Key = tuple[int, tuple[int, int]]  # an image, by its index, and its width and height
Grids = Mapping[int, Tensor]  # of tokens [height width dim], by the position of the image


class Matcher:
    """Matches all pairs of a category by one rule, for the grids of any layer.

    ``images`` are the indices of the images of the pairs, in the order of their positions.
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
        self._by_source: dict[Key, list[int]] = {}  # indices of the pairs that share an image
        self._by_target: dict[Key, list[int]] = {}
        for row, pair in enumerate(pairs):
            self._by_source.setdefault((pair.source, pair.source_size), []).append(row)
            self._by_target.setdefault((pair.target, pair.target_size), []).append(row)
        self._counts = [len(pair.source_points) for pair in pairs]
        self._starts = np.cumsum([0, *self._counts])

    def match(self, grids: Grids) -> dict[str, Tensor]:
        """Match all points, with a layer's grids of all images.

        Returns, with points in the order of their pairs: ``point`` [points 2], the matches, float64 in pixels
        of the target images; ``error_box`` and ``error_image`` [points], the distances to the true points,
        divided by the longer side of the target's box and of its image; ``least_box`` [points], the distances
        from the nearest possible predictions, divided by that of the box; and, for a soft arg-max, ``pull``
        [points], the share of the weight where similarities are set to nearly 0.
        """
        if not self._pairs:
            return {"point": torch.zeros(0, 2)}
        found, pull = self._found(grids)
        facts = self._facts.to(found.device, non_blocking=True)
        truth, scale, offset, in_image = (facts[row : row + 2].T for row in (0, 2, 4, 6))
        box, image = facts[8:]
        if self._config.in_image:
            points, error = found, torch.linalg.vector_norm(found - in_image, dim=1)
        else:
            points = (found - offset) / scale
            if torch.equal(self._facts[2], self._facts[3]):  # every view has one scale for both axes
                error = torch.linalg.vector_norm(found - truth, dim=1) / scale[:, 0]
            else:
                error = torch.linalg.vector_norm((found - truth) / scale, dim=1)
        sizes = {position: (grid.shape[0], grid.shape[1]) for position, grid in grids.items()}
        targets = tuple(sizes[self._position[pair.target]] for pair in self._pairs)
        least = self._least(targets).to(found.device, non_blocking=True)
        errors = {"error_box": error / box, "error_image": error / image, "least_box": least / box}
        return {"point": points, **errors, **({} if pull is None else {"pull": pull})}

    def _least(self, targets: tuple[Size, ...]) -> Tensor:
        """Smallest possible distance in image pixels for each point, [points] float64.

        ``targets`` are the grid sizes of the pairs' targets.
        """
        if targets not in self._nearest:
            errors = [np.zeros(0)]
            for pair, size in zip(self._pairs, targets, strict=True):
                seen = point_geometry(self._view, pair.target_size)
                _, truth = places.true_places(self._config, pair.target_points, seen)
                axes = places.predictable_axes(self._config, pair.target_size, seen, size)
                errors.append(least_errors(truth, *axes))
            self._nearest[targets] = torch.from_numpy(np.concatenate(errors))
        return self._nearest[targets]

    def _found(self, grids: Grids) -> tuple[Tensor, Tensor | None]:
        """Match of every point [points 2], and its pull [points], in the order of the pairs, float64.

        Matches are in pixels of the target's view, or of the target image if its pixels are searched.
        """
        # if only samples are normalised, tokens are not scaled
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
        """Matches in a target image for the points of all pairs that share it, [points 2], and their pull."""
        tokens = grids[self._position[target[0]]]
        parts = torch.split(vectors, self._products(self._by_target[target], tokens))
        if self._config.upsampled:
            area = self._placed(target, tokens, source=False)
            pixels = best_pixels(parts, tokens, area, scaled=self._config.unit != "tokens")
            return pixels.double() + predicted_offset(self._config, 1.0), None
        height, width, _ = tokens.shape
        maps = torch.cat([some @ tokens.flatten(0, 1).T for some in parts]).view(-1, height, width)
        pull: Tensor | None = None
        if self._config.soft is None:
            best = maps.flatten(1).argmax(1)
            point = torch.stack([best % width, best // width], 1)
        else:
            point, pull = self._config.soft.found(maps)
        cell = point_geometry(self._view, target[1]).size[0] / width
        return point.double() * cell + predicted_offset(self._config, cell), pull

    def _products(self, rows: Sequence[int], grid: Tensor) -> list[int]:
        """Number of points in each matrix product of the pairs that share an image.

        On a CPU each pair has its own product, so that the last bits of its result do not depend on other
        pairs; the cost is small compared with the search. On a GPU all pairs have one product.
        """
        counts = [self._counts[row] for row in rows]
        return counts if grid.is_cpu else [sum(counts)]

    def _placed(self, image: Key, grid: Tensor, *, source: bool) -> Places:
        """Positions of a source's points on its grid, or of a target's searched pixels."""
        size = (grid.shape[0], grid.shape[1])
        if (source, image, size) not in self._places:
            seen = point_geometry(self._view, image[1])
            if source:
                points = np.concatenate([self._pairs[row].source_points for row in self._by_source[image]])
                there = places.source_places(self._config, points, seen, size)
            else:
                there = places.searched_area(self._config, image[1], seen, size)
            self._places[source, image, size] = there.on(grid.device)
        return self._places[source, image, size]

    @cached_property
    def _orders(self) -> tuple[Tensor, Tensor]:
        """Permutations of the points from source order to target order, and from target to pair order."""
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
        """Ground truth of every point, float64 [10 points], in pixels.

        The rows are: true position in the target's view (x, y); scale and offset of that view (x, y of each);
        true position in the target image (x, y); longer side of the target's box and of the target image, in
        pixels of the image.
        """
        facts = [np.zeros((10, 0))]
        for pair in self._pairs:
            seen, (left, top, right, bottom) = point_geometry(self._view, pair.target_size), pair.target_box
            in_view, in_image = places.true_places(self._config, pair.target_points, seen)
            lengths = max(right - left, bottom - top), max(pair.target_size)
            alike, sides = (
                np.tile(np.array(numbers, np.float64)[:, None], len(in_view))
                for numbers in ((*seen.scale, *seen.offset), lengths)
            )
            facts.append(np.concatenate([in_view.T, alike, in_image.T, sides]))
        return torch.from_numpy(np.concatenate(facts, axis=1))


class CategoryMeasurer(TokenMeasurer):
    """Matches all pairs of one category, for each layer, after all grids of its images have arrived.

    Grids are kept as they come, in float32: they must outlive the pass, as `LASTING_GRIDS` do. Of a
    few pairs, the ``examples`` (ascending indices), the matched points are kept, too.
    """

    def __init__(self, matcher: Matcher, examples: tuple[int, ...] = ()) -> None:
        super().__init__()
        self._examples = examples
        self._matcher = matcher
        self._grids: dict[Layer, dict[int, tuple[Tensor, ...]]] = {}  # of a layer's members, by position
        self._flags = LayerFlags()

    def compare(
        self, layers: Sequence[Layer], positions: Sequence[int], grids: Mapping[Layer, Tensor]
    ) -> None:
        """Keep the tokens of some images, of unit length if a layer has several members."""
        for member, tokens in grids.items():
            self._flags.see(member, tokens)
        if any(len(layer.members) > 1 for layer in layers):
            grids = {member: normalize(tokens, dim=-1) for member, tokens in grids.items()}
        for layer in layers:
            parts = zip(*(grids[member] for member in layer.members), strict=True)
            self._grids.setdefault(layer, {}).update(zip(positions, parts, strict=True))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """The arrays of `Matcher.match`, with the rounded matches of the examples only."""
        arrays = self._matcher.match(
            {
                # of several members, their unit tokens side by side
                position: parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1) / math.sqrt(len(parts))
                for position, parts in self._grids.pop(layer).items()
            }
        )
        points = arrays.pop("point")
        if self._examples:
            some = torch.cat([points[self._matcher.rows(row)] for row in self._examples])
            arrays["point"] = some.round(decimals=2).float()
        return arrays | self._flags.arrays(layer)
