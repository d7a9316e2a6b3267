"""What segmentation in context looks at, whatever votes: images to learn from and images to label."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tasks.base import Group, Items, Measurements, Outcome, Over, Score, Source, Statistic, digest
from tasks.checks import ALIKE
from tasks.datasets.files import stamp
from tasks.datasets.scenes import Scene, Scenes
from tasks.metrics.arrays import Integers
from tasks.metrics.cell_labels import evenly_spaced
from tasks.metrics.overlaps import Overlaps
from tasks.sources import chunks
from tasks.task import Measurable, MeasuredTask
from zoo.view.views import View

NO_LABELS = "no pixel of the images that are labelled has a class"

MEANS: Mapping[Over, Callable[[Overlaps], float]] = {
    "classes": Overlaps.mean_iou,
    "seen classes": Overlaps.mean_iou_of_seen,
    "all classes": Overlaps.mean_iou_of_all,
}
"""The mean IoU over the classes that the truth shows, that it or the prediction shows, or over all."""


def tables_of(
    groups: Sequence[Group], measurements: Sequence[Measurements], name: str, classes: int
) -> Iterator[Integers]:
    """Confusion matrices of the images of each group, [images classes classes], one group after the other.

    They are of what the groups left behind under a name, as of `tasks.segmentation.in_context.joined`.
    """
    for group, measured in zip(groups, measurements, strict=True):
        tables = np.zeros((len(group.samples), classes, classes), np.int64)
        image, truth, given, pixels = np.asarray(measured[name], np.int64).T
        tables[image, truth, given] = pixels
        yield tables


TOGETHER = 8  # images that are measured together
GROUPS_PER_SHARD = 16
MEMORY_FIRST = "the training images must be measured first"


class WithScenes:
    """What has labelled images, which are found again by their names."""

    @property
    @abstractmethod
    def scenes(self) -> tuple[Scene, ...]:
        """The images."""

    def scenes_of(self, group: Group) -> list[Scene]:
        return [self._by_key[sample.key] for sample in group.samples]

    @cached_property
    def _by_key(self) -> dict[str, Scene]:
        return {scene.sample.key: scene for scene in self.scenes}


@dataclass(frozen=True)
class LearntImages(WithScenes, Measurable):
    """The training images of which something is remembered."""

    data: Scenes
    config: Any

    @property
    def most(self) -> int:
        """How many cells of all images are remembered at most."""
        return self.data.memory

    @cached_property
    def scenes(self) -> tuple[Scene, ...]:
        """The training images; of more than there are cells to remember, evenly spaced ones."""
        train = self.data.train
        return tuple(train[row] for row in evenly_spaced(len(train), self.data.memory))

    @cached_property
    def source(self) -> Source:
        return source_of(f"{self.data.name}/memory", self.scenes, self.config.view)


@dataclass(frozen=True, eq=False)
class LabelledImages(WithScenes, MeasuredTask):
    """The validation images, whose pixels are labelled.

    ``memories`` are what is remembered; None until the training images were measured.
    """

    data: Scenes
    memories: Any = None
    split = "train, val"

    @property
    def scenes(self) -> tuple[Scene, ...]:
        return self.data.val

    @property
    def ground_truth(self) -> object:
        return digest(*self.data.truth)

    @cached_property
    def source(self) -> Source:
        return source_of(f"{self.data.name}/queries", self.data.val, self.config.view)

    @property
    def remembered(self) -> int:
        return self.data.memory

    def outcome(
        self, found: Mapping[str, Overlaps], over: Over, measurements: Sequence[Measurements]
    ) -> Outcome:
        """Mean IoU and accuracies in percent, with an item an image.

        Empty where no image shows a class, or the features are all equal. ``found`` has the pixels of images
        and classes, [images classes], by the ending of the metric's name: ``""`` for what is scored first,
        others for what stands beside it as mean IoU alone.
        """
        first = found[""]
        valid = np.asarray(first.truth.any(axis=1))
        if not valid.any():
            return Outcome((), empty=NO_LABELS)
        if not any(np.any(measured["varies"]) for measured in measurements):
            return Outcome((), empty=ALIKE)
        counted = _counted(found, over)
        values = {f"truth {number}": first.truth[valid, number].astype(np.float64) for number in counted}
        for name, overlaps in found.items():
            for number in counted:
                values[f"inter{name} {number}"] = overlaps.intersection[valid, number].astype(np.float64)
                values[f"union{name} {number}"] = overlaps.union[valid, number].astype(np.float64)
        sums = {name: overlaps.sum(valid) for name, overlaps in found.items()}
        rows = {
            "mIoU": (MEANS[over](sums[""]), Statistic("inter/union", over)),
            "pixel accuracy": (sums[""].accuracy(), Statistic("inter/truth", "pixels")),
            "class accuracy": (sums[""].mean_accuracy(), Statistic("inter/truth", "classes")),
        }
        for name in found:
            statistic = Statistic(f"inter{name}/union{name}", over)
            rows.setdefault(f"mIoU{name}", (MEANS[over](sums[name]), statistic))
        names = tuple(scene.sample.key for scene, there in zip(self.scenes, valid, strict=True) if there)
        scores = (Score(metric, 100.0 * value, len(names), "images") for metric, (value, _) in rows.items())
        statistics = {metric: statistic for metric, (_, statistic) in rows.items()}
        return Outcome(tuple(scores), Items("images", names, names, ("",) * len(names), values, statistics))


def _counted(found: Mapping[str, Overlaps], over: Over) -> Integers:
    """Classes of which items have columns."""
    truth = found[""].truth
    if over == "all classes":
        return np.arange(truth.shape[1])
    seen = [truth] if over == "classes" else [overlaps.union for overlaps in found.values()]
    return np.flatnonzero(np.any([pixels.any(axis=0) for pixels in seen], axis=0))


def source_of(name: str, scenes: Sequence[Scene], view: View) -> Source:
    """Images of a dataset, some a group."""
    groups = chunks([scene.sample for scene in scenes], TOGETHER)
    return Source(name, groups, view, groups_per_shard=GROUPS_PER_SHARD)


def signatures(scenes: Sequence[Scene]) -> list[tuple[str, int, int | str]]:
    """Names, sizes and times of the mask files of images; of packed ones names, sizes and digests."""
    return [(scene.mask.name, *stamp(scene.mask)) for scene in scenes]
