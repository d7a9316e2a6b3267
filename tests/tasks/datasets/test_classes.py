from dataclasses import replace

import numpy as np

from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.classes import EVERY, Classification, classification


def images(labels: str) -> list[tuple[str, FileSample]]:
    """An image of each class, named by their place."""
    return [(label, FileSample(f"{number:02d}", "")) for number, label in enumerate(labels)]


def dataset(labels: str, val: str | None = None) -> Classification:
    queries = None if val is None else [(label, FileSample(f"v{n}", "")) for n, label in enumerate(val)]
    return classification("birds", images(labels), queries, "here", Coverage(()))


def test_without_a_val_every_image_is_tested() -> None:
    data = dataset("aaabbb")
    assert data.val is None
    assert data.tested is data.train
    assert str(data.coverage) == f"2 classes, 6 images; {EVERY}"
    given = dataset("ab", "b")
    assert given.tested is given.val
    assert EVERY not in given.coverage.remarks


def test_a_class_of_two_images_cannot_be_tested_without_a_val() -> None:
    assert "needs at least 3 images in every class" in dataset("aaabb").untestable
    assert "birds has 2 in b; add images or remove the class" in dataset("aaabb").untestable
    assert dataset("aaabbb").untestable == dataset("ab", "ab").untestable == ""


def test_a_class_of_one_group_cannot_be_tested_without_a_val() -> None:
    groups = {f"{number:02d}": name for number, name in enumerate("pppqqq")}
    assert "birds has one group in a, b; add images" in dataset("aaabbb").grouped(groups).untestable
    assert dataset("aabbab").grouped(groups).untestable == ""
    assert dataset("aabbab").grouped(groups).train.groups == tuple("pppqqq")
    assert dataset("aaabbb", "ab").grouped(groups).train.clusters == tuple("pppqqq")
    assert dataset("aaabbb", "ab").grouped(groups).untestable == ""


def test_a_smaller_version_keeps_enough_of_each_class() -> None:
    data = dataset("aaaaabbbbb")
    smaller = replace(data, train=replace(data.train, groups=tuple("pqrstpqrst"))).limited(1)
    assert np.bincount(smaller.train.labels).tolist() == [3, 3]
    assert smaller.train.groups == tuple("pqrpqr")
    assert smaller.coverage.notes == ("limited to 3 images a class: 6 images were used",)
    assert data.limited(5) is data


def test_groups_are_part_of_the_content() -> None:
    data = dataset("ababab")
    grouped = data.grouped({"00": "p", "01": "p"})
    assert data.content(str) != grouped.content(str)
    assert data.grouped({}) is data
