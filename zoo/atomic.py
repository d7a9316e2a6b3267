"""Files that are there whole or not at all, and what is left of writers that were killed."""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
    temporary = Path(name)
    try:
        _lock(handle)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(READABLE)
        os.replace(temporary, path)
    except Exception as error:
        if not isinstance(error, OSError) and shutil.disk_usage(path.parent).free < _FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)


def write_whole(path: Path, content: str | bytes | bytearray) -> None:
    """Write a file, text in UTF-8, as `whole_file` does."""
    with whole_file(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """A folder in ``parent`` that goes away at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=PARTIAL))
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(handle)
        yield folder
    finally:
        os.close(handle)
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


def _lock(handle: int) -> None:
    # A file system without locks: then it is the age that tells.
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_leftover(path: Path) -> bool:
    try:
        age = time.time() - path.lstat().st_mtime
        if age < _GRACE or path.is_symlink():
            return False
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
