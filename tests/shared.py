"""What tests share: what takes seconds to make, made once by the process that needs it first, and tables."""

import csv
import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Made = TypeVar("Made")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> Made:
    """What ``make`` returns of an empty folder that it may fill; other processes wait, and read it.

    What it returns must pickle. Files in the folder are of all processes and not to be changed.
    """
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # that of the whole session
    place, result = root / f"shared-{name}", root / f"shared-{name}.pickle"
    with (root / f"shared-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            place.mkdir()
            result.write_bytes(pickle.dumps(make(place)))
        found: Made = pickle.loads(result.read_bytes())
    return found


def table_rows(path: Path) -> tuple[tuple[str, ...], ...]:
    """The rows of a CSV file below its head."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(map(tuple, csv.reader(file)))[1:]
