"""Random crops of images, which follow from an image's name.

The rule of the crops is that of torchvision's ``RandomResizedCrop``.
"""

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from PIL import Image, ImageOps

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.metrics.cell_labels import generator_of
from layerboard.zoo.view.geometry import Box

RATIO = (3 / 4, 4 / 3)  # usual width of a crop over its height
TRIES = 10  # usual number of random crops tried until one fits

Bounds = tuple[float, float]


def random_crop(
    random: np.random.Generator, size: tuple[int, int], area: Bounds, ratio: Bounds, tries: int
) -> Box:
    """A random part of an image of that (width, height), in whole pixels.

    ``area`` bounds its share of the image's area, of which shares above 1 never fit, and ``ratio`` its width
    over its height. If no try fits, it is the central part with a ratio in the range.
    """
    for _ in range(tries):
        pixels = size[0] * size[1] * random.uniform(*area)
        shape = exp(random.uniform(log(ratio[0]), log(ratio[1])))
        width, height = round(sqrt(pixels * shape)), round(sqrt(pixels / shape))
        if 0 < width <= size[0] and 0 < height <= size[1]:
            left = int(random.integers(size[0] - width + 1))
            top = int(random.integers(size[1] - height + 1))
            return left, top, left + width, top + height
    width = min(size[0], round(size[1] * ratio[1]))
    height = min(size[1], round(size[0] / ratio[0]))
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    return left, top, left + width, top + height


@dataclass(frozen=True, slots=True)
class CroppedSample:
    """One random crop of an image, mirrored in half of the cases; both depend on its name alone."""

    sample: Sample
    area: Bounds  # of the crop, as a share of the image's
    box: Box | None = None

    @property
    def key(self) -> str:
        return self.sample.key

    @property
    def made(self) -> str:
        """Identity among the images that are made of one."""
        return f"crop {self.area}"

    def open(self) -> Image.Image:
        """The crop; raises UnreadableImageError."""
        image, random = self.sample.open(), generator_of("cropped", self.key)
        part = image.crop(random_crop(random, image.size, self.area, RATIO, TRIES))
        return ImageOps.mirror(part) if random.random() < 0.5 else part

    def signature(self) -> str:
        return f"{self.sample.signature()}|{self.made}"
