"""Numbers of two results versions never stand side by side: measured again, or refused by a sentence."""

import shutil
from pathlib import Path

import pytest

import layerboard
from layerboard.leaderboards.records.checksum import results_version
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.record import read_records
from layerboard.zoo.errors import InputError
from tests.benchmark.conftest import Whole
from tests.benchmark.runs import run

KNN = task_key("knn", "imagenet", "standard")
MODULES = ("leaderboards.records.checksum", "benchmark.jobs.prepare")
OLD = "has results version 1, this layerboard 2"


@pytest.fixture
def old(whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output folder of two backbones' k-NN, and a package whose results version is one higher."""
    place = tmp_path / "old"
    for name in ("mini-fs", "mini-resnet"):
        for kind, ending in (("records", "parquet"), ("items", "parquet"), ("examples", "npz")):
            file = Path(kind) / scored_path(KNN, name, ending=ending)
            (place / "out" / file).parent.mkdir(parents=True)
            shutil.copyfile(whole.place / "out" / file, place / "out" / file)
    shutil.copytree(whole.place / "out" / "thumbnails", place / "out" / "thumbnails")
    for module in MODULES:
        monkeypatch.setattr(f"layerboard.{module}.RESULTS_VERSION", 2)
    return place


@pytest.fixture
def new(old: Path, data: Path) -> Path:
    """What the newer package measured."""
    place = old.parent / "new"
    run(place, ["mini-fs"], "knn", data=data, examples=False)
    return place


def versions(output: Path) -> set[int]:
    return {results_version(path.read_bytes()) for path in (output / "records").rglob("*.parquet")}


def test_a_run_measures_them_again(old: Path, data: Path) -> None:
    assert versions(old / "out") == {1}
    records = run(old, ["mini-fs", "mini-resnet"], "knn", data=data, examples=False)
    assert versions(old / "out") == {2}
    assert records.attrs["failures"] == []


def test_a_run_that_would_leave_some_is_refused_before_it_measures(old: Path, data: Path) -> None:
    with pytest.raises(InputError, match=f"mini-resnet.*{OLD}, and this run does not measure it again"):
        run(old, ["mini-fs"], "knn", data=data, examples=False)
    assert versions(old / "out") == {1}


def test_they_are_not_merged_in_any_order(old: Path, new: Path, tmp_path: Path) -> None:
    for folders in ([old, new], [new, old]):
        with pytest.raises(InputError, match="its numbers have results version 1, those of today 2"):
            layerboard.merge([each / "out" for each in folders], output=tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_nothing_is_merged_into_a_folder_that_keeps_some(old: Path, new: Path) -> None:
    before = {path: path.read_bytes() for path in old.rglob("*.*")}
    with pytest.raises(InputError, match="its numbers have results version 1, those of today 2"):
        layerboard.merge([new / "out", new / "out"], output=old / "out")
    assert {path: path.read_bytes() for path in old.rglob("*.*")} == before


def test_they_are_neither_compared_nor_shown(old: Path) -> None:
    for read in (
        lambda: layerboard.compare("mini-fs", "mini-resnet", output=old / "out"),
        lambda: layerboard.report(output=old / "out"),
        lambda: read_records([old / "out" / "records"]),
    ):
        with pytest.raises(InputError, match="its numbers have results version 1, those of today 2"):
            read()
