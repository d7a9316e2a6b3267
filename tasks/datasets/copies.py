"""Typical copies of images: compressed, cropped, rotated, recoloured, captioned.

Random parameters depend only on the name of the image and the kind of copy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from math import sqrt

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

from layerboard.tasks.datasets.base import Sample
from layerboard.zoo.view.geometry import Box

SHORT = 256  # largest shorter side, in pixels, of an image that copies are made from, as in views
VERSION = 1  # changes when a copy would look different
BICUBIC = Image.Resampling.BICUBIC


def _compressed(image: Image.Image, random: np.random.Generator) -> Image.Image:
    stored = BytesIO()
    image.save(stored, "JPEG", quality=30)
    return Image.open(stored, formats=("JPEG",)).convert("RGB")


def _cropped(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """A crop with 70 % of the area and the same aspect ratio, at a random position."""
    size = [round(side * sqrt(0.7)) for side in image.size]
    left, top = (int(random.integers(whole - side + 1)) for whole, side in zip(image.size, size, strict=True))
    return image.crop((left, top, left + size[0], top + size[1]))


def _coloured(image: Image.Image, random: np.random.Generator) -> Image.Image:
    for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = enhance(image).enhance(float(random.uniform(0.6, 1.4)))
    return image


def _captioned(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """The image with a bar over the lowest 15 %, and blocks instead of words, which need no font."""
    image, (width, height) = image.copy(), image.size
    bar, draw = round(0.85 * height), ImageDraw.Draw(image)
    draw.rectangle((0, bar, width, height), "white")
    upper, lower = bar + (height - bar) // 3, height - (height - bar) // 3
    start = width // 20
    while start < 0.9 * width:
        stop = start + int(random.integers(width // 20 + 1, width // 6 + 2))
        draw.rectangle((start, upper, min(stop, width), lower), "black")
        start = stop + max(1, width // 40)
    return image


# in the order of metrics
COPIES: dict[str, Callable[[Image.Image, np.random.Generator], Image.Image]] = {
    "JPEG": _compressed,
    "crop": _cropped,
    "half size": lambda image, _: image.resize([max(1, side // 2) for side in image.size], BICUBIC),
    # by 10 degrees to either side, with black corners
    "rotated": lambda image, random: image.rotate(10 if random.integers(2) else -10, BICUBIC),
    "mirrored": lambda image, _: ImageOps.mirror(image),
    "colours": _coloured,
    "blurred": lambda image, _: image.filter(ImageFilter.GaussianBlur(2)),
    "caption": _captioned,
}


@dataclass(frozen=True, slots=True)
class CopySample:
    """A copy of an image, of one of the kinds of `COPIES`."""

    sample: Sample
    kind: str
    box: Box | None = None

    @property
    def key(self) -> str:
        return f"{self.sample.key}#{self.kind}"

    @property
    def made(self) -> str:
        """Identity among the copies of the image, whose random parameters depend on its name."""
        return f"{self.kind}|copy {VERSION}|{self.sample.key}"

    def open(self) -> Image.Image:
        """The decoded RGB image; raises UnreadableImageError."""
        image = self.sample.open()
        if (short := min(image.size)) > SHORT:
            width, height = (max(1, round(side * SHORT / short)) for side in image.size)
            image = image.resize((width, height), BICUBIC)
        seed = blake2b(self.key.encode(errors="surrogatepass"), digest_size=8).digest()
        return COPIES[self.kind](image, np.random.default_rng(int.from_bytes(seed, "little")))

    def signature(self) -> str:
        return f"{self.sample.signature()}|{self.made}"
