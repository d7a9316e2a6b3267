"""SPair-71k semantic correspondence: keypoints of one image found again in another.

Source: Min et al., 2019 (data, PCK); the matching rule is the README's, ``spair``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from tasks.base import Group, Items, Measurements, Measurer, Outcome, Over, Score, Source, Statistic, digest
from tasks.checks import ALIKE, varies
from tasks.datasets.base import KeypointPair, Keypoints
from tasks.examples.keypoints import KeypointExamples
from tasks.feeds import GRIDS, GridFeed
from tasks.metrics.correspondence import Target, match, match_official, prepare_target, sample_points
from zoo.spec import Layer
from zoo.view.geometry import Geometry
from zoo.view.views import View


@dataclass(frozen=True, slots=True)
class PairDraw:
    """Pairs drawn with replacement, category by category in sorted order, from NumPy's legacy generator."""

    per_category: int
    seed: int


@dataclass(frozen=True, slots=True)
class KeypointRule:
    """The numbers of keypoint correspondence: a match is right within alpha times the box's longer side.

    Attributes:
        alphas: Shares of that side.
        view: How images are shown.
        draw: Which pairs are taken; None for all.
        whole_pixels: Whether points and matches are whole pixels, and similarities inner products with
            upsampled tokens that are not scaled again, over the padding, too: `match_official`. Source points
            are computed in single precision, which decides at the edge of a pixel; one that rounds to a pixel
            outside the view is moved to the last one.
    """

    alphas: tuple[float, ...]
    view: View
    draw: PairDraw | None
    whole_pixels: bool


@dataclass(frozen=True)
class KeypointProblem:
    """Keypoint correspondence on the pairs of a split, category by category."""

    data: Keypoints
    rule: KeypointRule

    @cached_property
    def pairs(self) -> dict[str, tuple[KeypointPair, ...]]:
        """Pairs of each category, categories in sorted order."""
        names = sorted({pair.category for pair in self.data.pairs})
        every = {name: tuple(p for p in self.data.pairs if p.category == name) for name in names}
        return every if self.rule.draw is None else _drawn(every, self.rule.draw)

    @cached_property
    def images(self) -> dict[str, tuple[int, ...]]:
        """For each category, the images that its pairs need, as indices into ``data.samples``."""
        return {
            name: tuple(sorted({index for pair in pairs for index in (pair.source, pair.target)}))
            for name, pairs in self.pairs.items()
        }

    @cached_property
    def source(self) -> Source:
        """The images that pairs need, every category a group and a shard."""
        groups = tuple(
            Group(name, tuple(self.data.samples[index] for index in indices))
            for name, indices in self.images.items()
        )
        return Source(self.data.name, groups, self.rule.view)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule of matching and of the annotations of all pairs."""
        pairs, samples = self.data.pairs, self.data.samples
        points = [array for pair in pairs for array in (pair.source_points, pair.target_points)]
        images = [(samples[p.source].key, samples[p.target].key) for p in pairs]
        facts = [(p.key, p.category, p.source_size, p.target_size, p.target_box) for p in pairs]
        return digest("spair", self.rule, images, facts, *points)

    @cached_property
    def examples(self) -> KeypointExamples:
        """Of which pairs the points are kept."""
        return KeypointExamples(self.data.samples, self.pairs)

    @property
    def feed(self) -> GridFeed:
        """Measurers are fed grids."""
        return GRIDS

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What matches the pairs of one category."""
        pairs, kept = self.pairs[group.key], self.examples.places[group.key]
        return _CategoryMeasurer(pairs, self.images[group.key], view, self.rule, kept)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """PCK in percent; primary is the mean over categories of per-keypoint hits at the largest alpha."""
        categories = list(self.pairs)
        boxes = [np.asarray(m["error_box"], np.float64) for m in measurements]
        images = [np.asarray(m["error_image"], np.float64) for m in measurements]
        counts = [len(pair.source_points) for name in categories for pair in self.pairs[name]]
        n, starts = sum(counts), np.cumsum([0, *counts[:-1]])
        if not n:
            return Outcome((), empty="no pair has a keypoint")
        if not any(np.any(m["varies"]) for m in measurements):
            return Outcome((), empty=ALIKE)
        scores: list[Score] = []
        values: dict[str, NDArray[np.float64]] = {}
        statistics: dict[str, Statistic] = {}
        for alpha in self.rule.alphas:
            metric = f"PCK@{alpha:g}"
            hits = [100.0 * (errors < alpha).astype(np.float64) for errors in boxes]
            pooled = np.concatenate(hits)
            per_image = np.add.reduceat(pooled, starts) / np.asarray(counts)
            by_image_size = [100.0 * (errors < alpha).astype(np.float64) for errors in images]
            by_image = f"{metric} image size"
            values |= {metric: pooled, by_image: np.concatenate(by_image_size)}
            measured: list[tuple[str, str, Over, float, int, str]] = [
                (metric, metric, "strata", _category_mean(hits), n, "keypoints"),
                (f"{metric} per image", metric, "clusters", float(per_image.mean()), len(counts), "pairs"),
                (f"{metric} per keypoint", metric, "items", float(pooled.mean()), n, "keypoints"),
                (by_image, by_image, "strata", _category_mean(by_image_size), n, "keypoints"),
            ]
            for name, column, over, value, count, unit in measured:
                scores.append(Score(name, value, count, unit))
                statistics[name] = Statistic(column, over)
        right = values[f"PCK@{max(self.rule.alphas):g}"] > 0
        found = [np.asarray(m["point"], np.float32) for m in measurements if "point" in m]
        # of distances alone, as others exported them, no points are known
        whole = len(found) == len(measurements)
        predicted = self.examples.predicted(np.concatenate(found), right) if whole else {}
        return Outcome(tuple(scores), self._items(values, statistics), predicted=predicted)

    def _items(self, values: Mapping[str, NDArray[np.float64]], statistics: Mapping[str, Statistic]) -> Items:
        """Keypoints, of which those of one pair were sampled together, within its category."""
        ordered = [pair for pairs in self.pairs.values() for pair in pairs]
        names = _numbered([pair.key for pair in ordered])
        counts = [len(pair.source_points) for pair in ordered]
        return Items(
            unit="keypoints",
            keys=tuple(f"{name}#{i}" for name, n in zip(names, counts, strict=True) for i in range(n)),
            clusters=tuple(name for name, n in zip(names, counts, strict=True) for _ in range(n)),
            strata=tuple(pair.category for pair in ordered for _ in pair.source_points),
            values=values,
            statistics=statistics,
        )


