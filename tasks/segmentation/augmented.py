"""Augmentation: images with random colours and a random crop in each epoch.

Source: the memory of Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023, as in its public
evaluation (open-hummingbird-eval, commit 5e79da2).
"""

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from PIL import Image, ImageEnhance

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.metrics.cell_labels import generator_of
from layerboard.zoo.view.geometry import Box

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
    return AugmentedSample(sample, f"{sample.key}#{epoch + 1}", _crop(random, size, config), colours)


def _colours(random: np.random.Generator, config: Augmentation) -> Colours:
    happens = random.random(4) < config.probability
    factors = 1 + config.contrast * random.uniform(-1, 1, 3)
    turn = config.hue * random.uniform(-1, 1)
    first, second, third = map(float, np.where(happens[:3], factors, 1.0))
    return Colours(first, second, third, int(turn * HUES) if happens[3] else 0)


def _crop(random: np.random.Generator, size: tuple[int, int], config: Augmentation) -> Box:
    """A random part of an image, in whole pixels: the rule of torchvision's random resized crop."""
    for _ in range(config.tries):
        area = size[0] * size[1] * random.uniform(*config.area)
        ratio = exp(random.uniform(log(config.ratio[0]), log(config.ratio[1])))
        width, height = round(sqrt(area * ratio)), round(sqrt(area / ratio))
        if 0 < width <= size[0] and 0 < height <= size[1]:
            left = int(random.integers(size[0] - width + 1))
            top = int(random.integers(size[1] - height + 1))
            return left, top, left + width, top + height
    width = min(size[0], round(size[1] * config.ratio[1]))
    height = min(size[1], round(size[0] / config.ratio[0]))
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return left, top, left + width, top + height
