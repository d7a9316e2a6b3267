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
from tasks.datasets.base import Coverage, Sample
from tasks.datasets.spair import KeypointPair, Keypoints
from tasks.examples import Predicted, by_key, drawn
from tasks.keypoints.config import CONFIGS, KeypointConfig
from tasks.keypoints.matching import CategoryMeasurer, KeptGrids, KeypointSetsMeasurer, Matcher
from tasks.metrics.correspondence import pck_averages
from tasks.registry import TaskEntry
from tasks.task import MeasuredTask
from zoo.spec import Layer
from zoo.view.views import View

HARD = ("easy", "medium", "hard")
WHICH = ("none", "source", "target", "both")

KINDS = {"viewpoint": HARD, "scale": HARD, "truncation": WHICH, "occlusion": WHICH}
"""By field of `PairFacts`, the names of its levels."""

AZIMUTH = {"azimuth": tuple(str(eighths) for eighths in range(5))}
"""Eighths of a turn between the viewpoints of the two images, beside `KINDS`."""

MISTAKABLE = "geometry-aware"
"""Points whose target image shows another point that stands for the same (Zhang et al., CVPR 2024)."""


def pair_kinds(pairs: Sequence[KeypointPair]) -> Mapping[str, NDArray[np.bool_]]:
    """For each kind, which points of the pairs are of it, [points]; a kind without a point is left out.

    There are no levels where some annotation does not say of which its pair is, no geometry-aware points
    where of some pair it is not known which points its target image shows, and no azimuth where of some image
    it is not known.
    """
    facts = [pair.facts for pair in pairs]
    counts = [len(pair.source_points) for pair in pairs]
    there = [fact for fact in facts if fact is not None]
    kinds: dict[str, NDArray[np.bool_]] = {}
    if len(there) == len(facts):
        levels = {field: [getattr(fact, field) for fact in there] for field in KINDS}
        kinds |= _by_level(KINDS, levels, counts)
    if all(pair.turn is not None for pair in pairs):
        kinds |= _by_level(AZIMUTH, {"azimuth": [pair.turn for pair in pairs]}, counts)
    flags = [fact.mistakable for fact in there if fact.mistakable is not None]
    if len(flags) == len(facts):
        kinds[MISTAKABLE] = np.array([flag for each in flags for flag in each], bool)
    return {name: points for name, points in kinds.items() if points.any()}


def _by_level(
    names: Mapping[str, Sequence[str]], levels: Mapping[str, Sequence[int | None]], counts: Sequence[int]
) -> dict[str, NDArray[np.bool_]]:
    """Which points are of each level, of pairs with so many points each."""
    return {
        f"{field} {name}": np.repeat([level == number for level in levels[field]], counts)
        for field, each in names.items()
        for number, name in enumerate(each)
    }


PAIRS = 16
"""Pairs of which the points are kept, the categories in turn."""


@dataclass(frozen=True)
class KeypointExamples:
    """Pairs of images and where layers find their points.

    Attributes:
        samples: The images.
        pairs: All pairs of each category.
    """

    samples: tuple[Sample, ...]
    pairs: Mapping[str, tuple[KeypointPair, ...]]

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """For each category the examples, as places among its pairs."""
        every = [(name, row) for name, pairs in self.pairs.items() for row in range(len(pairs))]
        keys = [self.pairs[name][row].key for name, row in every]
        chosen = {every[row] for row in drawn(keys, PAIRS, [name for name, _ in every])}
        return {
            name: tuple(row for row in range(len(pairs)) if (name, row) in chosen)
            for name, pairs in self.pairs.items()
        }

    def predicted(self, points: NDArray[np.float32], right: NDArray[np.bool_]) -> Predicted:
        """Where a layer finds the examples' points.

        Args:
            points: [points 2] in pixels of the target images.
            right: Whether each point of all pairs was found, [all points].
        """
        return {"point": points, "right": right[self._rows]} if len(self._rows) else {}

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Places of the examples' points among those of all pairs."""
        flags = [
            np.full(len(pair.source_points), row in self.places[name])
            for name, pairs in self.pairs.items()
            for row, pair in enumerate(pairs)
        ]
        return np.flatnonzero(np.concatenate(flags))

    def facts(self) -> Predicted:
        pairs = [self.pairs[name][row] for name, places in self.places.items() for row in places]
        counts = [len(pair.source_points) for pair in pairs]
        return {
            "pair": np.asarray([pair.key for pair in pairs], str),
            "category": np.asarray([pair.category for pair in pairs], str),
            "source": np.asarray([self.samples[pair.source].key for pair in pairs], str),
            "target": np.asarray([self.samples[pair.target].key for pair in pairs], str),
            "source_size": np.asarray([pair.source_size for pair in pairs], np.int64),
            "target_size": np.asarray([pair.target_size for pair in pairs], np.int64),
            "target_box": np.asarray([pair.target_box for pair in pairs], np.float64),
            "of_pair": np.repeat(np.arange(len(pairs)), counts),
            "source_point": np.concatenate([pair.source_points for pair in pairs]),
            "target_point": np.concatenate([pair.target_points for pair in pairs]),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        del predicted
        facts = self.facts()
        return by_key(self.samples, [str(key) for side in ("source", "target") for key in facts[side]])


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
        entry = super().entry
        return replace(entry, metrics=tuple(dict.fromkeys((self.config.primary, *entry.metrics))))

    @property
    def coverage(self) -> Coverage:
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
        groups = tuple(
            Group(name, tuple(self.data.samples[index] for index in indices))
            for name, indices in self.images.items()
        )
        return Source(self.data.name, groups, self.config.view)

    @cached_property
    def fingerprint(self) -> str:
        turns = [pair.turn for pair in self.data.pairs]
        return self.ground_truth if None in turns else digest("spair", self.ground_truth, turns)

    @cached_property
    def ground_truth(self) -> str:
        pairs, samples = self.data.pairs, self.data.samples
        points = [array for pair in pairs for array in (pair.source_points, pair.target_points)]
        images = [(samples[p.source].key, samples[p.target].key) for p in pairs]
        facts = [(p.key, p.category, p.source_size, p.target_size, p.target_box, p.facts) for p in pairs]
        return digest("spair", self.config, images, facts, *points)

    @cached_property
    def kept_examples(self) -> KeypointExamples:
        return KeypointExamples(self.data.samples, self.pairs)

    @cached_property
    def kinds(self) -> Mapping[str, NDArray[np.bool_]]:
        """Kinds of points, and which points of all pairs are of each."""
        return pair_kinds([pair for pairs in self.pairs.values() for pair in pairs])

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        pairs, examples = self.pairs[group.key], self.kept_examples.places[group.key]
        matcher = Matcher(pairs, self.images[group.key], view, self.config)
        return CategoryMeasurer(matcher, examples, KeptGrids(users=1))

    def measure_sets(self, group: Group, view: View, sets: Sequence[Layer]) -> Measurer[Tensor]:
        matcher = Matcher(self.pairs[group.key], self.images[group.key], view, self.config)
        return KeypointSetsMeasurer(matcher, sets)

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
        found_points = [np.asarray(m["point"], np.float32) for m in measurements if "point" in m]
        # of distances alone, as others exported them, no points are known
        whole = len(found_points) == len(measurements)
        predicted = self.kept_examples.predicted(np.concatenate(found_points), right) if whole else {}
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
        averages = pck_averages(hits[points], owner[points], categories)
        means = {
            "category": averages.point_category,
            "image": averages.image_all,
            "keypoint": averages.point_all,
        }
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
