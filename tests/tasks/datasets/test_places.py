"""Places365 and iNaturalist 2021 as their archives lay them out."""

from dataclasses import replace
from pathlib import Path

import pytest

from layerboard.tasks.datasets.catalogue import DATASETS
from layerboard.tasks.datasets.imagenet import ImageNetEntry
from layerboard.tasks.datasets.places import INATURALIST_2021, PLACES_365
from layerboard.zoo.errors import MissingDataError


@pytest.mark.parametrize(
    ("entry", "classes"),
    [
        (PLACES_365, ("airfield", "zen_garden")),
        (INATURALIST_2021, ("00000_Animalia_Annelida", "00001_Animalia_Chordata")),
    ],
)
def test_folders_of_classes_are_read(tmp_path: Path, entry: ImageNetEntry, classes: tuple[str, str]) -> None:
    assert entry in DATASETS
    with pytest.raises(MissingDataError, match=entry.folder):
        entry.read(tmp_path)
    for split in ("train", "val"):
        for number, name in enumerate(classes):
            file = tmp_path / entry.folder / split / name / f"{number}.jpg"
            file.parent.mkdir(parents=True)
            file.touch()
    data = entry.read(tmp_path)
    assert data.coverage.partial
    assert data.val is not None
    assert (data.train.classes, data.train.keys[1]) == (classes, f"train/{classes[1]}/1.jpg")
    assert data.val.keys == tuple(f"val/{name}/{number}.jpg" for number, name in enumerate(classes))
    assert not replace(entry, classes=2, train=2, val=2).read(tmp_path).coverage.partial
