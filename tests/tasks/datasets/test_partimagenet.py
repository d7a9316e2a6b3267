import json
from dataclasses import replace
from pathlib import Path

import pytest

from layerboard.tasks.datasets.coco import Regions
from layerboard.tasks.datasets.partimagenet import PartImageNetEntry, sample_in_turns
from tests.fakes import write_fake_partimagenet
from tests.tasks.datasets.cases import fields

pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)
"""pycocotools 2.0.11 with numpy 2."""
MINI = PartImageNetEntry(per_supercategory=5, images=18, classes=6, supercategories=2, parts=4)


def image_keys(dataset: Regions) -> list[str]:
    return [image.sample.key for image in dataset.images]


def test_turns() -> None:
    assert sample_in_turns(["abc", "d", "ef"], 5) == ["a", "d", "e", "b", "f"]
    assert sample_in_turns(["abc", "d", "ef"], 99) == ["a", "d", "e", "b", "f", "c"]
    assert sample_in_turns([], 3) == []


def test_layout_and_sample(tmp_path: Path) -> None:
    write_fake_partimagenet(tmp_path)
    dataset = MINI.read(tmp_path)
    assert not dataset.coverage.partial
    birds = ["train/n00000001", "val/n00000003", "test/n00000005"]
    expected = [f"{birds[turn % 3]}/{birds[turn % 3][-9:]}_{turn // 3}.JPEG" for turn in range(5)]
    assert image_keys(dataset)[:5] == expected
    assert len(dataset.images) == 10
    assert [region.label for region in dataset.images[0].regions] == [2, 3]
    assert dataset.images[0].regions[0].key == f"{expected[0]}/6"
    assert dataset.images[0].regions[0].mask().shape == (36, 40)
    assert dataset.categories[2] == "Bird Head"


def test_order_of_the_published_code(tmp_path: Path) -> None:
    """Partition by partition and class by class, super-categories by their first class."""
    folder = write_fake_partimagenet(tmp_path)
    for name in ("{}", "{}.json"):
        for old, new in (("train", "former"), ("test", "train"), ("former", "test")):
            (folder / name.format(old)).rename(folder / name.format(new))
    quadrupeds = ["train/n00000004", "val/n00000002", "test/n00000000"]
    birds = ["train/n00000005", "val/n00000003", "test/n00000001"]
    expected = [
        f"{name}/{name[-9:]}_{index}.JPEG"
        for classes in (quadrupeds, birds)
        for name, images in zip(classes, (2, 2, 1), strict=True)
        for index in range(images)
    ]
    assert image_keys(replace(MINI, by_partition=True).read(tmp_path)) == expected
    by_name = image_keys(MINI.read(tmp_path))
    assert by_name[:3] == [f"{name}/{name[-9:]}_0.JPEG" for name in birds[::-1]]
    assert set(by_name) != set(expected)


def test_names_with_folders(tmp_path: Path) -> None:
    path = write_fake_partimagenet(tmp_path) / "val.json"
    before = image_keys(MINI.read(tmp_path))
    images = json.loads(path.read_text())["images"]
    for image in images:
        image["file_name"] = f"{image['file_name'].split('_')[0]}/{image['file_name']}"
    fields(images=images)(path)
    assert image_keys(MINI.read(tmp_path)) == before


def test_flat_folder_of_images(tmp_path: Path) -> None:
    val = write_fake_partimagenet(tmp_path) / "val"
    for path in list(val.rglob("*.JPEG")):
        path.rename(val / path.name)
    assert not MINI.read(tmp_path).coverage.partial


def test_class_without_annotations_is_noted(tmp_path: Path) -> None:
    path = write_fake_partimagenet(tmp_path) / "val.json"
    annotations = [each for each in json.loads(path.read_text())["annotations"] if each["category_id"] < 2]
    fields(annotations=annotations)(path)
    coverage = MINI.read(tmp_path).coverage
    assert "1 classes have no annotation (n00000003)" in str(coverage)
