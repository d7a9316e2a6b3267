"""One tiny data folder, and one whole run that tests compare with."""

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch

from tests.benchmark.runs import (
    Cli,
    Tally,
    command,
    keep_backbones,
    keep_tables,
    leave_cost_out,
    leave_drawing_out,
    leave_pages_out,
    run,
    write_data,
)
from tests.shared import made_once

BACKBONES = ("mini-fs", "mini-resnet")


@pytest.fixture(scope="package", autouse=True)
def _quiet_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No network, no cache of the user, one processor, one thread: equal numbers, fast on small networks.

    With more, a run of several small backbones starts processes, each of which imports torch for seconds.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    own = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        leave_cost_out(patch)
        leave_drawing_out(patch)
        keep_backbones(patch)
        keep_tables(patch)
        patch.setattr("os.sched_getaffinity", lambda _: {0}, raising=False)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("LAYERBOARD_CACHE", str(own / "layerboard"))
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(own / "hub"))
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All datasets; not to be changed."""
    return made_once(tmp_path_factory, "data", write_data)


@pytest.fixture
def own_data(data: Path, tmp_path: Path) -> Path:
    """All datasets, to be damaged; what is not touched keeps its signature."""
    shutil.copytree(data, tmp_path / "data")
    return tmp_path / "data"


@dataclass(frozen=True)
class Whole:
    """A run over all tasks that nothing disturbed."""

    place: Path
    tally: Tally
    records: pd.DataFrame


@pytest.fixture(scope="session")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Two backbones, all tasks; its files are not to be changed."""

    def make(place: Path) -> Whole:
        with pytest.MonkeyPatch.context() as patch, Tally().watching() as tally:
            leave_cost_out(patch)  # fixtures of the session come before those of the package
            leave_drawing_out(patch)
            records = run(place, BACKBONES, data=data, pages=True)
        return Whole(place, tally, records)

    return made_once(tmp_path_factory, "whole", make)


def copy_results(whole: Whole, out: Path, *tasks: str) -> Path:
    """A folder of what the whole run says of some tasks, without pages: those of few are soon written."""
    source = whole.place / "out"
    for path in source.rglob("*.*"):
        if path.is_file() and path.name.split(".")[0] in tasks and "tables" not in path.parts:
            target = out / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    shutil.copytree(source / "thumbnails", out / "thumbnails")
    return out


@pytest.fixture
def of_knn(whole: Whole, tmp_path: Path) -> Path:
    """A folder of what the whole run says of k-NN, to be changed."""
    return copy_results(whole, tmp_path / "of-knn", "knn")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Carries out a command line in this process; gives what it says."""
    return partial(command, capsys)


@pytest.fixture
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs by commands and functions write no pages, as those by `run` of these tests."""
    leave_pages_out(monkeypatch)


@pytest.fixture
def my_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example of the page on own tasks as a module of the current directory."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "own_tasks.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / "my_tasks.py").write_text(example, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("my_tasks", None)


@pytest.fixture
def again(whole: Whole, tmp_path: Path) -> Path:
    """A copy of the whole run, times of files included."""
    shutil.copytree(whole.place, tmp_path / "again")
    return tmp_path / "again"
