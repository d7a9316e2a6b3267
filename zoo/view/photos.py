"""Files of images: which formats are read, how large they may be, and the RGB that people see of one."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from os import PathLike
from typing import IO

import numpy as np
from PIL import Image, ImageOps

from layerboard.zoo.errors import InputError, UnreadableImageError, first_line

# what images may be, whatever they are called: all that Pillow decodes, but no scripts and vectors. It hands
# PostScript to Ghostscript, which runs it, and what lies in an IPTC file to any of its readers.
FORMATS = (
    *("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF", "HEIF", "BLP", "CUR", "DCX"),
    *("DDS", "DIB", "FITS", "FLI", "FTEX", "GBR", "ICNS", "ICO", "IM", "IMT", "MCIDAS", "MSP", "PCD", "PCX"),
    *("PIXAR", "PSD", "QOI", "SGI", "SPIDER", "SUN", "TGA", "XBM", "XPM", "XVTHUMB"),
)
ADDED = dict.fromkeys((".heic", ".heif", ".hif"), "layerboard[heic]") | {".avif": "Pillow>=11.3"}
MOST_PIXELS = 2**27  # of one image: half a GiB when it is decoded

warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # said of images that cameras make, too


@cache
def formats() -> tuple[str, ...]:
    """The `FORMATS` that this installation reads."""
    with suppress(ImportError):
        import_module("pillow_heif").register_heif_opener()
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


@cache
def endings() -> tuple[str, ...]:
    """Endings of the names of such files, in small letters."""
    read = {*formats(), "MPO"}  # MPO: a JPEG with further pictures behind it
    return tuple(ending for ending, name in Image.registered_extensions().items() if name in read)


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Errors of Pillow and of a pack as UnreadableImageError, which says what could not be done."""
    try:
        yield
    except Exception as error:  # of any kind: what a damaged image runs into is up to its bytes
        raise UnreadableImageError(f"{what}: {first_line(error)}") from error


def open_file(file: str | PathLike[str] | IO[bytes]) -> Image.Image:
    """An image of one of the `FORMATS`, not decoded yet; raises as Pillow does, InputError for a huge one."""
    image = Image.open(file, formats=formats())
    if (pixels := image.width * image.height) > MOST_PIXELS:
        image.close()
        raise InputError(f"it has {pixels:,} pixels, of at most {MOST_PIXELS:,}; make it smaller")
    return image


def as_seen(image: Image.Image) -> Image.Image:
    """The RGB image that people see.

    It is turned as its EXIF says, 16 bits of grey are scaled to 8, what is transparent shows white. Raises
    InputError for pixels of a range that nobody knows, and as Pillow does where it cannot be decoded.
    """
    image.load()
    with suppress(Exception):  # damaged EXIF is none
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
        image = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image)
        return white
    return image if image.mode == "RGB" else image.convert("RGB")  # converting would copy it
