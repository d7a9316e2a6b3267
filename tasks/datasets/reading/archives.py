"""Images in archives, a .zip or .tar files, unpacked once into the cache."""

import tarfile
import zipfile
import zlib
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
    places = [fetched(each, cache) for each in expanded(location)]
    paths, name = [*map(Path, places)], set_name(location)
    if len(paths) == 1 and not paths[0].is_file():
        name, paths = paths[0].resolve().name, tars_below(paths[0])
        if not paths:
            return places[0]
    try:
        root = _unpack(paths, name, cache / "images")
    except (OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
        what = paths[0] if len(paths) == 1 else location
        raise InputError(f"cannot unpack {what} into {cache}: {first_line(error)}") from error
    while len(below := [*root.iterdir()]) == 1 and below[0].is_dir():
        (root,) = below
    return str(root)


def _unpack(paths: list[Path], name: str, place: Path) -> Path:
    if all(path.name.lower().endswith(TAR) for path in paths):
        return untar(paths, name, place)
    (path,) = paths
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"expected a folder, a .zip or a .tar for --images, found the file {path}; unpack it or name its "
            "folder"
        )
    return unzip(path, place)
