"""Files that are written atomically, and the cleanup of leftovers of killed writers."""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

READABLE = 0o644  # readable for others, too: a cache or an output folder can be shared
PARTIAL = ".partial-"  # prefix of the names of temporary files and folders
_GRACE = 10.0  # seconds for which a new file may lack its lock
_FULL = 2**16  # free bytes below which a disk counts as full
_DAY = 24 * 3600.0  # seconds after which a temporary file is a leftover if locks do not work


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` to write to; it gets that name at the end, unless an error is raised.

    The name appears after the bytes are on disk, so the file survives a power cut, too. Its folder is
    created. If the disk is full, OSError (ENOSPC) is raised, whatever error the writing library raised.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PARTIAL)
    os.close(handle)  # Windows cannot rename an open file
    temporary = Path(name)
    try:
        with locked(temporary):
            yield temporary
            with temporary.open("r+b") as file:  # Windows flushes only writable files
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
def temporary_folder(parent: Path, prefix: str = PARTIAL) -> Iterator[Path]:
    """A folder in ``parent`` that only this user can enter, and that is removed at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    try:
        with locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def move_once(draft: Path, target: Path) -> Path:
    """Move what was written to its place, unless another process has put the same there; returns the place.

    Raises OSError if it is not there afterwards.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        draft.rename(target)
    except OSError:  # another process was faster
        if not target.exists():
            raise
    return target


def remove_leftovers(folders: Iterable[Path], prefix: str = PARTIAL, *, below: bool = True) -> None:
    """Remove temporary files and folders whose writers were killed, also those further below some folders.

    A living writer holds a lock, which ends with its process, on whichever machine that is.
    """
    for folder in folders:
        for parent, inside, files in os.walk(folder):
            left = [Path(parent, name) for name in (*inside, *files) if name.startswith(prefix)]
            inside[:] = [name for name in inside if below and not name.startswith(prefix)]
            for path in filter(_is_leftover, left):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        path.unlink()


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file or folder, which shows others that its writer is alive; ``shared`` by several.

    Not on Windows, where a lock would block its own writer: there the age decides.
    """
    if sys.platform == "win32":
        yield
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        # A file system without locks: there the age decides, too.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def is_abandoned(path: Path, most: float) -> bool:
    """Whether no living writer holds a lock on a file or folder, on whichever machine.

    Where locks do not work, whether it was last changed more than ``most`` seconds ago. False if it cannot be
    read.
    """
    try:
        age = time.time() - path.lstat().st_mtime
        if sys.platform == "win32":
            return age > most
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return age > most
    finally:
        os.close(handle)
    return True


def _is_leftover(path: Path) -> bool:
    try:
        state = path.lstat()
    except OSError:
        return False
    return (
        time.time() - state.st_mtime >= _GRACE
        and not stat.S_ISLNK(state.st_mode)
        and is_abandoned(path, _DAY)
    )
