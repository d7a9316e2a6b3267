"""What an image is: its RGB pixels as people see them, whatever object or file it comes in."""

from collections.abc import Mapping
from io import BufferedIOBase, BytesIO
from os import PathLike
from typing import Any

import numpy as np
from PIL import Image

from layerboard.zoo.errors import InputError, ensure
from layerboard.zoo.view.photos import as_seen, decoding, open_file

EXPECTED = (
    "images of Pillow, paths, bytes, open files, arrays uint8 or bool [height width] or [height width "
    "channels], arrays uint16 [height width], or tensors [channels height width] of uint8 or of floats "
    "in 0..1"
)
FIELDS = {"bytes", "path"}  # of an image that ``datasets`` has not decoded
CHANNELS = (1, 3, 4)  # grey, colour, colour with alpha


def pixels(source: object) -> Image.Image:
    """The RGB image as people see it (`zoo.view.photos.as_seen`) of anything that is `EXPECTED`.

    Also of a mapping with ``bytes`` or ``path``, as ``datasets`` stores images. Raises InputError for what is
    no image, or cannot be decoded.
    """
    what = f"cannot decode image {source}" if isinstance(source, str | PathLike) else "cannot decode an image"
    if (file := file_of(source)) is None:
        image = in_memory(source)
        with decoding(what):
            return as_seen(image)
    with decoding(what), open_file(file) as image:
        return as_seen(image)


def is_one(source: object) -> bool:
    """Whether something is a single image; an array of several has four axes, or holds paths."""
    if isinstance(source, str | PathLike | bytes | bytearray | memoryview | Image.Image | BufferedIOBase):
        return True
    if isinstance(source, Mapping):
        return len(source) > 0 and {*source} <= FIELDS
    kind = getattr(getattr(source, "dtype", None), "kind", "u")  # torch's have no kind
    return len(getattr(source, "shape", ())) in (2, 3) and kind in "bu" and not hasattr(source, "columns")


def file_of(source: Any) -> str | PathLike[str] | BytesIO | None:  # noqa: ANN401
    """The path of an image file, or its bytes; None for an object that holds pixels, or that is no image."""
    if isinstance(source, Mapping) and source and {*source} <= FIELDS:
        source = source.get("bytes") or source.get("path")
    if isinstance(source, str | PathLike):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return BytesIO(source)
    if callable(getattr(source, "read", None)) and callable(getattr(source, "seek", None)):
        source.seek(0)
        if isinstance(content := source.read(), bytes):
            return BytesIO(content)
    return None


def in_memory(source: Any) -> Image.Image:  # noqa: ANN401
    """An object that holds pixels as an image of Pillow; raises InputError for any other object."""
    if isinstance(source, Image.Image):
        return source
    ensure(hasattr(source, "shape"), f"expected {EXPECTED}, found a {type(source).__name__}")
    is_tensor = callable(getattr(source, "detach", None))
    if is_tensor:
        source = source.detach().cpu()
        source = source.float() if source.is_floating_point() else source
    values = np.asarray(source)
    if is_tensor and values.ndim == 3 and values.shape[0] in CHANNELS:
        values = np.moveaxis(values, 0, -1)
    kind = f"{values.dtype} {list(np.shape(source))}"
    if is_tensor and values.dtype.kind == "f":
        if not (np.isfinite(values).all() and values.min(initial=0) >= 0 and values.max(initial=0) <= 1):
            raise InputError(
                f"expected {EXPECTED}, found a tensor of values outside 0..1; give the images before they "
                "are normalised"
            )
        values = np.rint(255 * values).astype(np.uint8)
    if values.dtype == np.bool_:
        values = values * np.uint8(255)
    values = values[..., 0] if values.shape[2:] == (1,) else values
    deep = values.dtype == np.uint16 and values.ndim == 2
    is_image = values.ndim == 2 or (values.ndim == 3 and values.shape[2] in CHANNELS)
    if not (deep or values.dtype == np.uint8) or not is_image or not values.size:
        raise InputError(f"expected {EXPECTED}, found {kind}")
    return Image.fromarray(np.ascontiguousarray(values))
