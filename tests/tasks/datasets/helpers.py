"""Folders rewritten in another order, so that no reader can lean on the order of a file system."""

import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from layerboard.tasks.datasets.base import Sample


def copy_shuffled(source: Path, target: Path, seed: int = 3) -> Path:
    """A copy of a folder whose files were created in a random order, with their times."""
    files = sorted(path for path in source.rglob("*") if path.is_file())
    for index in np.random.default_rng(seed).permutation(len(files)):
        path = target / files[index].relative_to(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(files[index], path)
    return target


def keys(samples: Iterable[Sample]) -> list[str]:
    """Keys of samples."""
    return [sample.key for sample in samples]
