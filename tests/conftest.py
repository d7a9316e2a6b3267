"""Settings of all tests: no network, one thread for each of several test processes, and little garbage."""

import gc
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
if "PYTEST_XDIST_WORKER" in os.environ:  # libraries read these when they are imported
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

vars(re)["_MAXCACHE"] = 4096  # transformers compiles 700 patterns for each network, and Python keeps 512
gc.disable()  # imports and collected tests stay: to walk over them again and again takes seconds

import pytest
import torch
from PIL import Image

from layerboard.zoo.view import photos

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

TOGETHER = (
    "benchmark/commands/test_docstrings.py",
    "benchmark/commands/test_result.py",
    "benchmark/test_extending.py",
    "benchmark/engines/test_ray.py",
    "benchmark/test_look.py",
    "benchmark/test_own_images.py",
    "benchmark/test_resume.py",
    "benchmark/test_sets.py",
    "benchmark/test_several_datasets.py",
    "benchmark/test_transforms.py",
    "benchmark/test_tutorials.py",
    "leaderboards/exchange/test_repository.py",
    "leaderboards/inside/test_drawings.py",
    "leaderboards/report/test_browser.py",
    "leaderboards/report/test_look_browser.py",
    "tests/test_conformance.py",
    "tests/test_house.py",
    "workshop/training/test_train.py",
)
"""Files whose tests share what takes seconds to make: one process runs all of a file."""


@pytest.fixture(scope="session", autouse=True)
def _unflushed() -> Iterator[None]:
    """What tests write may be lost with the machine: waiting for the disk takes a 25th of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda file: None)
        yield


@pytest.fixture
def without_heic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All is as where the extra ``heic`` is not installed."""
    Image.init()
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    kept = {name: opening for name, opening in Image.OPEN.items() if name != "HEIF"}
    endings = {ending: name for ending, name in Image.EXTENSION.items() if name != "HEIF"}
    monkeypatch.setattr(Image, "OPEN", kept)
    monkeypatch.setattr(Image, "EXTENSION", endings)
    cached = (photos.heif_broken, photos.formats, photos.endings)
    for each in cached:
        each.cache_clear()
    yield
    for each in cached:
        each.cache_clear()


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, but not among what lasts as long as the process."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests go one by one to the processes that are free, those of a file of `TOGETHER` to one."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::")[0]
            return file if file.endswith(TOGETHER) else nodeid

    gc.enable()  # of the process that gives tests away and collects none
    return Together(config, log) if config.getvalue("dist") == "load" else None
