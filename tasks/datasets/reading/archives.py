"""Images in archives, a .zip or shards of WebDataset, unpacked once into the cache."""

import tarfile
import zipfile
import zlib
from pathlib import Path

from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.integrity import explaining, require
from layerboard.tasks.datasets.reading.webdataset import TAR, expanded, read_shards, set_name, tars_below
from layerboard.tasks.datasets.reading.zipped import unzip

_DAMAGE = (
    *(OSError, EOFError, RuntimeError, ValueError, MemoryError),
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


def unpacked(location: str, cache: Path) -> str:
    """The folder below ``cache`` with the content of archives; other locations unchanged.

    Archives are a .zip, a .tar, several such as ``photos-{000..003}.tar`` or ``'photos-*.tar'``, or a folder
    with .tar files and no images. Folders that hold nothing but one folder are skipped. Raises InputError
    for a file of another kind, or an archive that cannot be unpacked.
    """
    if location.startswith(PREFIX):
        return location
    paths, name = [*map(Path, expanded(location))], set_name(location)
    if len(paths) == 1 and not paths[0].is_file():
        paths, name = tars_below(Path(location)), Path(location).resolve().name
        if not paths:
            return location
    with explaining(f"cannot unpack {location} into {cache}", *_DAMAGE):
        if all(path.name.lower().endswith(TAR) for path in paths):
            root = read_shards(paths, name, cache / "images")
        else:
            (path,) = paths
            kinds = "a folder, a .zip or a .tar for --images"
            require(zipfile.is_zipfile(path), kinds, f"the file {path}", "unpack it or name its folder")
            root = unzip(path, cache / "images")
    while len(below := [*root.iterdir()]) == 1 and below[0].is_dir():
        (root,) = below
    return str(root)
