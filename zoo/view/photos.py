"""Image files: which formats are read, how large they may be, and their RGB pixels as people see them."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np
from PIL import ExifTags, Image, ImageOps

from layerboard.zoo.errors import InputError, UnreadableImageError, first_line
from layerboard.zoo.reading import require_regular

# Accepted formats, whatever the file name: all that Pillow decodes, except scripts and vectors. It passes
# PostScript to Ghostscript, which runs it, and the content of an IPTC file to any of its readers.
FORMATS = (
    *("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF", "HEIF", "BLP", "CUR", "DCX"),
    *("DDS", "DIB", "FITS", "FLI", "FTEX", "GBR", "ICNS", "ICO", "IM", "IMT", "MCIDAS", "MSP", "PCD", "PCX"),
    *("PIXAR", "PSD", "QOI", "SGI", "SPIDER", "SUN", "TGA", "XBM", "XPM", "XVTHUMB"),
)
ADDED = dict.fromkeys((".heic", ".heif", ".hif"), "layerboard[heic]") | {".avif": "Pillow>=11.3"}
STRIP = 256  # rows that are made opaque at once
MOST_PIXELS = 2**27  # maximum pixels of one image: half a GiB when decoded

warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # given for images from cameras, too


@cache
def formats() -> tuple[str, ...]:
    """The `FORMATS` that this installation reads."""
    with suppress(ImportError):
        import_module("pillow_heif").register_heif_opener()
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


@cache
def endings() -> tuple[str, ...]:
    """Extensions of such files, in lower case."""
    read = {*formats(), "MPO"}  # MPO: a JPEG followed by further pictures
    return tuple(ending for ending, name in Image.registered_extensions().items() if name in read)


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Raise errors of Pillow and of a pack as UnreadableImageError, which says what could not be done."""
    try:
        yield
    except Exception as error:  # any error: a damaged image can fail in many ways
        raise UnreadableImageError(f"{what}: {first_line(error)}") from error


def open_file(file: str | PathLike[str] | IO[bytes]) -> Image.Image:
    """An image of one of the `FORMATS`, not decoded yet; raises as Pillow does, InputError for a huge one.

    Raises OSError for a path of anything but a regular file.
    """
    if isinstance(file, str | PathLike):
        require_regular(Path(file))
    image = Image.open(file, formats=formats())
    try:
        require_few_pixels(image.size)
    except InputError:
        image.close()
        raise
    return image


def require_few_pixels(size: tuple[int, int], frames: int = 1) -> None:
    """Raise InputError if so many frames of that width and height have more than `MOST_PIXELS` together."""
    if (pixels := size[0] * size[1] * frames) > MOST_PIXELS:
        fewer = "make it smaller" if frames == 1 else "take fewer --frames, or make it smaller"
        whole = "it has" if frames == 1 else f"{frames} frames of it have"
        raise InputError(f"{whole} {pixels:,} pixels, of at most {MOST_PIXELS:,}; {fewer}")


def as_seen(image: Image.Image) -> Image.Image:
    """The RGB image as people see it.

    It is rotated according to EXIF, 16-bit grey is scaled to 8 bits, transparent pixels become white. Raises
    InputError for pixels of an unknown range, and as Pillow does if it cannot be decoded.
    """
    image.load()
    with suppress(Exception):  # damaged EXIF counts as none
        if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:  # else the image would be copied
            image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image)
        if image.mode == "F" or values.min() < 0 or values.max() >= 2**16:
            raise InputError(
                f"expected pixels of 8 or 16 bits, found {values.dtype} up to {values.max():g}, of which no "
                "range is known; save it with 8 or 16 bits"
            )
        image = Image.fromarray((values >> 8).astype(np.uint8))
    if image.has_transparency_data:
        white = Image.new("RGB", image.size, "white")
        for top in range(0, image.height, STRIP):  # a whole copy of a large image would take half a GiB more
            part = image.crop((0, top, image.width, min(image.height, top + STRIP))).convert("RGBA")
            white.paste(part, (0, top), part)
        return white
    return image if image.mode == "RGB" else image.convert("RGB")  # converting would copy it
