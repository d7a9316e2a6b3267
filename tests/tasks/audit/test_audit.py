"""An audit of images whose copies, wrong labels and series are known."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from layerboard.tasks.audit.audit import Audit, Photo, Space, audit, choose_space
from layerboard.tasks.audit.finding import DUPLICATE, LABEL, SERIES
from layerboard.tasks.metrics.arrays import Integers
from layerboard.tasks.metrics.neighbours import Vectors, unit_vectors

CLASSES, EACH = 3, 30
COUNT = CLASSES * EACH
CLASS_OF = np.repeat(np.arange(CLASSES), EACH)


def vectors(seed: int, spread: float = 0.5) -> Vectors:
    random = np.random.default_rng(seed)
    noise = spread * random.normal(size=(COUNT, 96))
    return (random.normal(size=(CLASSES, 96))[CLASS_OF] + noise).astype(np.float32)


def pictures(copies: Integers | None = None) -> NDArray[np.uint8]:
    """Random thumbnails, some of which are the same."""
    grey = np.random.default_rng(9).integers(0, 256, (COUNT, 8, 9), dtype=np.uint8)
    return grey if copies is None else grey[copies]


def photos() -> list[Photo]:
    names = np.random.default_rng(3).permutation(COUNT)
    return [Photo(f"{'abc'[CLASS_OF[row]]}/{names[row]}.jpg", "abc"[CLASS_OF[row]]) for row in range(COUNT)]


def spaces(*changed: Vectors) -> list[Space]:
    return [Space(f"b{row}", unit_vectors(each), 90.0) for row, each in enumerate(changed)]


@pytest.fixture(scope="module")
def found() -> Audit:
    """Images 4 and 20 are copies of 5 and 2, by hash and by vectors; 10 has a wrong label."""
    copies, first, second = np.arange(COUNT), vectors(1), vectors(2)
    copies[4] = 5
    for each in (first, second):
        each[20] = each[2] + 0.001
    said = photos()
    said[10] = said[10]._replace(label="c")
    return audit(said, pictures(copies), spaces(first, second))


def test_copies_wrong_labels_and_nothing_else_are_listed(found: Audit) -> None:
    said = found.photos
    pairs = {frozenset((each.file, each.other)) for each in found.of_kind(DUPLICATE)}
    assert pairs == {frozenset((said[4].file, said[5].file)), frozenset((said[2].file, said[20].file))}
    (label,) = found.of_kind(LABEL)
    assert label.file == said[10].file
    assert (label.label, label.other_label, label.agreeing) == ("c", "a", "2 of 2")
    assert not found.of_kind(SERIES)


def test_what_belongs_together_is_on_one_side_of_the_split(found: Audit) -> None:
    assert found.clusters[4] == found.clusters[5]
    assert found.clusters[2] == found.clusters[20]
    assert len(np.unique(found.clusters)) == COUNT - 2
    split = np.array(found.split)
    for cluster in np.unique(found.clusters):
        assert len(set(split[found.clusters == cluster])) == 1
    labels = np.array([photo.label for photo in found.photos])
    for name in "abc":
        assert 0.15 <= (split[labels == name] == "val").mean() <= 0.25


def test_a_class_of_one_cluster_stays_in_train(found: Audit) -> None:
    together = replace(found, photos=photos(), clusters=CLASS_OF.astype(np.int64))
    assert set(together.split) == {"train"}


def test_series_are_found_and_are_no_duplicates() -> None:
    said, first = photos(), vectors(1)
    angle = np.linspace(0, 1.5, EACH)[:, None]
    first[:EACH] = np.cos(angle) * first[0] + np.sin(angle) * first[1]  # a video
    said[:EACH] = [Photo(f"a/{row:03}.jpg", "a") for row in range(EACH)]
    (series,) = (found := audit(said, pictures(), spaces(first))).of_kind(SERIES)
    assert (series.file, series.other, series.score) == ("a/000.jpg", f"a/{EACH - 1:03}.jpg", EACH)
    assert not found.of_kind(DUPLICATE)
    assert len(np.unique(found.clusters[:EACH])) == 1
    grouped = [photo._replace(group=f"g{row}") for row, photo in enumerate(said)]
    assert not audit(grouped, pictures(), spaces(first)).of_kind(SERIES)


def test_images_that_share_a_part_are_no_duplicates_where_vectors_are_apart() -> None:
    """One place photographed twice is not one photograph twice."""
    grey = pictures()
    grey[20, :, :6] = grey[2, :, 3:]
    assert not audit(photos(), grey, spaces(vectors(1))).of_kind(DUPLICATE)


def test_images_of_a_group_are_no_duplicates_and_do_not_vote_for_each_other() -> None:
    copies, first = np.arange(COUNT), vectors(1)
    copies[4] = 5
    first[4] = first[5]
    said = photos()
    for row in (4, 5):
        said[row] = said[row]._replace(group="one")
    found = audit(said, pictures(copies), spaces(first))
    assert not found.of_kind(DUPLICATE)
    assert found.clusters[4] == found.clusters[5]


def test_copies_across_splits_come_first() -> None:
    copies = np.arange(COUNT)
    copies[[4, 70]] = [5, 71]
    said = [photo._replace(split="val" if row == 70 else "train") for row, photo in enumerate(photos())]
    first, second = audit(said, pictures(copies), spaces(vectors(1))).of_kind(DUPLICATE)
    assert ({first.file, first.other}, first.split) == ({said[70].file, said[71].file}, "train, val")
    assert second.split == "train"


def test_without_classes_there_are_copies_and_no_doubts() -> None:
    copies = np.arange(COUNT)
    copies[4] = 5
    said = [photo._replace(label="") for photo in photos()]
    found = audit(said, pictures(copies), spaces(vectors(1)))
    assert [each.finding for each in found.findings] == [DUPLICATE]
    assert np.isnan(found.planted)


def test_the_layer_is_the_one_that_classifies_best() -> None:
    layers = [("1", vectors(1, 3.0)), ("2", vectors(1, 0.3)), ("3", vectors(2, 3.0))]
    assert choose_space("mine", layers, photos()).name == "mine 2"
    unlabelled = [photo._replace(label="") for photo in photos()]
    assert choose_space("mine", layers, unlabelled).name == "mine 3"
    with pytest.raises(ValueError, match="a layer of mine"):
        choose_space("mine", [], photos())
