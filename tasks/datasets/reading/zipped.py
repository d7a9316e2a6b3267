"""Images in a .zip, unpacked once into the cache."""

import shutil
import stat
import zipfile
from hashlib import blake2b
from pathlib import Path

from layerboard.tasks.datasets.reading.files import require_free_bytes, require_inside
from layerboard.zoo.atomic import move_once, remove_leftovers, temporary_folder
from layerboard.zoo.errors import InputError

FREE = 2**30  # bytes that an archive may unpack to, however small it is
RATIO = 100  # largest number of bytes that one byte of a larger archive may unpack to
MOST_FILES = 2_000_000
UTF_8 = 0x800  # flag of a member whose name is in UTF-8
ENCRYPTED = 0x1  # flag of an encrypted member


def unzip(path: Path, place: Path) -> Path:
    """The folder below ``place`` with the content of a .zip, which is unpacked once.

    The folder is named by a digest of names, sizes and checksums of all members. Hidden files are left out.
    Raises InputError for an encrypted archive, links, names outside of the folder, or a size that no images
    have, and the errors of ``zipfile`` for a damaged one.
    """
    with zipfile.ZipFile(path) as archive:
        return _unpack(path, archive, place)


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
        if member.is_dir() or is_hidden(name):
            continue
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise no_file(path, name)
        if member.flag_bits & ENCRYPTED:
            raise InputError(f"{path} is encrypted; unpack it and name its folder")
        if name in members:
            raise InputError(f"expected each file once in {path}, found {name!r} twice; pack it again")
        members[name] = member
    require_likely_size(path, len(members), sum(member.file_size for member in members.values()))
    if not members:
        raise InputError(f"expected images in {path}, found no file; give another archive or a folder")
    return members


def is_hidden(name: str) -> bool:
    """Whether a file in an archive is hidden, or in a folder that is."""
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))


def no_file(path: Path, name: str) -> InputError:
    """The error for a link or device in an archive."""
    return InputError(
        f"expected only files and folders in {path}, found the link or device {name!r}; leave it out"
    )


def require_likely_size(path: Path, files: int, whole: int) -> None:
    """Raise InputError if an archive unpacks to more files, or ``whole`` bytes, than images have."""
    if files > MOST_FILES or whole > max(FREE, RATIO * path.stat().st_size):
        raise InputError(
            f"{path} unpacks to {files:,} files of {whole / 1e9:,.1f} GB, too much for images in "
            f"{path.stat().st_size / 1e6:,.1f} MB; if it is right, unpack it and name its folder"
        )


def _name(member: zipfile.ZipInfo) -> str:
    """The name of a member, also if it is in UTF-8 without saying so, as programs of macOS write it."""
    if member.flag_bits & UTF_8 or member.filename.isascii():
        return member.filename
    try:
        return member.filename.encode("cp437").decode()
    except UnicodeError:
        return member.filename
