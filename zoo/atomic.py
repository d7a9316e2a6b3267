"""Files that are there whole or not at all, and what is left of writers that were killed."""

import contextlib
import errno
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

READABLE = 0o644  # for others, too: a cache or an output folder can be shared
PARTIAL = ".partial-"  # begins the names of temporary files and folders
_GRACE = 10.0  # seconds for which a new file may lack its lock
_FULL = 2**16  # free bytes under which a disk is full
_DAY = 24 * 3600.0  # seconds after which a temporary file is a leftover where locks do not work


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write; it takes that name at the end, unless something raises.

    The name appears after the bytes are on the disk, so it holds after a power cut, too. Its folder is made.
    Where the disk is full it raises OSError (ENOSPC), whatever the library that wrote made of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PARTIAL)
    os.close(handle)  # Windows renames no file that is open
    temporary = Path(name)
    try:
        with _locked(temporary):
            yield temporary
            with temporary.open("r+b") as file:  # Windows flushes only what may be written
                os.fsync(file.fileno())
            temporary.chmod(READABLE)
            os.replace(temporary, path)
    except Exception as error:
        if not isinstance(error, OSError) and shutil.disk_usage(path.parent).free < _FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes | bytearray) -> None:
    """Write a file, text in UTF-8, as `whole_file` does."""
    with whole_file(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """A folder in ``parent`` that goes away at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=PARTIAL))
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(folders: Iterable[Path]) -> None:
    """Remove temporary files and folders below some folders whose writers were killed; others stay.

    A living writer holds a lock, which ends with its process, on whichever machine that is.
    """
    for folder in folders:
        for parent, below, files in os.walk(folder):
            left = [Path(parent, name) for name in (*below, *files) if name.startswith(PARTIAL)]
            below[:] = [name for name in below if not name.startswith(PARTIAL)]
            for path in filter(_is_leftover, left):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        path.unlink()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock on a temporary file or folder, by which others see that its writer lives.

    Not on Windows, where a lock is in the way of its own writer: there it is the age that tells.
    """
    if sys.platform == "win32":
        yield
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        # A file system without locks: then it is the age that tells, too.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _is_leftover(path: Path) -> bool:
    try:
        age = time.time() - path.lstat().st_mtime
        if age < _GRACE or path.is_symlink():
            return False
        if sys.platform == "win32":
            return age > _DAY
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return age > _DAY
    finally:
        os.close(handle)
    return True
