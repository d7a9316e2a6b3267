"""Numbers depend on the data and the weights: not on batches, threads, orders or file systems."""

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from layerboard.benchmark import api as runner
from layerboard.benchmark.engines.base import LocalEngine
from layerboard.benchmark.jobs.job import BackboneJobs
from layerboard.benchmark.jobs.pieces import Pieces
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.runs import assert_same_records, run

OF_EACH_KIND = ("knn", "davis", "spair", "cluster-object", "cka")
"""Tasks on vectors, videos, pairs of images and tiles, and between backbones."""


class Backwards(Pieces):
    """Gives the backbones away in the opposite order, as a faster device might take them."""

    def __init__(self, backbones: Sequence[BackboneJobs]) -> None:
        super().__init__(backbones[::-1])


@pytest.fixture
def shuffled_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every folder lists its files in another order each time, as some file systems do."""
    draw, listdir, scandir = random.Random(0), os.listdir, os.scandir

    class Scanned:
        def __init__(self, path: Any = ".") -> None:
            with scandir(path) as found:
                entries = list(found)
            draw.shuffle(entries)
            self._entries = iter(entries)

        def __enter__(self) -> Iterator[os.DirEntry[str]]:
            return self._entries

        def __next__(self) -> os.DirEntry[str]:
            return next(self._entries)

        def __exit__(self, *_: object) -> None:
            pass

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            return iter(self._entries)

    def listed(path: Any = ".") -> list[Any]:
        names = listdir(path)
        draw.shuffle(names)
        return names

    monkeypatch.setattr(os, "listdir", listed)
    monkeypatch.setattr(os, "scandir", Scanned)


@pytest.mark.slow
@pytest.mark.usefixtures("shuffled_listings")
def test_small_batches_threads_and_the_orders_of_backbones_and_listings(
    tmp_path: Path, whole: Whole, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole run that this is compared with takes all images of these sources as one batch."""
    monkeypatch.setattr(runner, "find_engine", lambda *_: LocalEngine())
    monkeypatch.setattr(runner, "Pieces", Backwards)
    assert len({tuple(os.listdir(data)) for _ in range(20)}) > 1
    options = {"data": data, "batch_size": 3, "workers": 4}
    records = run(tmp_path, BACKBONES[::-1], *OF_EACH_KIND, **options)
    assert_same_records(records, whole.records.query("task in @OF_EACH_KIND"))
