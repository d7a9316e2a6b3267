"""Masks as PNG files with the palette of DAVIS and VOC."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


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


def write_mask(path: Path, mask: NDArray[np.uint8]) -> None:
    """Write object ids, uint8 [height width], as a PNG with the palette of DAVIS."""
    image = Image.fromarray(np.ascontiguousarray(mask, dtype=np.uint8))
    image.putpalette(voc_palette().tobytes())
    image.save(path, format="PNG")
