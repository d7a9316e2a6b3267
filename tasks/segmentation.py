"""Semantic segmentation in context: cells of labelled images vote on the cells of others; nothing is trained.

Source: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023; the rules are the README's,
``segment``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    Score,
    Source,
    Statistic,
    digest,
)
from tasks.checks import ALIKE
from tasks.datasets.base import Scene, Scenes
from tasks.datasets.storage import stamp
from tasks.feeds import GRIDS, GridFeed
from tasks.in_context import Choice, Memories, MemoryMeasurer, QueryMeasurer, Vote
from tasks.metrics.cell_labels import (
    evenly_spaced,
)
from tasks.metrics.overlaps import Overlaps
from tasks.sources import chunks
from zoo.spec import Layer
from zoo.view.views import View

TOGETHER = 8
"""Images that are measured together."""

GROUPS_PER_SHARD = 16

NO_LABELS = "no pixel of the images that are labelled has a class"


@dataclass(frozen=True, slots=True)
class SegmentationRule:
    """The numbers of segmentation in context.

    Attributes:
        view: How images are shown, whole.
        vote: How the remembered cells vote.
        least: Share of a cell's pixels that must have a class for the cell to be remembered.
        seed: Of the draw of the cells that are remembered.
    """

    view: View
    vote: Vote
    least: float
    seed: int


@dataclass(frozen=True)
class SegmentationMemory:
    """What is remembered of the training images: some cells of each, and how many pixels of each class."""

    data: Scenes
    rule: SegmentationRule

    @cached_property
    def scenes(self) -> tuple[Scene, ...]:
        """The training images; of more than there are cells to remember, evenly spaced ones."""
        train = self.data.train
        return tuple(train[place] for place in evenly_spaced(len(train), self.data.memory))

    @cached_property
    def source(self) -> Source:
        """The training images, some a group."""
        return _source(f"{self.data.name}/memory", self.scenes, self.rule.view)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule, of the size of the memory and of the mask files' sizes and times."""
        facts = self.rule.seed, self.rule.least, self.data.memory, self.data.offset, len(self.data.classes)
        return digest("segment-memory", *facts, _signatures(self.scenes))

    @property
    def feed(self) -> GridFeed:
        """Measurers are fed grids."""
        return GRIDS

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What remembers cells of a few images."""
        del view  # a view that shows all of an image puts the same pixels under a cell
        scenes = [self._by_key[sample.key] for sample in group.samples]
        return MemoryMeasurer(self.data, scenes, self.choice)

    @property
    def choice(self) -> Choice:
        """Which cells of an image are remembered."""
        most = max(1, self.data.memory // len(self.scenes))
        return Choice(most, self.rule.least, self.rule.seed)

    @cached_property
    def _by_key(self) -> dict[str, Scene]:
        return {scene.sample.key: scene for scene in self.scenes}


@dataclass(frozen=True)
class SegmentationProblem:
    """Labels of the pixels of validation images, by a memory of training images.

    Attributes:
        data: The dataset.
        rule: The numbers.
        memories: What is remembered; None until the training images were measured.
    """

    data: Scenes
    rule: SegmentationRule
    memories: Memories | None = field(default=None, compare=False)

    @cached_property
    def memory(self) -> SegmentationMemory:
        """What must be measured before."""
        return SegmentationMemory(self.data, self.rule)

    def remembering(
        self, measured: Mapping[Layer, Sequence[Measurements]], failures: Mapping[Layer, str]
    ) -> "SegmentationProblem":
        """The same with what its memory left behind of each layer, and why of others nothing."""
        return replace(self, memories=Memories(measured, failures))

    @cached_property
    def source(self) -> Source:
        """The validation images, some a group."""
        return _source(f"{self.data.name}/queries", self.data.val, self.rule.view)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule, of the memory and of the mask files' sizes and times."""
        return digest("segment", self.rule, self.memory.fingerprint, _signatures(self.data.val))

    @property
    def feed(self) -> GridFeed:
        """Measurers are fed grids."""
        return GRIDS

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What labels a few images; raises ValueError before the memory is there."""
        del view
        if self.memories is None:
            raise ValueError("the training images must be measured first")
        scenes = [self._by_key[sample.key] for sample in group.samples]
        return QueryMeasurer(self.data, scenes, self.rule.vote, self.memories)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """Mean IoU and accuracies in percent; primary is the mean IoU over the classes that are shown."""
        found = {name: self._overlaps(name, measurements) for name in ("", *self._variants)}
        valid = np.asarray(found[""].truth.any(axis=1))
        if not valid.any():
            return Outcome((), empty=NO_LABELS)
        if not any(np.any(one["varies"]) for one in measurements):
            return Outcome((), empty=ALIKE)
        values: dict[str, NDArray[np.float64]] = {}
        shown = np.flatnonzero(found[""].truth.any(axis=0))
        for number in shown:
            values[f"truth {number}"] = found[""].truth[valid, number].astype(np.float64)
        for name, overlaps in found.items():
            for number in shown:
                values[f"inter{name} {number}"] = overlaps.intersection[valid, number].astype(np.float64)
                values[f"union{name} {number}"] = overlaps.union[valid, number].astype(np.float64)
        statistics = {
            "mIoU": Statistic("inter/union", "classes"),
            "pixel accuracy": Statistic("inter/truth", "pixels"),
            "class accuracy": Statistic("inter/truth", "classes"),
            **{f"mIoU{name}": Statistic(f"inter{name}/union{name}", "classes") for name in self._variants},
        }
        sums = {name: one.sum(valid) for name, one in found.items()}
        percent = {
            "mIoU": sums[""].mean_iou(),
            "pixel accuracy": sums[""].accuracy(),
            "class accuracy": sums[""].mean_accuracy(),
            **{f"mIoU{name}": sums[name].mean_iou() for name in self._variants},
        }
        keys = tuple(scene.sample.key for scene, there in zip(self.data.val, valid, strict=True) if there)
        items = Items("images", keys, keys, ("",) * len(keys), values, statistics)
        scores = (Score(metric, 100.0 * value, len(keys), "images") for metric, value in percent.items())
        return Outcome(tuple(scores), items)

    def _overlaps(self, name: str, measurements: Sequence[Measurements]) -> Overlaps:
        """Pixels of all images and classes: [images classes] each."""
        classes, every = len(self.data.classes), []
        for group, measured in zip(self.source.groups, measurements, strict=True):
            tables = np.zeros((len(group.samples), classes, classes), np.int64)
            image, truth, given, pixels = np.asarray(measured[f"pixels{name}"], np.int64).T
            tables[image, truth, given] = pixels
            every.append(Overlaps.of(tables))
        return Overlaps.joined(every)

    @property
    def _variants(self) -> tuple[str, ...]:
        """Endings of the names of what is measured beside the vote of k."""
        return f" k={self.rule.vote.other}", " ceiling"

    @cached_property
    def _by_key(self) -> dict[str, Scene]:
        return {scene.sample.key: scene for scene in self.data.val}


def _source(name: str, scenes: Sequence[Scene], view: View) -> Source:
    groups = chunks([scene.sample for scene in scenes], TOGETHER)
    return Source(name, groups, view, groups_per_shard=GROUPS_PER_SHARD)


def _signatures(scenes: Sequence[Scene]) -> list[tuple[str, int, int | str]]:
    return [(scene.mask.name, *stamp(scene.mask)) for scene in scenes]
