"""Reading files that others wrote: regular files of a bounded size.

A pipe would be waited for, a device would be read until the memory ends. Both are errors of the operating
system here, so whoever reads says what is wrong in the sentence that it has for files that cannot be read.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

MOST_BYTES = 2**31  # maximum size of a file that is read into memory as a whole


def require_regular(path: Path | str) -> int:
    """Size in bytes of a regular file, or of what a link leads to; raises OSError for anything else."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise PermissionError(
            errno.EPERM, "it is a pipe, a device or a socket; save it as a regular file", str(path)
        )
    return status.st_size


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file, opened to be read; raises OSError for anything else."""
    require_regular(path)
    return Path(path).open("rb")


def read_regular(path: Path | str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file; raises OSError for anything else, or for more than ``most``."""
    if (size := require_regular(path)) > most:
        what = f"it has {size:,} bytes, of at most {most:,}"
        raise OSError(errno.EFBIG, what, str(path))
    return Path(path).read_bytes()
