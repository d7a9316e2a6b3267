"""Which image is looked at where: probe subset in batches, the rest, validation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.classes import Classification, ClassImages, ProbeSubset
from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.sources import (
    CHUNK,
    IMAGES,
    Batches,
    ProbedClasses,
    batch_slices,
    probe_subset,
    probed_classes,
)
from layerboard.tasks.framework.sources import probed as probed_by
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.doubles import MemorySample
from tests.fakes import write_fake_imagenet
from tests.tasks.datasets.helpers import copy_shuffled, keys

VIEW = ResizeCrop(short=256, crop=224)


def class_images(labels: NDArray[np.int64], mark: str, classes: int) -> ClassImages:
    samples = tuple(MemorySample(f"{mark}/{index:05d}", 0) for index in range(len(labels)))
    return ClassImages(samples, labels, tuple(f"n{number:08d}" for number in range(classes)))


def classification(train: NDArray[np.int64], val: NDArray[np.int64]) -> Classification:
    """A dataset in memory; images are named by their index."""
    classes = 1 + int(max(train.max(), val.max(initial=0)))
    return Classification(
        "double", class_images(train, "train", classes), class_images(val, "val", classes), Coverage(())
    )


def labels(count: int, classes: int = 10) -> NDArray[np.int64]:
    return np.arange(count, dtype=np.int64) * classes // count


def sources(
    data: Classification, probe: NDArray[np.int64], size: int = STANDARD.config_for(IMAGES).batches.size
) -> ProbedClasses:
    """Sources by the standard protocol, in batches of another size if asked."""
    config = replace(STANDARD.config_for(IMAGES), view=VIEW)
    config = replace(config, batches=replace(config.batches, size=size))
    return probed_classes(data, probe, Coverage(()), config)


def probed(data: Classification, where: ProbedClasses) -> ProbedClasses:
    """The dataset and its probe subset."""
    return replace(where, images=data, labels=data.train.labels[where.probe_order])


def test_every_training_image_is_in_exactly_one_source() -> None:
    data = classification(labels(700), labels(30))
    probe = np.random.default_rng(0).choice(700, 300, replace=False)
    where = sources(data, probe)
    assert where.rest is not None
    assert sorted(keys(where.probe.samples + where.rest.samples)) == keys(data.train.samples)
    assert set(keys(where.probe.samples)) == {data.train.samples[index].key for index in probe}
    assert where.val.samples == data.val.samples
    for source, order in ((where.probe, where.probe_order), (where.rest, where.rest_order)):
        assert source.samples == tuple(data.train.samples[index] for index in order)
    assert (np.diff(where.rest_order) > 0).all()


def test_batches_are_of_256_drawn_once_with_seed_0() -> None:
    data = classification(labels(1000), labels(10))
    where = sources(data, np.arange(1000))
    assert [len(group.samples) for group in where.probe.groups] == [256, 256, 256, 232]
    expected = np.random.Generator(np.random.PCG64(0)).permutation(1000)
    assert (where.probe_order == expected).all()
    # the dataset is sorted by class, a batch is not
    assert all(len(set(data.train.labels[expected[start : start + 256]])) == 10 for start in (0, 256, 512))
    assert len({group.key for group in where.probe.groups}) == 4
    assert where.probe.joint
    assert where.probe.groups_per_shard == 1


def test_batches_without_a_seed_keep_the_order_of_the_dataset() -> None:
    data = classification(labels(700), labels(10))
    probe = np.random.default_rng(2).choice(700, 600, replace=False)
    config = replace(STANDARD.config_for(IMAGES), view=VIEW, batches=Batches(8, seed=None))
    where = probed_classes(data, probe, Coverage(()), config)
    assert (where.probe_order == np.sort(probe)).all()
    assert where.batches == Batches(8, None)
    # small batches go through a backbone 256 images at a time
    assert [len(group.samples) for group in where.probe.groups] == [256, 256, 88]


@pytest.mark.parametrize(
    ("images", "size", "groups"), [(600, 7, [252, 252, 96]), (600, 300, [300, 300]), (257, 256, [256, 1])]
)
def test_a_group_holds_whole_batches_or_what_remains(images: int, size: int, groups: list[int]) -> None:
    where = sources(classification(labels(images), labels(2)), np.arange(images), size=size)
    assert [len(group.samples) for group in where.probe.groups] == groups
    assert where.probe.joint
    assert (where.rest, len(where.rest_order)) == (None, 0)


def test_batches_do_not_depend_on_the_order_of_the_probe_list() -> None:
    data = classification(labels(900), labels(10))
    probe = np.random.default_rng(1).choice(900, 500, replace=False)
    first, second = (sources(data, chosen) for chosen in (probe, np.sort(probe)))
    assert first.probe == second.probe
    assert first.rest == second.rest
    assert not (first.probe_order == np.sort(probe)).all()


def test_sources_do_not_depend_on_the_order_of_the_files(tmp_path: Path) -> None:
    write_fake_imagenet(tmp_path / "a", classes=4, train=7)
    copy_shuffled(tmp_path / "a", tmp_path / "b")
    found = []
    for folder in "ab":
        data = read_folder(tmp_path / folder / "imagenet")
        where = sources(data, probe_subset(data, ProbeSubset(None, 5))[0], size=6)
        assert where.rest is not None
        found.append([keys(source.samples) for source in (where.probe, where.rest, where.val)])
    assert found[0] == found[1]
    assert [len(names) for names in found[0]] == [20, 8, 8]


def test_chunks_hold_all_images_in_order() -> None:
    data = classification(labels(2 * CHUNK + 5), labels(CHUNK + 1))
    where = sources(data, np.arange(4))
    assert where.rest is not None
    assert [len(group.samples) for group in where.rest.groups] == [CHUNK, CHUNK, 1]
    assert [len(group.samples) for group in where.val.groups] == [CHUNK, 1]
    assert where.rest.samples == data.train.samples[4:]
    assert not where.rest.joint


def test_all_sources_share_one_view_and_leave_broken_images_out() -> None:
    where = sources(classification(labels(20), labels(4)), np.arange(8))
    assert where.rest is not None
    every = (where.probe, where.rest, where.val)
    assert {source.view for source in every} == {VIEW}
    assert STANDARD.config_for(IMAGES).view == VIEW
    assert all(source.skip_unreadable for source in every)
    assert len({source.name for source in every}) == 3
    assert VIEW.scaled(64, 16).crop == 64
    assert VIEW.scaled(64, 16).short == 73


def test_batches_of_a_group_lose_what_could_not_be_read() -> None:
    assert batch_slices([0, 1, 2, 3, 5, 6], 4, 1) == [slice(0, 4), slice(4, 6)]
    assert batch_slices([0, 1, 2, 3, 5, 6], 4, 3) == [slice(0, 4)]
    assert batch_slices([], 4, 1) == []


def test_a_protocol_may_draw_its_own_images_in_place_of_the_probe_subset() -> None:
    data = replace(classification(labels(700), labels(10)), probe=ProbeSubset(("n00000000",), per_class=5))
    config = replace(IMAGES["raghu"], drawn=300)
    (own, usual), name = (probed_by(data, each) for each in (config, IMAGES["standard"])), data.name
    assert isinstance(own, ProbedClasses)
    assert own.probe.name == f"{name}/train-probe-300" != usual.probe.name
    assert own.rest is not None
    assert (len(own.probe.samples), len(own.rest.samples), own.coverage.partial) == (300, 400, False)
    assert len({*own.labels.tolist()}) == len(data.train.classes)
    assert sorted([*own.probe_order, *own.rest_order]) == [*range(700)]
    assert probed_by(data, IMAGES["raghu"]).coverage.partial  # fewer than 10,240
