"""Files of a dataset, wherever they are: in a folder, or as rows of a pack of parquet files.

The path of a file in a pack is the pack's name, an exclamation mark and the path in the official layout,
such as ``hf:/data/pack!/DAVIS/ImageSets/2017/val.txt``. It says all that is needed to read the file, in any
process.
Readers of datasets go through these functions and do not see the difference.
"""

import threading
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from PIL import Image

from tasks.datasets.hub_spec import PREFIX
from tasks.datasets.packs.opening import INSIDE, find_pack, open_pack
from tasks.datasets.packs.pack import Pack

FORMATS = (
    *("JPEG", "PNG", "BMP", "GIF", "PPM", "WEBP", "TIFF", "JPEG2000"),
    *(("AVIF",) if find_spec("PIL.AvifImagePlugin") else ()),
)
"""What images may be, whatever they are called: Pillow hands PostScript to Ghostscript, which runs it."""

_packs: dict[str, Pack] = {}
"""Open packs by name, in this process."""

_opening = threading.Lock()


def is_packed(path: Path | str) -> bool:
    """Whether a path is one of a pack."""
    return str(path).startswith(PREFIX)


def data_root(data: Path) -> Path:
    """A data folder by a path that holds in other processes; of a pack, opened anew, the path of its root.

    Raises:
        InputError: A pack that is not there, or is damaged.
    """
    if not is_packed(data) or str(data).endswith(INSIDE):
        return data
    name = find_pack(str(data)).name
    with _opening:
        _packs[name] = open_pack(name)
    return Path(name + INSIDE)


def _located(path: Path | str) -> tuple[Pack, str]:
    """A pack and a path in it; raises InputError where there is no such pack."""
    name, _, inner = str(path).partition(INSIDE)
    if name not in _packs:
        with _opening:
            if name not in _packs:
                _packs[name] = open_pack(name)
    return _packs[name], inner.strip("/")


def is_file(path: Path) -> bool:
    """Whether there is a file."""
    if not is_packed(path):
        return path.is_file()
    pack, inner = _located(path)
    return pack.row(inner) is not None


def is_folder(path: Path) -> bool:
    """Whether there is a folder."""
    if not is_packed(path):
        return path.is_dir()
    pack, inner = _located(path)
    return pack.folder(inner) is not None


def exists(path: Path) -> bool:
    """Whether there is a file or folder."""
    return is_file(path) or is_folder(path) if is_packed(path) else path.exists()


def packed_names(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the folders and of the files in a folder of a pack, in no order; raises FileNotFoundError."""
    pack, inner = _located(folder)
    found = pack.folder(inner)
    if found is None:
        raise FileNotFoundError(2, "No such file or directory", str(folder))
    return [*found.folders], [*found.files]


def read_bytes(path: Path | str) -> bytes:
    """Bytes of a file.

    Raises:
        OSError: It is not there.
        InputError: It is in a pack that is damaged.
    """
    if not is_packed(path):
        return Path(path).read_bytes()
    pack, inner = _located(path)
    return pack.rows.read(pack.existing(inner))


def open_image(path: Path | str) -> Image.Image:
    """An image of one of the `FORMATS`, not decoded yet; raises as `read_bytes` and Pillow's `open` do."""
    return Image.open(BytesIO(read_bytes(path)) if is_packed(path) else path, formats=FORMATS)


def stamp(path: Path | str) -> tuple[int, int | str]:
    """Bytes of a file and when it was changed, in nanoseconds; of a file of a pack, a digest in its place.

    Raises:
        OSError: It is not there.
    """
    if not is_packed(path):
        status = Path(path).stat()
        return status.st_size, status.st_mtime_ns
    pack, inner = _located(path)
    row = pack.existing(inner)
    return pack.rows.size(row), pack.rows.stamp(row)
