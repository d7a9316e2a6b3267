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
from PIL import Image, ImageEnhance

from layerboard.tasks.datasets.base import DatasetEntry, Sample
from layerboard.tasks.datasets.scenes import VOC_2012, VOC_2012_AUG, Scene, every_value
from layerboard.tasks.framework.base import Measurements, Over, digest
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.tasks.framework.sources import random_crop
from layerboard.tasks.metrics.arrays import VOID, Labels
from layerboard.tasks.metrics.cell_labels import evenly_spaced, generator_of
from layerboard.tasks.segmentation.in_context import Vote
from layerboard.tasks.segmentation.overlaps import Overlaps, names_of_predictions
from layerboard.tasks.segmentation.shown import shown_labels, signatures
from layerboard.tasks.segmentation.task import SegmentationConfig, SegmentationMemory, SegmentationTask
from layerboard.zoo.view.geometry import Box
from layerboard.zoo.view.views import LoweredSquare, View

HUES = 256  # values of a hue in 8 bits, a full turn


@dataclass(frozen=True, slots=True)
class Augmentation:
    """Settings of the augmentation in one protocol."""

    epochs: int  # number of times that each image is used
    contrast: float  # largest deviation from 1 of the factors of brightness, contrast and saturation
    hue: float  # largest rotation of the hue, as a share of a full turn
    probability: float  # of each of the four changes
    area: tuple[float, float]  # area of a crop as a share of the image; one above 1 never fits
    ratio: tuple[float, float]  # width of a crop over its height
    tries: int  # random crops tried until one fits; then the central crop with a ratio in the range
    seed: int


@dataclass(frozen=True, slots=True)
class Colours:
    """Colour changes in this order: three factors, and a rotation of the hue in 256ths of a turn."""

    brightness: float = 1.0
    contrast: float = 1.0
    saturation: float = 1.0
    hue: int = 0

    def of(self, image: Image.Image) -> Image.Image:
        for enhance, factor in (
            (ImageEnhance.Brightness, self.brightness),
            (ImageEnhance.Contrast, self.contrast),
            (ImageEnhance.Color, self.saturation),
        ):
            image = image if factor == 1.0 else enhance(image).enhance(factor)
        if not self.hue:
            return image
        first, *others = image.convert("HSV").split()
        turned = Image.fromarray(np.asarray(first) + np.uint8(self.hue % HUES))
        return Image.merge("HSV", (turned, *others)).convert("RGB")


@dataclass(frozen=True, slots=True)
class AugmentedSample:
    """A crop of an image with changed colours."""

    sample: Sample
    key: str
    box: Box
    colours: Colours

    @property
    def made(self) -> str:
        """Identity among the augmented versions of the image."""
        return f"{self.key}|{self.box}|{self.colours}"

    def open(self) -> Image.Image:
        """The decoded RGB image in its colours; raises UnreadableImageError."""
        return self.colours.of(self.sample.open())

    def signature(self) -> str:
        return f"{self.sample.signature()}|{self.box}|{self.colours}"


def augmented(sample: Sample, size: tuple[int, int], epoch: int, config: Augmentation) -> AugmentedSample:
    """An image of that (width, height), augmented for an epoch, from 0.

    The random draws depend only on its name, the epoch and the seed.
    """
    random = generator_of("augmented", sample.key, epoch, config.seed)
    colours = _colours(random, config)
    box = random_crop(random, size, config.area, config.ratio, config.tries)
    return AugmentedSample(sample, f"{sample.key}#{epoch + 1}", box, colours)


def _colours(random: np.random.Generator, config: Augmentation) -> Colours:
    happens = random.random(4) < config.probability
    factors = 1 + config.contrast * random.uniform(-1, 1, 3)
    turn = config.hue * random.uniform(-1, 1)
    first, second, third = map(float, np.where(happens[:3], factors, 1.0))
    return Colours(first, second, third, int(turn * HUES) if happens[3] else 0)


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
