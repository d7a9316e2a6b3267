"""Masks: files whose pixel values are ids, as of DAVIS, VOC and ADE20k, and files that mark a region."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.integrity import mismatch, require
from layerboard.tasks.datasets.reading.files import open_image
from layerboard.zoo.view.photos import decoding

LOSSY = ("JPEG", "MPO", "JPEG2000", "WEBP", "AVIF", "HEIF")  # formats that may change values
HALF = 128  # least value of a marked pixel in a lossy format
NOISE = 16  # largest value that a lossy format leaves where all is black


def read_mask(path: Path, what: str = "object ids") -> NDArray[np.uint8]:
    """Ids of the pixels of a file, uint8 [height width]: 0 is background, 255 (in annotations) is void.

    They are the values of a palette or greyscale file, or of a colour file whose channels are equal. Raises
    UnreadableImageError, and InputError for any other colours, for transparent pixels (which have no id), and
    for values that a lossy format has changed; ``what`` names the pixel values.
    """
    with decoding(f"cannot decode mask {path}"), open_image(path) as image:
        mode, lossy = image.mode, image.format if image.format in LOSSY else None
        values = np.asarray(image)  # of a palette, its indices
    grey = values if values.ndim == 2 else values[..., 0]
    colours = values[..., : len(mode.rstrip("Aa"))] if values.ndim == 3 else grey[..., None]
    is_plain = mode not in ("CMYK", "YCbCr", "LAB", "HSV", "PA") and (colours == grey[..., None]).all()
    is_opaque = values.ndim == 2 or mode == "RGB" or (values[..., -1] == 255).all()
    if lossy or not is_plain or not is_opaque or not ((grey >= 0) & (grey <= 255) & (grey % 1 == 0)).all():
        form = f"{lossy}, which changes values" if lossy else f"mode {mode}"
        png = f"a palette or greyscale PNG whose pixel values are {what} at {path}"
        raise mismatch(png, form, "save the mask with its palette")
    return np.array(grey, dtype=np.uint8)


def read_region(path: Path) -> NDArray[np.bool_]:
    """The pixels that an image file marks, bool [height width]: those that are not black and not transparent.

    Where something is transparent and all that is seen has one colour, black or not, all that is seen is
    marked; so it is if what is seen is a part of a photograph. In a lossy format, pixels are marked that are
    at least half as bright as white. Raises UnreadableImageError, and InputError for a dark lossy file
    and for a mask that is hidden by its own transparency.
    """
    with decoding(f"cannot decode mask {path}"), open_image(path) as image:
        is_lossy = image.format in LOSSY
        if image.has_transparency_data:
            layers = np.asarray(image.convert("RGBA"))
            colours, alpha = layers[..., :3], layers[..., 3]
        else:
            alpha = None
            plain = image.mode in ("1", "L", "F") or image.mode.startswith("I")
            colours = np.asarray(image if plain else image.convert("RGB"))
            if image.mode == "P" and not np.ptp(colours.reshape(-1, 3), axis=0).any():
                colours = np.asarray(image)  # a palette of one colour shows no index
    values = colours.max(axis=2) if colours.ndim == 3 else colours
    if is_lossy:
        fault = f"values up to {values.max()} in a format that may change them"
        is_clear = not NOISE < values.max() < HALF
        require(is_clear, f"a mask of black and white at {path}", fault, "save it as PNG")
        return np.asarray(values >= HALF)
    marked = np.asarray(values != 0)
    if alpha is None or (alpha == alpha.flat[0]).all():
        # an empty layer of one colour marks nothing
        return marked & (alpha is None or bool(alpha.any()) or bool(np.ptp(values)))
    seen = alpha > 0
    is_seen = (marked & seen).any() or not marked.any()
    fault = "all that are not black transparent"
    require(is_seen, f"a mask whose marked pixels are seen at {path}", fault, "save it without transparency")
    levels = np.unique(colours[seen], axis=0)
    return marked & seen if len(levels) == 2 and not levels[0].any() else seen
