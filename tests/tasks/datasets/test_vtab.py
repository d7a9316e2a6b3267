"""VTAB-1k: lists of images and classes, of which some may have no training image."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layerboard.tasks.datasets.catalogue import GROUPS, State, inspect
from layerboard.tasks.datasets.vtab import VTAB
from layerboard.zoo.errors import InputError, MissingDataError
from tests import fakes

(DTD,) = (entry for entry in VTAB if entry.name == "vtab-dtd")
FAKE = replace(DTD, classes=12, train=4, val=3)


def test_nineteen_sets_in_three_groups() -> None:
    sizes = {group: sum(entry.group == group for entry in VTAB) for group in GROUPS.values()}
    assert sizes == {"natural": 7, "specialised": 4, "structured": 8}
    assert len({entry.folder for entry in VTAB}) == len(VTAB) == 19


def test_classes_sort_as_numbers_and_may_lack_training_images(tmp_path: Path) -> None:
    fakes.write_fake_vtab(tmp_path, train=(0, 10, 1, 1), test=(0, 2, 11))
    assert inspect(tmp_path, FAKE).state is State.COMPLETE
    data = FAKE.read(tmp_path)
    assert data.train.classes == tuple(f"{number:02d}" for number in range(12))
    assert data.train.labels.tolist() == [0, 10, 1, 1]
    assert data.val is not None
    assert data.val.labels.tolist() == [0, 2, 11]
    assert data.val.keys[0] == "images/test/000000.jpg"
    assert np.asarray(data.train.samples[0].open()).shape == (32, 40, 3)


def test_what_is_listed_and_not_there_is_counted(tmp_path: Path) -> None:
    folder = fakes.write_fake_vtab(tmp_path)
    (folder / "images" / "test" / "000001.jpg").unlink()
    found = inspect(tmp_path, FAKE)
    assert (found.state, found.text) == (
        State.PARTIAL,
        "12 of 12 classes, 4 of 4 train images, 2 of 3 val images",
    )


@pytest.mark.parametrize(
    "line", ["images/test/000000.jpg", "images/test/000000.jpg 12", "a.jpg -1", "a.jpg x"]
)
def test_a_wrong_line_is_shown(tmp_path: Path, line: str) -> None:
    (fakes.write_fake_vtab(tmp_path) / "test.txt").write_text(f"{line}\n")
    with pytest.raises(
        InputError, match=r"expected a path and a class from 0 to 11 in each line of .*test.txt"
    ):
        FAKE.read(tmp_path)


def test_a_path_outside_and_missing_files(tmp_path: Path) -> None:
    folder = fakes.write_fake_vtab(tmp_path)
    (folder / "test.txt").write_text("../../secret.jpg 0\n")
    with pytest.raises(InputError, match="below the dataset's folder"):
        FAKE.read(tmp_path)
    (folder / "test.txt").unlink()
    with pytest.raises(InputError, match=r"expected a list of images at .*test.txt"):
        FAKE.read(tmp_path)
    with pytest.raises(MissingDataError, match=r"expected vtab-dtd \(vtab-1k/dtd/train800val200.txt"):
        FAKE.read(tmp_path / "elsewhere")