def _drawn(
    pairs: Mapping[str, tuple[KeypointPair, ...]], draw: PairDraw
) -> dict[str, tuple[KeypointPair, ...]]:
    """Pairs of each category, drawn from those in the order of their keys; a pair may come twice."""
    legacy = np.random.RandomState(draw.seed)
    chosen = {}
    for name, every in pairs.items():
        ordered = sorted(every, key=lambda pair: pair.key)
        chosen[name] = tuple(ordered[index] for index in legacy.choice(len(ordered), draw.per_category))
    return chosen


def _numbered(names: Sequence[str]) -> list[str]:
    """Names with a number behind each repetition."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def in_single_precision(points: NDArray[np.float64], geometry: Geometry) -> NDArray[np.float32]:
    """Points [n 2] of an image in its view, float32 after each step, as the published code has them."""
    scale, offset = (np.asarray(numbers, np.float32) for numbers in (geometry.scale, geometry.offset))
    return points.astype(np.float32) * scale + offset


def _category_mean(hits: Sequence[NDArray[np.float64]]) -> float:
    return float(np.mean([category.mean() for category in hits if len(category)]))


class _CategoryMeasurer:
    """Keeps the grids of one category's images and matches all of its pairs at the end.

    Of a few pairs, the examples, it keeps the points that were found, too.
    """

    def __init__(
        self,
        pairs: tuple[KeypointPair, ...],
        images: tuple[int, ...],
        view: View,
        rule: KeypointRule,
        examples: tuple[int, ...],
    ) -> None:
        self._pairs = pairs
        self._examples = examples
        self._rule = rule
        self._position = {index: position for position, index in enumerate(images)}
        self._view = view
        self._grids: dict[Layer, dict[int, Tensor]] = {}
        self._varies: dict[Layer, list[Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        self._varies.setdefault(layer, []).append(varies(grids))
        kept = self._grids.setdefault(layer, {})
        for position, grid in zip(positions, normalize(grids.float(), dim=-1), strict=True):
            kept[position] = grid

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        grids = self._grids.pop(layer, {})
        targets: dict[int, Target] = {}
        distances: list[Tensor] = []
        kept: list[Tensor] = []
        for place, pair in enumerate(self._pairs):
            source, target = (self._view.geometry(size) for size in (pair.source_size, pair.target_size))
            grid, side = grids[self._position[pair.source]], source.size[0]
            truth = torch.from_numpy(target.to_view(pair.target_points)).to(grid.device)
            if self._rule.whole_pixels:
                pixels = torch.from_numpy(in_single_precision(pair.source_points, source))
                inside = pixels.clamp(0, side - 1)
                found = match_official(grid, grids[self._position[pair.target]], inside, side)
            else:
                if pair.target not in targets:
                    tokens = grids[self._position[pair.target]]
                    targets[pair.target] = prepare_target(tokens, side, target.content)
                asked = torch.from_numpy(source.to_view(pair.source_points))
                found = match(sample_points(grid, asked, side / grid.shape[0]), targets[pair.target])
            distances.append(torch.linalg.vector_norm(found - truth, dim=1) / target.scale[0])
            if place in self._examples:
                kept.append(found.flatten())
        # one transfer from the device for the whole category
        every = torch.cat([*distances, *kept]).double().cpu() if distances else torch.zeros(0).double()
        box, image = self._lengths()
        error, points = every[: len(box)], every[len(box) :]
        seen = torch.stack(self._varies.pop(layer, [torch.tensor(False)])).any().cpu()
        errors = {"error_box": error / box, "error_image": error / image}
        return errors | {"varies": seen[None], "point": self._in_images(points)}

    def _in_images(self, points: Tensor) -> Tensor:
        """Points that were found in the examples' views, one after the other, in image pixels: [points 2]."""
        pairs = [self._pairs[place] for place in self._examples]
        parts = torch.split(points.view(-1, 2), [len(pair.source_points) for pair in pairs])
        views = (self._view.geometry(pair.target_size) for pair in pairs)
        found = [view.to_image(part.numpy()) for view, part in zip(views, parts, strict=True)]
        return torch.from_numpy(np.concatenate([np.zeros((0, 2)), *found]).round(2)).float()

    def _lengths(self) -> tuple[Tensor, Tensor]:
        """Longer side of the target's box and of the target image for every keypoint, in image pixels."""
        counts = torch.tensor([len(pair.source_points) for pair in self._pairs], dtype=torch.long)
        boxes = [
            max(p.target_box[2] - p.target_box[0], p.target_box[3] - p.target_box[1]) for p in self._pairs
        ]
        images = [float(max(pair.target_size)) for pair in self._pairs]
        both = torch.tensor([boxes, images], dtype=torch.float64).reshape(2, -1)
        box, image = both.repeat_interleave(counts, dim=1)
        return box, image
