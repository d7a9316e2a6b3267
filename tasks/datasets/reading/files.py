"""Files of a dataset, in a folder or as rows of a pack (`tasks.datasets.packs`).

The path of a file in a pack is the pack's name, an exclamation mark and the path in the official layout,
such as ``hf:/data/pack!/DAVIS/ImageSets/2017/val.txt``. It is enough to read the file in any process. Dataset
readers use these functions for both folders and packs.
"""

import errno
import os
import shutil
import threading
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path, PurePosixPath

from PIL import ExifTags, Image

from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.integrity import explaining, mismatch, require, require_distinct
from layerboard.tasks.datasets.packs.pack import INSIDE, Pack, find_pack, open_pack
from layerboard.zoo.errors import InputError, MissingDataError, ensure, shortened
from layerboard.zoo.reading import read_regular
from layerboard.zoo.view.photos import decoding, open_file

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")  # of images, case-insensitive

TURNED = (5, 6, 7, 8)  # EXIF orientations that swap width and height
OTHER_VERSION = "the annotations belong to another version of the image"  # what to do about another size
RESAVE = "save the mask at the size of the image"  # the same, for masks
LONGEST_NAME = 255  # bytes of a file or folder name, the limit of file systems
_packs: dict[str, Pack] = {}  # open packs by name, in this process
_opening = threading.Lock()


def is_packed(path: Path | str) -> bool:
    """Whether a path is in a pack."""
    return str(path).startswith(PREFIX)


def data_root(data: Path) -> Path:
    """A data folder as a path that is valid in other processes; the root of a pack, which is opened again."""
    if not is_packed(data) or str(data).endswith(INSIDE):
        return data
    name, _ = find_pack(str(data))
    with _opening:
        _packs[name] = open_pack(name)
    return Path(name + INSIDE)


def _located(path: Path | str) -> tuple[Pack | None, str]:
    """A pack (None for the disk) and the path in it; raises InputError if there is no such pack."""
    if not is_packed(path):
        return None, ""
    name, _, inner = str(path).partition(INSIDE)
    if name not in _packs:
        with _opening:
            if name not in _packs:
                _packs[name] = open_pack(name)
    return _packs[name], inner.strip("/")


def is_file(path: Path) -> bool:
    """Whether there is a file."""
    pack, inner = _located(path)
    return path.is_file() if pack is None else pack.row(inner) is not None


def is_folder(path: Path) -> bool:
    """Whether there is a folder."""
    pack, inner = _located(path)
    return path.is_dir() if pack is None else pack.folder(inner) is not None


def exists(path: Path) -> bool:
    """Whether there is a file or folder."""
    return is_file(path) or is_folder(path) if is_packed(path) else path.exists()


def require_free_bytes(whole: int, place: Path, what: str) -> None:
    """Raise InputError if a disk has not that many bytes left; ``what`` begins the sentence."""
    free = shutil.disk_usage(place).free
    left = f"{place} has {free / 1e9:.1f} GB left; name another --cache"
    ensure(whole <= free, f"{what} {whole / 1e9:.1f} GB, but {left}")


def require_directory(path: Path, what: str) -> None:
    """Raise MissingDataError unless a directory exists."""
    require_there(path, what, folder=True)


def require_there(path: Path, what: str, *, folder: bool) -> None:
    """Raise MissingDataError unless a folder, or a file, exists."""
    if not (is_folder if folder else is_file)(path):
        kind = "directory" if folder else "file"
        state = f"is not a {kind}" if exists(path) else "does not exist"
        raise MissingDataError(f"expected {what} at {path}, which {state}")


def read_bytes(path: Path | str) -> bytes:
    """Bytes of a file; raises OSError if it is missing, InputError if it is in a damaged pack."""
    pack, inner = _located(path)
    return read_regular(path) if pack is None else pack.read(inner)


def read_lines(path: Path, what: str) -> list[str]:
    """The lines of a text file, without blank ones; ``what`` it is, for people; raises InputError."""
    with explaining(f"expected {what} at {path}", OSError, UnicodeDecodeError):
        lines = read_bytes(path).decode().splitlines()
    return [line.strip() for line in lines if line.strip()]


