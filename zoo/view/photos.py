"""Image files: which formats are read, how large they may be, and their RGB pixels as people see them."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageCms, ImageOps, PngImagePlugin, UnidentifiedImageError
from PIL.ImageFile import ImageFile

from layerboard.zoo.errors import InputError, UnreadableImageError, first_line
from layerboard.zoo.libraries import BrokenLibraryError, optional
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
DEEPEST = 16  # bits of the deepest channels that are read
MOST_PIXELS = 2**27  # maximum pixels of one image: half a GiB when decoded

Values = NDArray[np.integer[Any]]
# the other order of the two bytes of a value, by the end of Pillow's name of a layout; N is the machine's
_OTHER_BYTES = {";16B": ";16L", ";16L": ";16B", ";16N": ";16B" if sys.byteorder == "little" else ";16L"}

warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # given for images from cameras, too
# Pillow refuses a PNG whose text is longer than 1 MiB, such as the workflow of the program that drew it
PngImagePlugin.MAX_TEXT_CHUNK = 2**26
PngImagePlugin.MAX_TEXT_MEMORY = 2**28


@cache
def heif_broken() -> str:
    """Why an installed pillow_heif cannot be used; "" if Pillow uses it now, or if it is not installed."""
    try:
        optional("pillow_heif", "").register_heif_opener()
    except BrokenLibraryError as error:
        return str(error)
    return ""


@cache
def formats() -> tuple[str, ...]:
    """The `FORMATS` that this installation reads."""
    heif_broken()
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
    try:
        image = Image.open(file, formats=formats())
    except UnidentifiedImageError as error:
        raise UnidentifiedImageError(_why_unknown(file) or str(error)) from error
    try:
        require_few_pixels(image.size)
    except InputError:
        image.close()
        raise
    return image


def _why_unknown(file: str | PathLike[str] | IO[bytes]) -> str:
    """What a file is that is no image, as far as a user can mend it; "" if it is not known."""
    if isinstance(file, str | PathLike):
        with Path(file).open("rb") as opened:
            return _why_unknown(opened)
    file.seek(0)
    if file.read(20).startswith(b"version https://git-"):
        return "it is a pointer to a file in Git LFS, which was not fetched; run git lfs pull"
    return ""


def require_few_pixels(size: tuple[int, int], frames: int = 1) -> None:
    """Raise InputError if so many frames of that width and height have more than `MOST_PIXELS` together."""
    if (pixels := size[0] * size[1] * frames) > MOST_PIXELS:
        fewer = "make it smaller" if frames == 1 else "take fewer --frames, or make it smaller"
        whole = "it has" if frames == 1 else f"{frames} frames of it have"
        raise InputError(f"{whole} {pixels:,} pixels, of at most {MOST_PIXELS:,}; {fewer}")


def as_seen(image: Image.Image, bits: int | None = None) -> Image.Image:
    """The RGB image as people see it.

    It is rotated according to EXIF, and transparent pixels become white. Values of more than 8 bits a channel
    are scaled to 8 from the range of ``bits`` bits (8 to 16): that of its dataset, or, for None, the one that
    the values of this image use. Raises InputError for pixels of an unknown range, and as Pillow does if it
    cannot be decoded.
    """
    low = _low_bytes(image) if bits != DEEPEST else None
    image = upright(image)
    if image.mode.startswith("I") or image.mode == "F":
        image = _scaled(whole_values(image), bits)
    elif low is not None and (bits or _bits(np.asarray(image), 8)) < DEEPEST:
        image = _scaled(256 * np.asarray(image, np.int64) + np.asarray(upright(low)), bits)
    if image.mode in ("La", "RGBa"):  # colours times alpha
        image = image.convert(image.mode.upper())
    if image.has_transparency_data:
        white = Image.new("RGB", image.size, "white")
        for top in range(0, image.height, STRIP):  # a whole copy of a large image would take half a GiB more
            part = image.crop((0, top, image.width, min(image.height, top + STRIP))).convert("RGBA")
            white.paste(part, (0, top), part)
        return white
    if image.mode == "LAB":
        profiles = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        seen = ImageCms.applyTransform(image, ImageCms.buildTransform(*profiles, "LAB", "RGB"))
        assert seen is not None  # unless it were made in place
        return seen
    return image if image.mode == "RGB" else image.convert("RGB")  # converting would copy it


def bits_used(image: Image.Image) -> int:
    """Bits that the values of an image use, 8 to 16; 0 for a file of at most 8 bits a channel.

    The image is not decoded yet; one of more bits is decoded. Raises as `as_seen`.
    """
    if image.mode.startswith("I") or image.mode == "F":
        return _bits(whole_values(image))
    return _bits(np.asarray(image), 8) if raw_mode(image) else 0


def upright(image: Image.Image) -> Image.Image:
    """The decoded image, rotated according to EXIF."""
    image.load()
    with suppress(Exception):  # damaged EXIF counts as none
        if image.getexif().get(ExifTags.Base.Orientation, 1) != 1:  # else the image would be copied
            return ImageOps.exif_transpose(image)
    return image


def whole_values(image: Image.Image) -> Values:
    """Values of a grey image of more than 8 bits, [height width]; raises InputError for an unknown range."""
    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() >= 2**DEEPEST:
        raise InputError(
            f"expected pixels of 8 or 16 bits, found {values.dtype} up to {values.max():g}, of which no "
            "range is known; save it with 8 or 16 bits"
        )
    return values


def _bits(values: Values, lower: int = 0) -> int:
    """Bits that values use and ``lower`` more below, at least 8; alpha, the fourth channel, is left out."""
    most = int(values[..., :3].max() if values.ndim == 3 else values.max())
    return max(8, most.bit_length() + lower if most else 0)


def _scaled(values: Values, bits: int | None) -> Image.Image:
    """The image of values of so many bits, or of as many as they use; alpha may use 16."""
    bits = bits or _bits(values)
    scaled = np.minimum(values >> (bits - 8), 255).astype(np.uint8)
    if values.shape[2:] == (4,) and values[..., 3].max() >= 2**bits:
        scaled[..., 3] = values[..., 3] >> 8
    return Image.fromarray(scaled)


def raw_mode(image: Image.Image) -> str:
    """The layout of 16-bit colour in a file that is not decoded yet; "" for any other image.

    Pillow keeps the upper 8 bits of such values.
    """
    tiles = getattr(image, "tile", ()) if image.mode in ("RGB", "RGBA") else ()
    layouts = {tile.args if isinstance(tile.args, str) else (tile.args or ("",))[0] for tile in tiles}
    layout = str(layouts.pop()) if len(layouts) == 1 else ""
    return layout if layout[-4:] in _OTHER_BYTES else ""


def _low_bytes(image: Image.Image) -> Image.Image | None:
    """The lower 8 bits of 16-bit colour, as an image like the one of the upper 8, which is not decoded yet.

    None for any other image. Bytes are read in the other order; the layout of grey with alpha has no such
    order, so its four bytes are read as four channels.
    """
    layout = raw_mode(image)
    if not layout or not isinstance(image, ImageFile) or image.fp is None:
        return None
    position = image.fp.tell()
    image.fp.seek(0)
    twin = open_file(BytesIO(image.fp.read()))
    image.fp.seek(position)
    assert isinstance(twin, ImageFile)
    other = "RGBA" if layout.startswith("LA") else layout[:-4] + _OTHER_BYTES[layout[-4:]]
    twin.tile = [
        tile._replace(args=(other, *tile.args[1:]) if isinstance(tile.args, tuple) else other)
        for tile in twin.tile
    ]
    if other == "RGBA":
        twin.load()
        grey, alpha = twin.getchannel(1), twin.getchannel(3)
        split = Image.merge("RGBA", (grey, grey, grey, alpha))
        split.info = twin.info
        return split
    return twin
