"""Masks of DAVIS, VOC and ADE20k: palette or greyscale PNG files whose pixel values are ids."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from layerboard.tasks.datasets.reading.files import open_image
from layerboard.zoo.errors import InputError
from layerboard.zoo.view.photos import decoding


def voc_palette() -> NDArray[np.uint8]:
    """The colour map of PASCAL VOC, uint8 [256 3].

    Bit 3k of an index is bit 7 - k of its red, bit 3k + 1 that of its green, bit 3k + 2 that of its blue.
    """
    index = np.arange(256)
    palette = np.zeros((256, 3), dtype=np.int64)
    for bit in range(8):
        level, channel = divmod(bit, 3)
        palette[:, channel] |= (index >> bit & 1) << (7 - level)
    return palette.astype(np.uint8)


def read_mask(path: Path, what: str = "object ids") -> NDArray[np.uint8]:
    """Pixel values of a PNG file, uint8 [height width]: 0 is background, 255 (in annotations) is void.

    Raises UnreadableImageError, and InputError for a colour image; ``what`` names the pixel values.
    """
    with decoding(f"cannot decode mask {path}"), open_image(path) as image:
        if image.mode in ("P", "L"):
            return np.array(image, dtype=np.uint8)
    raise InputError(
        f"expected a palette or greyscale PNG whose pixel values are {what} at {path}, "
        f"found mode {image.mode}; save the mask with its palette"
    )


def write_mask(path: Path, mask: NDArray[np.uint8]) -> None:
    """Write object ids, uint8 [height width], as a PNG with the palette of DAVIS."""
    image = Image.fromarray(np.ascontiguousarray(mask, dtype=np.uint8))
    image.putpalette(voc_palette().tobytes())
    image.save(path, format="PNG")
