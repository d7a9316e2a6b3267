"""SPair-71k semantic correspondence: keypoints of one image found again in another.

Source: Min et al., 2019 (data, PCK); the matching rule is that of docs/explanation/protocols.md, ``spair``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.datasets.base import Coverage, Sample
from layerboard.tasks.datasets.spair import KeypointPair, Keypoints
from layerboard.tasks.datasets.spair_facts import AZIMUTH, KINDS, MISTAKABLE
from layerboard.tasks.framework.base import (
    PAIRED,
    Group,
    Items,
    Measurements,
    Outcome,
    Over,
    Score,
    Source,
    Statistic,
    ceiling_metric,
    digest,
)
from layerboard.tasks.framework.checks import ALIKE
from layerboard.tasks.framework.examples import Predicted, by_key, drawn_indices
from layerboard.tasks.framework.feeds import LASTING_GRIDS
from layerboard.tasks.framework.measurers import Measurer
from layerboard.tasks.framework.registry import PULL, TaskEntry
from layerboard.tasks.framework.task import MeasuredTask
from layerboard.tasks.keypoints.config import CONFIGS, KeypointConfig
from layerboard.tasks.keypoints.correspondence import pck_averages
from layerboard.tasks.keypoints.matching import CategoryMeasurer, Matcher
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.view.views import View

PAIRS = 16  # number of pairs in the examples, with categories taking turns

OVER: Mapping[str, Over] = {"category": "strata", "image": "clusters", "keypoint": "items"}
"""What the primary metric averages over, by `KeypointConfig.average`."""


class KeypointTask(MeasuredTask):
    """Keypoint correspondence on the pairs of a split, category by category."""

    data: Keypoints
    config: KeypointConfig
    configs = CONFIGS
    split = "test"
    sets_refusal = ""
    keeps_examples = True
    feed = LASTING_GRIDS

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
        """For each category, the images of its pairs, as indices into ``data.samples``."""
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
    def _ordered(self) -> list[KeypointPair]:
        """All pairs, category by category."""
        return [pair for pairs in self.pairs.values() for pair in pairs]

    @cached_property
    def _counts(self) -> list[int]:
        """Number of points of each pair."""
        return [len(pair.source_points) for pair in self._ordered]

    @cached_property
    def _owner(self) -> NDArray[np.int64]:
        """Index of each point's pair among all pairs, [points]."""
        return np.repeat(np.arange(len(self._counts)), self._counts)

    @cached_property
    def _drawn(self) -> list[int]:
        """Indices of the examples among all pairs."""
        return drawn_indices(
            [pair.key for pair in self._ordered], PAIRS, [pair.category for pair in self._ordered]
        )

    @cached_property
    def kinds(self) -> Mapping[str, NDArray[np.bool_]]:
        """For each kind, whether each point of all pairs belongs to it, [points]; empty kinds are left out.

        Levels are left out if any pair lacks its annotated level, geometry-aware points if the keypoints of
        any pair's target image are unknown, and azimuth if that of any image is unknown.
        """
        pairs = self._ordered
        levels = {field: [getattr(pair.facts, field, None) for pair in pairs] for field in KINDS}
        levels["azimuth"] = [pair.turn for pair in pairs]
        kinds = {
            f"{field} {name}": np.repeat([level == number for level in levels[field]], self._counts)
            for field, names in (KINDS | AZIMUTH).items()
            for number, name in enumerate(names)
            if None not in levels[field]
        }
        flags = [pair.facts and pair.facts.mistakable for pair in pairs]
        if None not in flags:
            kinds[MISTAKABLE] = np.array([flag for each in flags for flag in each or ()], bool)
        return {name: points for name, points in kinds.items() if points.any()}

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        images = self.images[group.key][: len(group.samples)]  # a plan shows a few
        pairs = tuple(pair for pair in self.pairs[group.key] if {pair.source, pair.target} <= {*images})
        drawn = {self._ordered[row].key for row in self._drawn} if self.examples else set()
        examples = tuple(row for row, pair in enumerate(pairs) if pair.key in drawn)
        return CategoryMeasurer(Matcher(pairs, images, view, self.config), examples)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """PCK in percent, for all points and for kinds of pairs, and the mean pull of a soft arg-max."""
        n = sum(self._counts)
        if not n:
            return Outcome((), empty="no pair has a keypoint")
        if not any(np.any(m["varies"]) for m in measurements):
            return Outcome((), empty=ALIKE)
        boxes, images = (_joined(measurements, name) for name in ("error_box", "error_image"))
        every = np.ones(n, bool)
        values: dict[str, Floats] = {}
        # name, column of the items, what the mean is over, value, number and unit
        rows: list[tuple[str, str, Over, float, int, str]] = []
        for alpha in self.config.alphas:
            metric, by_image = f"PCK@{alpha:g}", f"PCK@{alpha:g} image size"
            hits, of_image = self.hits(boxes, alpha), self.hits(images, alpha)
            values |= {metric: hits, by_image: of_image}
            averages = self._averages(hits, every)
            rows += [
                (metric, metric, "strata", averages["category"], n, "keypoints"),
                (f"{metric} per image", metric, "clusters", averages["image"], len(self._counts), "pairs"),
                (f"{metric} per keypoint", metric, "items", averages["keypoint"], n, "keypoints"),
                (by_image, by_image, "strata", self._averages(of_image, every)["category"], n, "keypoints"),
            ]
        metric = f"PCK@{self.config.alphas[0]:g}"
        primary = values[metric]
        parts = {f"{metric} {name}": (primary, points) for name, points in self.kinds.items()}
        if all("least_box" in m for m in measurements):
            least = self.hits(_joined(measurements, "least_box"), self.config.alphas[0])
            parts[ceiling_metric(self.config.primary)] = least, every
        for name, (hits, points) in parts.items():
            value, over = self._averages(hits, points)[self.config.average], OVER[self.config.average]
            rows.append((name, name, over, value, int(points.sum()), "keypoints"))
            values[name] = np.where(points, hits, np.nan)
        if all("pull" in m for m in measurements):
            values[PULL] = 100.0 * _joined(measurements, "pull")
            rows.append((PULL, PULL, "items", float(values[PULL].mean()), n, "keypoints"))
        scores = tuple(Score(name, value, count, unit) for name, _, _, value, count, unit in rows)
        statistics = {name: Statistic(column, over) for name, column, over, *_ in rows}
        items, predicted = self._items(values, statistics), self._predicted(measurements, primary > 0)
        return Outcome(scores, items, predicted=predicted)

    def _predicted(self, measurements: Sequence[Measurements], right: NDArray[np.bool_]) -> Predicted:
        """Matches of the examples, [points 2] in pixels of the target images, and whether they are correct.

        Empty for exported distances without points; ``right`` is given for all points.
        """
        points = [np.asarray(m["point"], np.float32) for m in measurements if "point" in m]
        if not points:
            return {}
        return {"point": np.concatenate(points), "right": right[np.isin(self._owner, self._drawn)]}

    def facts(self) -> Predicted:
        pairs = [self._ordered[row] for row in self._drawn]
        return {
            "pair": np.asarray([pair.key for pair in pairs], str),
            "category": np.asarray([pair.category for pair in pairs], str),
            "source": np.asarray([self.data.samples[pair.source].key for pair in pairs], str),
            "target": np.asarray([self.data.samples[pair.target].key for pair in pairs], str),
            "source_size": np.asarray([pair.source_size for pair in pairs], np.int64),
            "target_size": np.asarray([pair.target_size for pair in pairs], np.int64),
            "target_box": np.asarray([pair.target_box for pair in pairs], np.float64),
            "of_pair": np.repeat(np.arange(len(pairs)), [len(pair.source_points) for pair in pairs]),
            "source_point": np.concatenate([pair.source_points for pair in pairs]),
            "target_point": np.concatenate([pair.target_points for pair in pairs]),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        facts = self.facts()
        return by_key(self.data.samples, [str(key) for side in ("source", "target") for key in facts[side]])

    def hits(self, errors: Floats, alpha: float) -> Floats:
        """100 for a hit and 0 for a miss, from distances as shares of the reference length."""
        right = errors <= alpha if self.config.inclusive else errors < alpha
        return 100.0 * right.astype(np.float64)

    def _averages(self, hits: Floats, points: NDArray[np.bool_]) -> Mapping[str, float]:
        """Averages of the hits of some points, by `KeypointConfig.average`."""
        return pck_averages(hits[points], self._owner[points], [pair.category for pair in self._ordered])

    def _items(self, values: Mapping[str, Floats], statistics: Mapping[str, Statistic]) -> Items:
        """Items: keypoints, with the pair as the cluster and the category as the stratum."""
        sides = ([pair.source for pair in self._ordered], [pair.target for pair in self._ordered])
        images = (np.repeat(np.asarray(side, np.float64), self._counts) for side in sides)
        names, seen = [], Counter[str]()
        for pair in self._ordered:
            seen[pair.key] += 1
            names.append(pair.key if seen[pair.key] == 1 else f"{pair.key} ({seen[pair.key]})")
        numbered = [(name, i) for name, n in zip(names, self._counts, strict=True) for i in range(n)]
        return Items(
            unit="keypoints",
            keys=tuple(f"{name}#{i}" for name, i in numbered),
            clusters=tuple(name for name, _ in numbered),
            strata=tuple(pair.category for pair in self._ordered for _ in pair.source_points),
            values={**values, **dict(zip(PAIRED, images, strict=True))},
            statistics=statistics,
        )


def _joined(measurements: Sequence[Measurements], name: str) -> Floats:
    return np.concatenate([np.asarray(m[name], np.float64) for m in measurements])
