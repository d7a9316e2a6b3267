"""Arrays of an analysis, or of a task's examples: one compressed ``.npz`` per backbone and task."""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.zoo.atomic import whole_file
from layerboard.zoo.reading import open_regular

UNPACKED = 2**28  # bytes that any array may have
RATIO = 100  # maximum unpacked bytes of a larger array per stored byte


def write_arrays(arrays: Mapping[str, NDArray[np.generic]], path: Path) -> None:
    """Write named arrays so that a reader sees either all of the file or none."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def require_bounded(archive: "np.lib.npyio.NpzFile") -> None:
    """Raise ValueError for an array that unpacks to far more bytes than are stored."""
    for member in archive.zip.infolist() if archive.zip else ():
        if member.file_size > max(UNPACKED, RATIO * member.compress_size):
            raise ValueError(
                f"{member.filename} unpacks from {member.compress_size:,} bytes to {member.file_size:,}, "
                f"more than {RATIO} times as many; np.savez writes it as it is"
            )


def read_arrays(path: Path, names: Collection[str] = ()) -> dict[str, NDArray[np.generic]]:
    """All arrays of a file, or those with some names.

    Raises OSError if it cannot be read, and ValueError if it is damaged, of another kind, or lacks an array.
    """
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as archive:
            require_bounded(archive)
            return {name: archive[name] for name in names or archive.files}
    except OSError:
        raise
    except Exception as error:  # any error: a damaged archive can fail in many ways
        raise ValueError(f"expected arrays in {path}: {error}") from error
