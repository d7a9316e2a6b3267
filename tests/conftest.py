"""Settings of all tests: no network, one thread for each of several test processes, and little garbage."""

import gc
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DEACTIVATE_ASYNC_LOAD", "1")  # threads that read tiny files take a sixth of a load
if "PYTEST_XDIST_WORKER" in os.environ:  # libraries read these when they are imported
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

vars(re)["_MAXCACHE"] = 4096  # transformers compiles 700 patterns for each network, and Python keeps 512
sys.dont_write_bytecode = False  # each process that a test starts finds what this one compiled
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
gc.disable()  # imports and collected tests stay: to walk over them again and again takes seconds

import pytest
import torch
from PIL import Image

from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.style import Spec
from layerboard.zoo.view import photos

# facts of tasks explain their assertions, as test files do
pytest.register_assert_rewrite("tests.tasks.cases", "tests.tasks.datasets.cases")

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _little_waiting() -> Iterator[None]:
    """What tests write may be lost with the machine, and equal charts of many pages are drawn once."""
    draw, kept = engine.render_chart, dict[str, Any]()

    def drawing(spec: Spec, ending: str = "svg", **options: object) -> Any:
        key = json.dumps([spec, ending, options])
        if key not in kept:
            kept[key] = draw(spec, ending, **options)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda file: None)  # waiting for the disk takes a 25th of the time
        patch.setattr(engine, "render_chart", drawing)
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each of several processes begins to read all test files at another one, and finds the rest compiled.

    In a fresh clone they would else all compile all, at the same time: to rewrite assertions takes seconds.
    """
    worker, here = getattr(session.config, "workerinput", None), Path(__file__).parent
    if worker is not None and [Path(each).resolve() for each in session.config.args] == [here]:
        files = sorted(here.rglob("test_*.py"))
        first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        for file in files[first:]:
            with suppress(pytest.skip.Exception):  # without a library that all its tests need
                import_module(".".join(file.relative_to(here.parent).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, but not among what lasts as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)  # tables of small runs are many objects, and few of them are garbage
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each process takes neighbouring tests, and half of the rest of another when it has done its own.

    So what the tests of a file or of a room share, such as fixtures and imports, is made in one process.
    """
    from xdist.scheduler import WorkStealingScheduling

    gc.enable()  # of the process that gives tests away and collects none
    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
