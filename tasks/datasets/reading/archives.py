"""Images in archives, a .zip or .tar files, unpacked once into the cache."""

import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.reading.remote import fetched
from layerboard.tasks.datasets.reading.tarred import TAR, expanded, set_name, tars_below, untar
from layerboard.tasks.datasets.reading.zipped import unzip
from layerboard.zoo.errors import InputError, first_line


def unpacked(location: str, cache: Path) -> str:
    """The folder below ``cache`` with the content of archives or of an address; other locations unchanged.

    Archives are a .zip, a .tar, several such as ``photos-{000..003}.tar`` or ``'photos-*.tar'``, or a folder
    with .tar files and no images. Folders that hold nothing but one folder are skipped. Raises InputError
    for a file of another kind, or an archive that cannot be unpacked.
    """
    if location.startswith(PREFIX):
        return location
    copies = {each: fetched(each, cache) for each in expanded(location)}
    files, name = {each: Path(copy) for each, copy in copies.items()}, set_name(location)
    if len(files) == 1 and not (path := next(iter(files.values()))).is_file():
        name, files = path.resolve().name, {str(each): each for each in tars_below(path)}
        if not files:
            return next(iter(copies.values()))
    try:
        root = _unpack(files, name, cache / "images")
    except (OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"cannot unpack {location} into {cache}: {first_line(error)}") from error
    while len(below := [*root.iterdir()]) == 1 and below[0].is_dir():
        (root,) = below
    return str(root)


def _unpack(files: Mapping[str, Path], name: str, place: Path) -> Path:
    if all(path.name.lower().endswith(TAR) for path in files.values()):
        return untar(files, name, place)
    (path,) = files.values()
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"expected a folder, a .zip or a .tar for --images, found the file {path}; unpack it or name its "
            "folder"
        )
    return unzip(path, place)
