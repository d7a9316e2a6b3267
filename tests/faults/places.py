"""Tiny runs to be disturbed: their data, and the records that they should end with."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.records.record import read_records
from tests.benchmark.runs import comparable, run, write_data

BACKBONES = ("mini-fs", "mini-dino", "mini-random")
TASKS = ("knn", "davis", "cluster-object", "cka", "attention-distance")
LAYERS = "1,12"


@dataclass(frozen=True)
class Reference:
    """A run that nothing disturbed: its data, its folder with ``out`` and ``cache``, and its records."""

    data: Path
    place: Path
    records: pd.DataFrame


@cache
def reference_in(folder: Path) -> Reference:
    """Write the data into a folder and carry out one undisturbed run, once for all parts of the trials."""
    data = write_data(folder / "data")
    return Reference(data, folder / "whole", again(folder / "whole", data))


def again(place: Path, data: Path) -> pd.DataFrame:
    """Carry out the run in this process, from wherever it stands."""
    return run(place, BACKBONES, *TASKS, data=data, layers=LAYERS, pages=True)


def difference(place: Path, reference: Reference) -> str:
    """How the records below a place differ from what they should be; "" if they do not."""
    found = comparable(read_records([place / "out" / "records"]))
    wanted = comparable(reference.records)
    found = found.assign(suite=wanted["suite"].iloc[0])
    try:
        pd.testing.assert_frame_equal(found, wanted, check_exact=False, rtol=0, atol=1e-4)
    except AssertionError as error:
        return str(error).replace("\n", " ")[:200]
    return ""
