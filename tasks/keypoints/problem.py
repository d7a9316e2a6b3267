"""SPair-71k semantic correspondence: keypoints of one image found again in another.

Source: Min et al., 2019 (data, PCK); the matching rule is the README's, ``spair``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import (
    Group,
    Items,
    Measurements,
    Measurer,
    Outcome,
    Over,
    Score,
    Source,
    Statistic,
    ceiling_metric,
    digest,
)
from tasks.checks import ALIKE
from tasks.datasets.base import Coverage
from tasks.datasets.spair import KeypointPair, Keypoints
from tasks.examples.keypoints import KeypointExamples
from tasks.keypoints.kinds import pair_kinds
from tasks.keypoints.matched_sets import SetsMeasurer
from tasks.keypoints.matching import CategoryMeasurer, KeptGrids, Matcher
from tasks.keypoints.rule import CONFIGS, KeypointConfig
from tasks.metrics.pck_averages import pck_averages
from tasks.registry import TaskEntry
from tasks.task import MeasuredTask
from zoo.spec import Layer
from zoo.view.views import View

PULL = "pull"
"""Mean share of a soft arg-max, in percent, that lies where similarities count as next to 0."""

OVER: Mapping[str, Over] = {"category": "strata", "image": "clusters", "keypoint": "items"}
"""What the mean is over, by `KeypointConfig.average`."""


@dataclass(frozen=True, eq=False)
class KeypointTask(MeasuredTask):
    """Keypoint correspondence on the pairs of a split, category by category."""

    data: Keypoints
    config: KeypointConfig
    configs = CONFIGS
    split = "test"
    sets_refusal = ""

    @cached_property
    def entry(self) -> TaskEntry:
        """The texts, with the primary metric of the numbers first."""
        entry = super().entry
        return replace(entry, metrics=tuple(dict.fromkeys((self.config.primary, *entry.metrics))))

    @property
    def coverage(self) -> Coverage:
        """How complete the dataset is, and that other pairs are drawn from a part of it."""
        coverage = self.data.coverage
        if not coverage.partial or self.config.draw is None:
            return coverage
        return coverage.noted("pairs drawn from what is there, which are others than those drawn from all")

    @cached_property
    def pairs(self) -> dict[str, tuple[KeypointPair, ...]]:
        """Pairs of each category, categories in sorted order."""
        names = sorted({pair.category for pair in self.data.pairs})
        every = {name: tuple(p for p in self.data.pairs if p.category == name) for name in names}
        return every if self.config.draw is None else self.config.draw.taken(every)

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
        return Source(self.data.name, groups, self.config.view)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule of matching and of the annotations of all pairs, with viewpoints if known."""
        turns = [pair.turn for pair in self.data.pairs]
        return self.ground_truth if None in turns else digest("spair", self.ground_truth, turns)

    @cached_property
    def ground_truth(self) -> str:
        """The same without viewpoints, which group points and move no score: data keep their identity."""
        pairs, samples = self.data.pairs, self.data.samples
        points = [array for pair in pairs for array in (pair.source_points, pair.target_points)]
        images = [(samples[p.source].key, samples[p.target].key) for p in pairs]
        facts = [(p.key, p.category, p.source_size, p.target_size, p.target_box, p.facts) for p in pairs]
        return digest("spair", self.config, images, facts, *points)

    @cached_property
    def kept_examples(self) -> KeypointExamples:
        """Of which pairs the points are kept."""
        return KeypointExamples(self.data.samples, self.pairs)

    @cached_property
    def kinds(self) -> Mapping[str, NDArray[np.bool_]]:
        """Kinds of points, and which points of all pairs are of each."""
        return pair_kinds([pair for pairs in self.pairs.values() for pair in pairs])

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What matches the pairs of one category."""
        pairs, kept = self.pairs[group.key], self.kept_examples.places[group.key]
        matcher = Matcher(pairs, self.images[group.key], view, self.config)
        return CategoryMeasurer(matcher, kept, KeptGrids(users=1))

    def measure_sets(self, group: Group, view: View, sets: Sequence[Layer]) -> Measurer[Tensor]:
        """What matches the pairs of one category by sets of layers."""
        matcher = Matcher(self.pairs[group.key], self.images[group.key], view, self.config)
        return SetsMeasurer(matcher, sets)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """PCK in percent, of all points and of kinds of pairs; and the mean pull of a soft arg-max."""
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
        for alpha in self.config.alphas:
            metric = f"PCK@{alpha:g}"
            hits = [self.hits(errors, alpha) for errors in boxes]
            pooled = np.concatenate(hits)
            per_image = np.add.reduceat(pooled, starts) / np.asarray(counts)
            by_image_size = [self.hits(errors, alpha) for errors in images]
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
        primary = values[f"PCK@{self.config.alphas[0]:g}"]
        metric = f"PCK@{self.config.alphas[0]:g}"
        parts = {f"{metric} {name}": (primary, points) for name, points in self.kinds.items()}
        if all("least_box" in m for m in measurements):
            least = np.concatenate([np.asarray(m["least_box"], np.float64) for m in measurements])
            every = np.ones(n, bool)
            parts[ceiling_metric(self.config.primary)] = self.hits(least, self.config.alphas[0]), every
        for name, (hits_of, points) in parts.items():
            scores.append(Score(name, self._average(hits_of, points), int(points.sum()), "keypoints"))
            values[name] = np.where(points, hits_of, np.nan)
            statistics[name] = Statistic(name, OVER[self.config.average])
        if all("pull" in m for m in measurements):
            values[PULL] = 100.0 * np.concatenate([np.asarray(m["pull"], np.float64) for m in measurements])
            scores.append(Score(PULL, float(values[PULL].mean()), n, "keypoints"))
            statistics[PULL] = Statistic(PULL)
        right = values[f"PCK@{self.config.alphas[0]:g}"] > 0
        found = [np.asarray(m["point"], np.float32) for m in measurements if "point" in m]
        # of distances alone, as others exported them, no points are known
        whole = len(found) == len(measurements)
        predicted = self.kept_examples.predicted(np.concatenate(found), right) if whole else {}
        return Outcome(tuple(scores), self._items(values, statistics), predicted=predicted)

    def hits(self, errors: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        """100 where a distance, as a share of the length that counts, is a hit, else 0."""
        right = errors <= alpha if self.config.inclusive else errors < alpha
        return 100.0 * right.astype(np.float64)

    @cached_property
    def _owners(self) -> tuple[NDArray[np.int64], list[str]]:
        """Number of the pair of each point, and the category of each pair."""
        ordered = [pair for pairs in self.pairs.values() for pair in pairs]
        counts = [len(pair.source_points) for pair in ordered]
        return np.repeat(np.arange(len(ordered)), counts), [pair.category for pair in ordered]

    def _average(self, hits: NDArray[np.float64], points: NDArray[np.bool_]) -> float:
        """Mean of some points' hits, averaged as the primary metric."""
        owner, categories = self._owners
        found = pck_averages(hits[points], owner[points], categories)
        means = {"category": found.point_category, "image": found.image_all, "keypoint": found.point_all}
        return means[self.config.average]

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


def _numbered(names: Sequence[str]) -> list[str]:
    """Names with a number behind each repetition."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def _category_mean(hits: Sequence[NDArray[np.float64]]) -> float:
    return float(np.mean([category.mean() for category in hits if len(category)]))
