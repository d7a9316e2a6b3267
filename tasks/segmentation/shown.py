"""Training and validation images of in-context segmentation, independent of the vote."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from layerboard.tasks.datasets.reading.files import stamp
from layerboard.tasks.datasets.scenes import Scene, Scenes, every_value, read_classes
from layerboard.tasks.framework.base import (
    AVERAGED,
    Group,
    Items,
    Measurements,
    Outcome,
    Over,
    Score,
    Source,
    Statistic,
    digest,
)
from layerboard.tasks.framework.checks import ALIKE
from layerboard.tasks.framework.sources import ANY_SIZE, consecutive_groups
from layerboard.tasks.framework.task import Measurable, MeasuredTask
from layerboard.tasks.metrics.arrays import Integers, Labels
from layerboard.tasks.metrics.cell_labels import evenly_spaced, resized_labels
from layerboard.tasks.segmentation.overlaps import Overlaps
from layerboard.zoo.view.views import View

NO_LABELS = "no pixel of the images that are labelled has a class"

TOGETHER = 8  # images that are measured together
GROUPS_PER_SHARD = 16
MEMORY_FIRST = "the training images must be measured first"


class WithScenes:
    """Base class for labelled images, accessed by name."""

    data: Scenes
    config: Any
    part: ClassVar[str]  # part of the dataset

    @property
    @abstractmethod
    def scenes(self) -> tuple[Scene, ...]:
        """The images."""

    @cached_property
    def source(self) -> Source:
        groups = consecutive_groups([scene.sample for scene in self.scenes], TOGETHER)
        view: View = self.config.view
        return Source(f"{self.data.name}/{self.part}", groups, view, groups_per_shard=GROUPS_PER_SHARD)

    def scenes_of(self, group: Group) -> list[Scene]:
        return [self._by_key[sample.key] for sample in group.samples]

    @cached_property
    def _by_key(self) -> dict[str, Scene]:
        return {scene.sample.key: scene for scene in self.scenes}


@dataclass(frozen=True)
class LearntImages(WithScenes, Measurable):
    """The training images of the memory."""

    data: Scenes
    config: Any
    part = "memory"

    @property
    def most(self) -> int:
        """Largest number of remembered cells of all images."""
        return self.data.memory

    @cached_property
    def scenes(self) -> tuple[Scene, ...]:
        """The training images; evenly spaced ones if there are more images than memory cells."""
        train = self.data.train
        return tuple(train[row] for row in evenly_spaced(len(train), self.data.memory))


@dataclass(frozen=True, eq=False)
class LabelledImages(WithScenes, MeasuredTask):
    """The validation images, whose pixels are labelled.

    ``memories`` are None until the training images are measured.
    """

    data: Scenes
    memories: Any = None
    part = "queries"
    split = "train, val"
    over: ClassVar[Over]  # classes that the mean IoU averages over

    @property
    def scenes(self) -> tuple[Scene, ...]:
        return self.data.val

    @property
    def ground_truth(self) -> object:
        return digest(*self.data.truth)

    @property
    def remembered(self) -> int:
        assert isinstance(self.memory, LearntImages)
        return self.memory.most

    @property
    @abstractmethod
    def classes(self) -> int:
        """Number of classes that can be predicted for a pixel."""

    @property
    def endings(self) -> tuple[str, ...]:
        """Suffixes of the mean IoU metrics: ``""`` for the primary vote, others for alternative votes."""
        return ("",)

    def tables(self, ending: str, measurements: Sequence[Measurements]) -> Iterator[Integers]:
        """Confusion matrices of the images of each group, [images classes classes], group by group.

        They come from the measurements of the groups (`tasks.segmentation.in_context.confusion_entries`).
        """
        for group, measured in zip(self.source.groups, measurements, strict=True):
            tables = np.zeros((len(group.samples), self.classes, self.classes), np.int64)
            image, truth, given, pixels = np.asarray(measured[f"pixels{ending}"], np.int64).T
            tables[image, truth, given] = pixels
            yield tables

    def overlaps(self, ending: str, measurements: Sequence[Measurements]) -> Overlaps:
        """Pixels of all images and classes, [images classes] each."""
        return Overlaps.joined(self.tables(ending, measurements))

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """Mean IoU and accuracies in percent, with one item per image.

        Empty if no image has a labelled pixel, or the features are all equal.
        """
        by_ending = {ending: self.overlaps(ending, measurements) for ending in self.endings}
        outcome = outcome_of(by_ending, [scene.sample.key for scene in self.scenes], self.over)
        if outcome.scores and not any(np.any(measured["varies"]) for measured in measurements):
            return Outcome((), empty=ALIKE)
        return outcome


def outcome_of(by_ending: Mapping[str, Overlaps], keys: Sequence[str], over: Over) -> Outcome:
    """Mean IoU and accuracies in percent, with one item per image that has a labelled pixel.

    The overlaps of votes by their endings are [images classes], ``keys`` the names of the images. The mean
    is over those classes. Empty if no image has a labelled pixel.
    """
    averaged, first = AVERAGED.get(over, "shown"), by_ending[""]
    valid = np.asarray(first.truth.any(axis=1))
    if not valid.any():
        return Outcome((), empty=NO_LABELS)
    counted = _counted(by_ending, over)
    values = {f"truth {number}": first.truth[valid, number].astype(np.float64) for number in counted}
    for name, overlaps in by_ending.items():
        for number in counted:
            values[f"inter{name} {number}"] = overlaps.intersection[valid, number].astype(np.float64)
            values[f"union{name} {number}"] = overlaps.union[valid, number].astype(np.float64)
    sums = {name: overlaps.sum(valid) for name, overlaps in by_ending.items()}
    rows = {
        "mIoU": (sums[""].mean_iou(averaged), Statistic("inter/union", over)),
        "pixel accuracy": (sums[""].accuracy(), Statistic("inter/truth", "pixels")),
        "class accuracy": (sums[""].mean_accuracy(), Statistic("inter/truth", "classes")),
    }
    for name in by_ending:
        statistic = Statistic(f"inter{name}/union{name}", over)
        rows.setdefault(f"mIoU{name}", (sums[name].mean_iou(averaged), statistic))
    names = tuple(key for key, there in zip(keys, valid, strict=True) if there)
    scores = (Score(metric, 100.0 * value, len(names), "images") for metric, (value, _) in rows.items())
    statistics = {metric: statistic for metric, (_, statistic) in rows.items()}
    return Outcome(tuple(scores), Items("images", names, names, ("",) * len(names), values, statistics))


def _counted(by_ending: Mapping[str, Overlaps], over: Over) -> Integers:
    """Classes for which items have columns."""
    truth = by_ending[""].truth
    if over == "all classes":
        return np.arange(truth.shape[1])
    seen = [truth] if over == "classes" else [overlaps.union for overlaps in by_ending.values()]
    return np.flatnonzero(np.any([pixels.any(axis=0) for pixels in seen], axis=0))


def shown_labels(data: Scenes, view: View, scene: Scene, *, centres: bool) -> Labels:
    """Mask value at each visible pixel of an image in a view, as in `resized_labels`; 255 for none."""
    left, top, right, bottom = map(round, scene.sample.box or (0, 0, *scene.size))
    values = read_classes(every_value(data), scene)[top:bottom, left:right]
    return resized_labels(values, view.geometry(ANY_SIZE).size, centres=centres)


def signatures(scenes: Sequence[Scene]) -> list[tuple[str, int, int | str]]:
    """Names, sizes and times of the images' mask files; names, sizes and digests for packed files."""
    return [(scene.mask.name, *stamp(scene.mask)) for scene in scenes]