def read_names(path: Path, noun: str) -> list[str]:
    """Sorted file names from a list with one name per line; raises InputError."""
    names = read_lines(path, f"a list of {noun}s")
    require(names, f"one {noun} a line in {path}")
    require_distinct(names, f"one {noun} a line in {path}, each once")
    return sorted(require_inside(name, str(path)) for name in names)


def stamp(path: Path | str) -> tuple[int, int | str]:
    """Size of a file in bytes, and its change time in ns or, in a pack, its digest; raises OSError."""
    pack, inner = _located(path)
    if pack is not None:
        return pack.stamp(inner)
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


def names_and_sizes(paths: Iterable[Path]) -> list[tuple[str, int]]:
    """Name and size of each file, which identify it independent of its location; raises as `stamp`."""
    return [(path.name, stamp(path)[0]) for path in paths]


def entries_of(folder: Path) -> dict[str, bool | None]:
    """Sorted names in a folder, except hidden ones: whether each is a folder; None if it is no file either.

    Raises InputError.
    """
    pack, inner = _located(folder)
    with explaining(f"expected a readable folder at {folder}", OSError):
        if pack is None:
            with os.scandir(folder) as listing:
                kinds = {entry.name: _is_folder(entry) for entry in listing}
        elif (content := pack.folder(inner)) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
        else:
            kinds = {name: row is None for name, row in content.items()}
    return {name: kinds[name] for name in sorted(kinds) if not name.startswith(".")}


def _is_folder(entry: os.DirEntry[str]) -> bool | None:
    """Whether an entry, or the target of its link, is a folder; None for a link to itself or to nothing."""
    try:
        return False if entry.is_file() else True if entry.is_dir() else None
    except OSError:
        return None


def folder_names(folder: Path) -> list[str]:
    """Sorted names of the folders in a folder, except hidden ones; raises InputError."""
    return [readable(name, folder) for name, is_folder in entries_of(folder).items() if is_folder]


def file_names(folder: Path, extensions: tuple[str, ...] = IMAGE_EXTENSIONS) -> list[str]:
    """Sorted names of the files with one of the (lower-case) extensions; raises InputError."""
    files = (name for name, is_folder in entries_of(folder).items() if is_folder is False)
    return [readable(name, folder) for name in files if name.lower().endswith(extensions)]


def file_paths(folder: Path, extension: str) -> list[Path]:
    """Paths of the files of a folder with the (lower-case) extension, sorted by name; raises InputError."""
    return [folder / name for name in file_names(folder, (extension,))]


def readable(name: str, folder: Path) -> str:
    """A name in a folder; raises InputError for bytes that are not text, which no record can store."""
    if name.isascii():  # the fast case
        return name
    return require_text(name, f"names of files in {str(folder)!a}")


def require_text(name: str, what: str) -> str:
    """A file name, unchanged; raises InputError unless it is UTF-8 (on disk or in JSON)."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"expected UTF-8 as {what}, found {name!a}; rename it") from error
    return name


def require_inside(name: str, where: str) -> str:
    """A relative file name that stays below its folder; raises InputError for any other."""
    path = PurePosixPath(require_text(name, f"names of files in {where}"))
    if "\0" in name or any(len(part.encode()) > LONGEST_NAME for part in path.parts):
        raise mismatch(f"names of files of at most {LONGEST_NAME} bytes in {where}", shortened(name))
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name:
        raise mismatch(f"the name of a file below the dataset's folder in {where}", repr(name))
    return name


def open_image(path: Path | str) -> Image.Image:
    """An image, not decoded yet; raises as `read_bytes` and `zoo.view.photos.open_file` do."""
    return open_file(BytesIO(read_bytes(path)) if is_packed(path) else path)


def image_size(path: Path, *, turned: bool = False) -> tuple[int, int]:
    """Width and height of an image from its header; with ``turned``, after its EXIF rotation.

    Raises UnreadableImageError.
    """
    with decoding(f"cannot read the header of image {path}"), open_image(path) as image:
        swapped = turned and image.getexif().get(ExifTags.Base.Orientation) in TURNED
        return (image.height, image.width) if swapped else image.size


def require_size(path: Path, size: tuple[int, int], like: str, remedy: str) -> None:
    """Raise InputError unless an image has a (width, height), which ``like`` has or states, for people."""
    actual, sized = image_size(path), f"{path} to be {size[0]} x {size[1]} pixels as {like}"
    require(actual == size, sized, f"{actual[0]} x {actual[1]}", remedy)
