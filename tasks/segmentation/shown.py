"""What segmentation in context looks at, whatever votes: images to learn from and images to label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from tasks.base import Group, Measurements, Outcome, Over, Source, digest
from tasks.checks import ALIKE
from tasks.datasets.files import stamp
from tasks.datasets.scenes import Scene, Scenes
from tasks.metrics.cell_labels import evenly_spaced
from tasks.metrics.overlaps import Overlaps
from tasks.segmentation.class_overlaps import outcome_of
from tasks.sources import chunks
from tasks.task import Measured, MeasuredTask
from zoo.view.views import View

TOGETHER = 8
"""Images that are measured together."""

GROUPS_PER_SHARD = 16

MEMORY_FIRST = "the training images must be measured first"


class Showing(Protocol):
    """The numbers of a vote, one of which says how images are shown."""

    @property
    def view(self) -> View:
        """How images are shown, whole."""
        ...


@dataclass(frozen=True)
class LearntImages(Measured):
    """The training images of which something is remembered."""

    data: Scenes
    config: Showing

    @cached_property
    def scenes(self) -> tuple[Scene, ...]:
        """The training images; of more than there are cells to remember, evenly spaced ones."""
        train = self.data.train
        return tuple(train[place] for place in evenly_spaced(len(train), self.data.memory))

    @cached_property
    def source(self) -> Source:
        """The training images, some a group."""
        return source_of(f"{self.data.name}/memory", self.scenes, self.config.view)

    def scenes_of(self, group: Group) -> list[Scene]:
        """The images of a group."""
        return [self._by_key[sample.key] for sample in group.samples]

    @cached_property
    def _by_key(self) -> dict[str, Scene]:
        return {scene.sample.key: scene for scene in self.scenes}


@dataclass(frozen=True, eq=False)
class LabelledImages(MeasuredTask):
    """The validation images, whose pixels are labelled."""

    data: Scenes
    config: Showing
    split = "train, val"

    @property
    def ground_truth(self) -> object:
        """Digest of the names and sizes of the mask files, and of how they are read."""
        return digest(*self.data.truth)

    @cached_property
    def source(self) -> Source:
        """The validation images, some a group."""
        return source_of(f"{self.data.name}/queries", self.data.val, self.config.view)

    @property
    def remembered(self) -> int:
        return self.data.memory

    def scenes_of(self, group: Group) -> list[Scene]:
        """The images of a group."""
        return [self._by_key[sample.key] for sample in group.samples]

    def outcome(
        self, found: Mapping[str, Overlaps], over: Over, measurements: Sequence[Measurements]
    ) -> Outcome:
        """Scores of pixels of all images and classes; empty where the features are all equal."""
        outcome = outcome_of([scene.sample.key for scene in self.data.val], found, over)
        if outcome.scores and not any(np.any(one["varies"]) for one in measurements):
            return Outcome((), empty=ALIKE)
        return outcome

    @cached_property
    def _by_key(self) -> dict[str, Scene]:
        return {scene.sample.key: scene for scene in self.data.val}


def source_of(name: str, scenes: Sequence[Scene], view: View) -> Source:
    """Images of a dataset, some a group."""
    groups = chunks([scene.sample for scene in scenes], TOGETHER)
    return Source(name, groups, view, groups_per_shard=GROUPS_PER_SHARD)


def signatures(scenes: Sequence[Scene]) -> list[tuple[str, int, int | str]]:
    """Names, sizes and times of the mask files of images; of packed ones names, sizes and digests."""
    return [(scene.mask.name, *stamp(scene.mask)) for scene in scenes]
