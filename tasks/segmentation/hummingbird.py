"""In-context segmentation as in its public evaluation: two epochs, void as background, renamed classes.

Source: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023; open-hummingbird-eval, commit
5e79da2. Differences: its search is approximate by default, here it is exact; it divides the blue channel by
0.255, although backbones were trained with 0.225, here every backbone has its own normalisation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from layerboard.tasks.datasets.base import DatasetEntry
from layerboard.tasks.datasets.scenes import VOC_2012, VOC_2012_AUG, Scene, every_value
from layerboard.tasks.framework.base import Measurements, Over, digest
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.tasks.metrics.arrays import VOID, Labels
from layerboard.tasks.metrics.cell_labels import evenly_spaced
from layerboard.tasks.segmentation.augmented import Augmentation, augmented
from layerboard.tasks.segmentation.in_context import Vote
from layerboard.tasks.segmentation.overlaps import Overlaps, names_of_predictions
from layerboard.tasks.segmentation.shown import shown_labels, signatures
from layerboard.tasks.segmentation.task import SegmentationConfig, SegmentationMemory, SegmentationTask
from layerboard.zoo.view.views import LoweredSquare, View


@dataclass(frozen=True, slots=True)
class HummingbirdConfig(SegmentationConfig):
    """Settings of the public evaluation."""

    memory: int  # largest number of remembered cells, of all images and epochs
    augmentation: Augmentation  # augmentation of the training images


@dataclass(frozen=True)
class HummingbirdMemory(SegmentationMemory):
    """Memory of training images, each augmented several times."""

    config: HummingbirdConfig
    part = "memory-augmented"

    @property
    def classes(self) -> int:
        return len(every_value(self.data).classes)

    def read(self, view: View, scene: Scene) -> Labels:
        """Class of each visible pixel of an image; pixels without a class are background."""
        labels = shown_labels(self.data, view, scene, centres=False)
        return np.where(labels == VOID, np.uint8(0), labels)

    @property
    def most(self) -> int:
        return self.config.memory if self.data.most is None else min(self.config.memory, self.data.most)

    @cached_property
    def scenes(self) -> tuple[Scene, ...]:
        """The training images, epoch by epoch; evenly spaced ones if there are more images than cells."""
        train, config = self.data.train, self.config.augmentation
        chosen = [train[row] for row in evenly_spaced(len(train), max(1, self.most // config.epochs))]
        return tuple(
            replace(scene, sample=augmented(scene.sample, scene.size, epoch, config))
            for epoch in range(config.epochs)
            for scene in chosen
        )

    @cached_property
    def fingerprint(self) -> str:
        config = self.config
        facts = config.seed, config.least, self.most, config.augmentation, self.classes
        return digest("hummingbird-memory", *facts, signatures(self.scenes))


class HummingbirdTask(SegmentationTask):
    """Labels of the visible pixels of validation images, with predicted classes renamed."""

    config: HummingbirdConfig
    over: ClassVar[Over] = "all classes"
    keeps_examples = False  # pictures show whole images
    configs: ClassVar[Mapping[str, HummingbirdConfig]] = {
        "hummingbird": HummingbirdConfig(
            view=LoweredSquare(side=512, bilinear=True),
            vote=Vote(k=30, other=1, temperature=0.02),
            least=0.0,
            seed=123,
            memory=102_400,
            augmentation=Augmentation(
                epochs=2,
                contrast=0.1,
                hue=0.1,
                probability=0.5,
                area=(0.5, 2.0),
                ratio=(3 / 4, 4 / 3),
                tries=10,
                seed=123,
            ),
        )
    }

    @classmethod
    def reading(cls, entry: DatasetEntry[Any], protocol: EvaluationProtocol) -> DatasetEntry[Any]:
        """VOC 2012 is segmented by its further training masks (trainaug)."""
        return VOC_2012_AUG if entry == VOC_2012 else entry

    def read(self, view: View, scene: Scene) -> Labels:
        """Class of each visible pixel of an image; 255 for ignored pixels."""
        labels = shown_labels(self.data, view, scene, centres=False)
        return np.where(labels < self.data.offset, np.uint8(VOID), labels)

    @cached_property
    def memory(self) -> HummingbirdMemory:
        return HummingbirdMemory(self.data, self.config)

    def overlaps(self, ending: str, measurements: Sequence[Measurements]) -> Overlaps:
        """Pixels of all images and classes, with the best renaming for all images: [images classes]."""
        total = sum(tables.sum(0) for tables in self.tables(ending, measurements))
        names = names_of_predictions(np.asarray(total))
        return Overlaps.joined(tables[..., names] for tables in self.tables(ending, measurements))
