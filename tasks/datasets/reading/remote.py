"""Images at an address that fsspec can read, such as s3://, copied once into the cache."""

from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from layerboard.tasks.datasets.reading.files import (
    address_of,
    require_free_bytes,
    require_inside,
    require_local,
)
from layerboard.zoo.atomic import move_once, remove_leftovers, temporary_folder
from layerboard.zoo.errors import InputError, first_line

VERSIONS = ("ETag", "etag", "md5Hash", "checksum", "LastModified", "last_modified", "updated", "mtime")
"""Facts of a file by which file systems tell versions apart, besides its size."""


def fetched(location: str, cache: Path) -> str:
    """The folder, or file, below ``cache`` with what is at an address; any other location unchanged.

    It is named by a digest of the names, sizes and versions of the files, so that they are copied once.
    Hidden files are left out. Raises MissingDataError if no library reads such addresses, and InputError if
    this one cannot be read, has no file or one with an unsafe name, or more than the disk holds.
    """
    address = address_of(location)
    if address is None or address.lower().startswith("file:"):  # a local folder is read in its place
        return location
    from fsspec.core import url_to_fs

    try:
        system, root = url_to_fs(address)
    except (ImportError, ValueError):
        require_local(location, "--images")
        raise
    try:
        return str(_fetch(address, system, root, cache / "images"))
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"cannot copy {address} into {cache}: {first_line(error)}") from error


def _fetch(address: str, system: Any, root: str, place: Path) -> Path:  # noqa: ANN401  # fsspec has no types
    """The local copy of a file, or of the files below a folder."""
    files: dict[str, dict[str, Any]] = system.find(root, detail=True)
    names = {path: _inside(path, root, address) for path in sorted(files)}
    names = {
        path: name for path, name in names.items() if not any(p.startswith(".") for p in name.split("/"))
    }
    if not names:
        raise InputError(f"expected images at {address}, found no file")
    facts = [(name, [files[path].get(fact) for fact in ("size", *VERSIONS)]) for path, name in names.items()]
    stem = PurePosixPath(root).name or "images"
    target = place / blake2b(repr([address, facts]).encode(), digest_size=16).hexdigest() / stem
    if target.exists():
        return target
    remove_leftovers([place])
    with temporary_folder(place) as draft:
        require_free_bytes(sum(files[path].get("size") or 0 for path in names), place, f"{address} has")
        for path, name in names.items():
            copy = draft / stem / name if path != root else draft / stem
            copy.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(path, str(copy))
        return move_once(draft / stem, target)


def _inside(path: str, root: str, address: str) -> str:
    """The name of a file below the folder, or of the file itself."""
    below = path.removeprefix(root).lstrip("/")
    return require_inside(below or PurePosixPath(path).name, address)
