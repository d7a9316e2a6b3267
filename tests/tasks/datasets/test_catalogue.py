import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from layerboard.benchmark.plan.suites import SUITES, Suite
from layerboard.tasks.datasets.catalogue import DATASETS, DatasetEntry, State, inspect
from layerboard.tasks.datasets.cifar import CIFAR_10
from layerboard.tasks.datasets.coco import CocoEntry
from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.imagenet import ImageNetEntry
from layerboard.tasks.datasets.partimagenet import PartImageNetEntry
from layerboard.tasks.datasets.revisitop import RevisitedEntry
from layerboard.tasks.datasets.scenes import AdeEntry, VocEntry
from layerboard.tasks.datasets.spair import SpairEntry
from layerboard.tasks.framework.registry import NO_DATA, TASKS
from tests import fakes

MINI: tuple[DatasetEntry, ...] = (
    ImageNetEntry(classes=3, train=12, val=6),
    RevisitedEntry("roxford5k", "roxford5k", database=8, queries=2),
    DavisEntry(sequences=2, frames=8, objects=4),
    SpairEntry(pairs=4, categories=2),
    CocoEntry(images=4, first=4),
    PartImageNetEntry(images=18, classes=6, supercategories=2, parts=4),
    VocEntry(train_images=4, val_images=3),
    AdeEntry(train_images=4, val_images=3),
    replace(CIFAR_10, classes=3, train=12, val=6),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with the datasets of `MINI`."""
    fakes.write_fake_imagenet(tmp_path)
    fakes.write_fake_cifar10(tmp_path)
    fakes.write_fake_revisited(tmp_path)
    fakes.write_fake_davis(tmp_path)
    fakes.write_fake_spair(tmp_path)
    fakes.write_fake_voc(tmp_path)
    fakes.write_fake_ade(tmp_path)
    fakes.write_fake_coco(tmp_path)
    fakes.write_fake_partimagenet(tmp_path)
    return tmp_path


def test_names_are_different() -> None:
    assert len({entry.name for entry in DATASETS}) == len(DATASETS)


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_datasets_of_a_role_have_different_names_in_a_suite(suite: Suite) -> None:
    places = [(role, entry.name) for entry in suite.datasets for role in entry.roles]
    assert len(set(places)) == len(places)


def test_each_role_of_a_task_has_a_dataset() -> None:
    roles = {role for suite in SUITES for entry in suite.datasets for role in entry.roles}
    assert {task.role for task in TASKS} == roles | {NO_DATA}


def test_complete(data: Path) -> None:
    assert [inspect(data, entry).state for entry in MINI] == [State.COMPLETE] * len(MINI)


def test_partial_and_missing(data: Path) -> None:
    found = {entry.name: inspect(data, entry) for entry in DATASETS}
    missing, there = found["rparis6k"], {entry.name for entry in MINI}
    states = {name: State.PARTIAL if name in there else State.MISSING for name in found}
    assert {name: inspection.state for name, inspection in found.items()} == states
    assert "2 of 30 sequences" in found["davis-2017-val"].text
    assert missing.text.startswith(f"looked for {data / 'rparis6k'}; expected rparis6k/gnd_rparis6k.pkl")


@pytest.mark.parametrize(
    ("index", "removed", "state"),
    [
        (0, "val", State.MISSING),
        (1, "gnd_roxford5k.pkl", State.BROKEN),
        (1, "jpg", State.MISSING),
        (2, "Annotations", State.MISSING),
        (3, "JPEGImages/dog", State.BROKEN),
        (4, "annotations", State.BROKEN),
        (5, "train/n00000001", State.PARTIAL),
        (6, "SegmentationClass", State.MISSING),
        (6, "ImageSets/Segmentation/val.txt", State.MISSING),
        (7, "annotations/training", State.MISSING),
        (8, "test", State.MISSING),
    ],
)
def test_what_lacks_is_named(data: Path, index: int, removed: str, state: State) -> None:
    path = data / MINI[index].folder / removed
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    found = inspect(data, MINI[index])
    assert found.state is state
    if state is not State.PARTIAL:
        assert found.text.startswith("expected ")
        assert path.name in found.text


def test_nothing_is_decoded(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    monkeypatch.setattr(
        "PIL.JpegImagePlugin.JpegImageFile.load", lambda image: decoded.append(image.filename)
    )
    for entry in MINI:
        inspect(data, entry)
    assert not decoded
