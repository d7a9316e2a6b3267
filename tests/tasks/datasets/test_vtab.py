"""VTAB-1k: lists of images and classes, of which some may have no training image."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from layerboard.tasks.datasets.catalogue import GROUPS, State, inspect
from layerboard.tasks.datasets.vtab import VTAB
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
