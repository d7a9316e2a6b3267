"""Images in a .zip, unpacked once into the cache."""

import shutil
import stat
import zipfile
import zlib
from hashlib import blake2b
from pathlib import Path

from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.reading.files import require_free_bytes, require_inside
from layerboard.tasks.datasets.reading.remote import fetched
from layerboard.zoo.atomic import move_once, remove_leftovers, temporary_folder
from layerboard.zoo.errors import InputError, first_line

FREE = 2**30  # bytes that an archive may unpack to, however small it is
RATIO = 100  # largest number of bytes that one byte of a larger archive may unpack to
MOST_FILES = 2_000_000
UTF_8 = 0x800  # flag of a member whose name is in UTF-8
ENCRYPTED = 0x1  # flag of an encrypted member


def unpacked(location: str, cache: Path) -> str:
    """The folder below ``cache`` with the content of a .zip or of an address; any other location unchanged.

    The folder is named by a digest of names, sizes and checksums of all members, so an archive is unpacked
    once. Hidden files are left out, and folders that hold nothing but one folder are skipped. Raises
    InputError for a file of another kind, a damaged or encrypted archive, links, names outside of the folder,
    or a size that no images have.
    """
    location = fetched(location, cache)
    path = Path(location)
    if location.startswith(PREFIX) or not path.is_file():
        return location
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"expected a folder or a .zip for --images, found the file {path}; unpack it or name its folder"
        )
    try:
        with zipfile.ZipFile(path) as archive:
            root = _unpack(path, archive, cache / "images")
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"cannot unpack {path} into {cache}: {first_line(error)}") from error
    while len(below := [*root.iterdir()]) == 1 and below[0].is_dir():
        (root,) = below
    return str(root)


def _unpack(path: Path, archive: zipfile.ZipFile, place: Path) -> Path:
    """The folder in ``place`` that holds the members of an archive."""
    members = _members(path, archive)
    content = sorted((name, member.file_size, member.CRC) for name, member in members.items())
    root = place / blake2b(repr(content).encode(), digest_size=16).hexdigest() / path.stem
    if root.is_dir():
        return root
    remove_leftovers([place])
    whole = sum(member.file_size for member in members.values())
    with temporary_folder(place) as draft:
        require_free_bytes(whole, place, f"{path} unpacks to")
        for name, member in members.items():
            target = draft / path.stem / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, target.open("xb") as file:
                shutil.copyfileobj(source, file)
        return move_once(draft / path.stem, root)


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files in an archive that are not hidden, by name; raises InputError for unsafe ones."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = require_inside(_name(member), str(path))
        if member.is_dir() or any(part.startswith((".", "__MACOSX")) for part in name.split("/")):
            continue
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise InputError(
                f"expected only files and folders in {path}, found the link or device {name!r}; leave it out"
            )
        if member.flag_bits & ENCRYPTED:
            raise InputError(f"{path} is encrypted; unpack it and name its folder")
        if name in members:
            raise InputError(f"expected each file once in {path}, found {name!r} twice; pack it again")
        members[name] = member
    whole = sum(member.file_size for member in members.values())
    if len(members) > MOST_FILES or whole > max(FREE, RATIO * path.stat().st_size):
        raise InputError(
            f"{path} unpacks to {len(members):,} files of {whole / 1e9:,.1f} GB, too much for images in "
            f"{path.stat().st_size / 1e6:,.1f} MB; if it is right, unpack it and name its folder"
        )
    if not members:
        raise InputError(f"expected images in {path}, found no file; give another archive or a folder")
    return members


def _name(member: zipfile.ZipInfo) -> str:
    """The name of a member, also if it is in UTF-8 without saying so, as programs of macOS write it."""
    if member.flag_bits & UTF_8 or member.filename.isascii():
        return member.filename
    try:
        return member.filename.encode("cp437").decode()
    except UnicodeError:
        return member.filename
