"""Images in a .zip, unpacked once into the cache."""

import shutil
import stat
import zipfile
from collections.abc import Callable, Collection
from hashlib import blake2b
from pathlib import Path
from typing import IO

from layerboard.tasks.datasets.integrity import require
from layerboard.tasks.datasets.reading.files import require_free_bytes, require_inside
from layerboard.zoo.atomic import move_once, remove_leftovers, temporary_folder
from layerboard.zoo.errors import InputError, some

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
        members = _members(path, archive)
        content = sorted((name, member.file_size, member.CRC) for name, member in members.items())

        def write(folder: Path) -> None:
            whole = sum(member.file_size for member in members.values())
            require_free_bytes(whole, place, f"{path} unpacks to")
            for name, member in members.items():
                with archive.open(member) as source:
                    write_member(folder / name, source)

        return written_once(place, content, path.stem, write)


def written_once(place: Path, mark: object, name: str, write: Callable[[Path], None]) -> Path:
    """The folder ``name`` below ``place`` of the archives of a mark; ``write`` fills a new one."""
    root = place / blake2b(repr(mark).encode(), digest_size=16).hexdigest() / name
    if root.is_dir():
        return root
    remove_leftovers([place])
    with temporary_folder(place) as draft:
        write(draft / name)
        return move_once(draft / name, root)


def write_member(path: Path, source: IO[bytes]) -> None:
    """Write a new file, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        shutil.copyfileobj(source, file)


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files in an archive that are not hidden, by name; raises InputError for unsafe ones."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        is_plain = stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG)
        name = member_name(path, _name(member), is_plain or member.is_dir())
        if member.is_dir() or not name:
            continue
        if member.flag_bits & ENCRYPTED:
            raise InputError(f"{path} is encrypted; unpack it and name its folder")
        require_new(path, name, members)
        members[name] = member
    require_likely_size(path, len(members), sum(member.file_size for member in members.values()))
    require_images(path, members, members)
    return members


def member_name(path: Path, name: str, is_plain: bool) -> str:
    """The name of a file or folder in an archive; "" for a hidden one, or one in a hidden folder.

    Raises InputError for a name that leads elsewhere, and for what is neither file nor folder.
    """
    if any(part.startswith((".", "__MACOSX")) for part in require_inside(name, str(path)).split("/")):
        return ""
    require(is_plain, f"only files and folders in {path}", f"the link or device {name!r}", "leave it out")
    return name


def require_new(path: Path, name: str, names: Collection[str]) -> None:
    """Raise InputError for a file of an archive whose name another one before it has."""
    require(name not in names, f"each file once in {path}", f"{name!r} twice", "pack it again")


def require_images(path: Path, images: Collection[str], names: Collection[str]) -> None:
    """Raise InputError for an archive without images, which has files of these names."""
    files = some(sorted(names)) or "no file"
    require(images, f"images in {path}", files, "give another archive or a folder")


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
