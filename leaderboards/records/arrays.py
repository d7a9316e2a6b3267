"""Arrays of an analysis: one compressed ``.npz`` for each backbone and task."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from zoo.atomic import whole_file


def write_arrays(arrays: Mapping[str, NDArray[np.generic]], path: Path) -> None:
    """Write named arrays so that a reader sees either all of the file or none."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
