"""A case for each public dataset of the catalogue."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from layerboard.benchmark.plan.suites import SUITES, Suite
from layerboard.tasks.datasets.base import DatasetEntry
from layerboard.tasks.datasets.catalogue import DATASETS, GROUPS, State
from layerboard.tasks.datasets.cifar import CIFAR_10, CIFAR_100, CIFAR_RAGHU
from layerboard.tasks.datasets.coco import COCO_VAL2017
from layerboard.tasks.datasets.davis import DAVIS_2017_VAL
from layerboard.tasks.datasets.defects import MVTEC_AD, VISA
from layerboard.tasks.datasets.imagenet import IMAGENET, ImageNetEntry
from layerboard.tasks.datasets.instances import CUB, SOP
from layerboard.tasks.datasets.partimagenet import PARTIMAGENET
from layerboard.tasks.datasets.places import INATURALIST_2021, PLACES_365
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.datasets.revisitop import ROXFORD5K, RPARIS6K
from layerboard.tasks.datasets.scenes import ADE20K, VOC_2012, VOC_2012_AUG, read_classes
from layerboard.tasks.datasets.spair import SPAIR_71K_TEST
from layerboard.tasks.datasets.vtab import VTAB
from layerboard.tasks.framework.registry import NO_DATA, TASKS
from layerboard.zoo.errors import InputError, UnreadableImageError
from tests import fakes
from tests.tasks.datasets.cases import (
    Change,
    DatasetCase,
    Lacks,
    OwnDatasetCase,
    Spoiled,
    all_cases,
    content,
    cut,
    edited,
    fields,
    last,
    remove,
)
from tests.tasks.datasets.helpers import keys
from workshop.render.masks import write_mask

PARTIAL, MISSING, BROKEN = State.PARTIAL, State.MISSING, State.BROKEN


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_datasets_of_a_role_have_different_names_in_a_suite(suite: Suite) -> None:
    places = [(role, entry.name) for entry in suite.datasets for role in entry.roles]
    assert len(set(places)) == len(places)


def test_each_role_of_a_task_has_a_dataset() -> None:
    roles = {role for suite in SUITES for entry in suite.datasets for role in entry.roles}
    assert {task.role for task in TASKS} == roles | {NO_DATA}


def test_every_dataset_has_one_case() -> None:
    rows = [entry for case in all_cases() for entry in (case.entry, *case.alike)]
    assert sorted(row.name for row in rows) == sorted(entry.name for entry in DATASETS)
    assert all(row in DATASETS for row in rows)
    assert len({row.name for row in rows}) == len(rows)


def masked(value: int, size: tuple[int, int] = (48, 40)) -> Change:
    """A mask of one value, of another size in bytes; the size is (width, height)."""
    return lambda path: write_mask(path, np.full(size[::-1], value, np.uint8))


def backwards(path: Path) -> None:
    """The lines of a file the other way round, with blank ones and the ends of another system."""
    path.write_bytes("\r\n".join(["", *path.read_text().split("\n")[::-1]]).encode())


def replaced(old: str, new: str) -> Change:
    """A text in which a part is another one."""
    return lambda path: path.write_text(path.read_text().replace(old, new))


def flattened(path: Path) -> None:
    """All images of class folders directly in the folder above."""
    for file in list(path.rglob("*.*")):
        file.rename(path / file.name)
    for folder in path.iterdir():
        if folder.is_dir():
            folder.rmdir()


def emptied(path: Path) -> None:
    """A folder without anything."""
    shutil.rmtree(path)
    path.mkdir()


def counted_on(path: Path) -> None:
    """Images with other numbers, larger ones."""
    for file in list(path.rglob("*.png")):
        file.rename(file.with_stem(f"7{file.stem}"))


class TestClassFolders(OwnDatasetCase):
    entry = IMAGENET
    alike = (CIFAR_10, CIFAR_100, PLACES_365, INATURALIST_2021)
    counts = MappingProxyType({"classes": 3, "train": 12, "val": 6})
    complete = "3 of 3 classes, 12 of 12 train images, 6 of 6 val images"
    partial = "3 of 1,000 classes, 12 of 1,281,167 train images, 6 of 50,000 val images"
    first = pixels = "train/n00000001/n00000001_0.JPEG"
    limited = "limited to 1 image a class: 3 train and 3 val images were used", 6
    target = first, lambda path: path.rename(path.parents[1] / "n00000002" / path.name)
    own = "classification"
    lacks = (
        ("train", MISSING, r"a folder of class folders at .*train, which does not exist"),
        ("val", MISSING, r"a folder of class folders at .*val, which does not exist"),
        ("train/n00000002", BROKEN, r"classes of .*val to be among those of train, found n00000002"),
        ("val/n00000002", PARTIAL, "4 of 6 val images"),
        (first, PARTIAL, "11 of 12 train images"),
    )
    spoiled = (
        ("train/n00000009", Path.mkdir, r"in every class folder of .*train, found none in n00000009"),
        ("train", emptied, r"expected one folder per class in .*train, found none"),
    )

    def write(self, root: Path, row: DatasetEntry[Any]) -> None:
        assert isinstance(row, ImageNetEntry)
        fakes.write_fake_class_folders(root / row.folder / "train", 3, 4)
        fakes.write_fake_class_folders(root / row.folder / row.tested, 3, 2, seed=1, mark="val_")

    def test_what_to_do_with_unsorted_images_is_said(self, tmp_path: Path, row: ImageNetEntry) -> None:
        small = self.small(tmp_path, row)
        flattened(tmp_path / row.folder / row.tested)
        with pytest.raises(InputError, match=f"found 6 images directly in it .*; {row.unsorted}$"):
            small.read(tmp_path)


class TestNumberedImages(DatasetCase):
    entry, *alike = CIFAR_RAGHU[::-1]
    counts = MappingProxyType({"classes": 3, "train": 8, "val": 4})
    choices = MappingProxyType({"first_tested": 8})
    complete = "3 of 3 classes, 8 of 8 train images, 4 of 4 val images"
    partial = "3 of 100 classes, 8 of 45,000 train images, 4 of 5,000 val images"
    first = pixels = "train/apple/00000.png"
    limited = "limited to 1 image a class: 3 train and 3 val images were used", 6
    target = first, lambda path: path.rename(path.parents[1] / "baby" / path.name)
    lacks = (
        ("train", MISSING, "a folder of class folders at .*train, which does not exist"),
        (first, PARTIAL, "7 of 8 train images"),
    )
    spoiled = (
        (first, lambda path: path.rename(path.with_stem("11")), "authors' file, found several of 11"),
        (first, lambda path: path.rename(path.with_stem("a")), "found 'a'; read the dataset from the Hub"),
        ("train", counted_on, "of numbers below 8 and from 8 on in .*train, to test"),
    )

    def write(self, root: Path, row: DatasetEntry[Any]) -> None:
        generator = np.random.default_rng(0)
        for number in range(12):
            name = ("apple", "aquarium_fish", "baby")[number % 3]
            path = root / row.folder / "train" / name / f"{number:05d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            fakes.fake_image(number % 3, (32, 32), generator)[0].save(path)


def test_nineteen_sets_of_vtab_in_three_groups() -> None:
    sizes = {group: sum(entry.group == group for entry in VTAB) for group in GROUPS.values()}
    assert sizes == {"natural": 7, "specialised": 4, "structured": 8}
    assert len({entry.folder for entry in VTAB}) == len(VTAB) == 19


LINES = ("images/test/000000.jpg", "images/test/000000.jpg 12", "a.jpg -1", "a.jpg x")


class TestVtab(DatasetCase):
    entry = next(row for row in VTAB if row.name == "vtab-dtd")
    alike = tuple(row for row in VTAB if row.name != "vtab-dtd")
    counts = MappingProxyType({"classes": 12, "train": 4, "val": 3})
    complete = "12 of 12 classes, 4 of 4 train images, 3 of 3 val images"
    partial = "47 of 47 classes, 4 of 1,000 train images, 3 of 1,880 val images"
    first = pixels = "images/train800val200/000000.jpg"
    limited = "limited to 1 image a class: 2 train and 2 val images were used", 4
    target = "train800val200.txt", replaced(" 1", " 0")
    reordered = "test.txt", backwards
    lacks = (
        ("test.txt", BROKEN, r"expected a list of images at .*test\.txt"),
        ("images/test/000001.jpg", PARTIAL, "2 of 3 val images"),
        ("images", BROKEN, "images that .*train800val200.txt lists below .*, found none"),
    )
    spoiled = (
        *(
            ("test.txt", content(line), r"from 0 to 11 in each line of .*test\.txt, found '")
            for line in LINES
        ),
        ("test.txt", content("../../secret.jpg 0\n"), "below the dataset's folder"),
        ("test.txt", content("images/test/none.jpg 0\n"), r"expected images that .*test\.txt lists below"),
        ("test.txt", content(b"\xff"), r"expected a list of images at .*test\.txt"),
    )

    def write(self, root: Path, row: DatasetEntry[Any]) -> None:
        fakes.write_fake_vtab(root, row.folder.split("/")[1], test=(0, 1, 1))

    def test_classes_sort_as_numbers_and_may_lack_training_images(self, tmp_path: Path) -> None:
        fakes.write_fake_vtab(tmp_path, "dtd", train=(0, 10, 1, 1), test=(0, 2, 11))
        data = replace(self.entry, **self.counts).read(tmp_path)
        assert not data.coverage.partial
        assert data.train.classes == tuple(f"{number:02d}" for number in range(12))
        assert (data.train.labels.tolist(), data.val.labels.tolist()) == ([0, 10, 1, 1], [0, 2, 11])
        assert data.val.keys[0] == "images/test/000000.jpg"


def truth(**new: Any) -> Change:
    """Another ground truth of the first query."""
    first: dict[str, Any] = {"bbx": [0, 0, 9, 9], "easy": [0], "hard": [1], "junk": [], **new}
    return edited(lambda value: value["gnd"].__setitem__(0, first))


class TestRevisited(DatasetCase):
    entry = ROXFORD5K
    alike = (RPARIS6K,)
    counts = MappingProxyType({"database": 8, "queries": 2})
    complete = "8 of 8 database images, 2 of 2 queries"
    partial = "8 of 4,993 database images, 2 of 70 queries"
    first = "landmark_0_000000"
    limited = "limited to 1 query", 9
    pixels = "jpg/landmark_0_000000.jpg"
    target = "gnd_roxford5k.pkl", truth()
    lacks = (
        ("gnd_roxford5k.pkl", BROKEN, r"gnd_roxford5k\.pkl, which cannot be read: No such file"),
        ("jpg", MISSING, r"the images of roxford5k at .*jpg, which does not exist"),
        (pixels, PARTIAL, "7 of 8 database images"),
        ("jpg/query_0_000000.jpg", PARTIAL, "1 of 2 queries"),
    )
    faults = (
        (cut, "expected a pickle in .*malformed"),
        (edited(lambda _: [1, 2]), "expected object, got list"),
        (edited(lambda value: value["gnd"].__delitem__(0)), "one entry of gnd for each of the 2 queries"),
        (truth(easy=[8]), r"indices below 8 \(the database\) as easy of query .*found 8"),
        (truth(junk=[-1]), "indices below 8"),
        (truth(easy=[0, 2], junk=[2]), r"in one of easy, hard, junk of query .*found several of 2"),
        (truth(hard=[0.5]), r"expected int, got float, at gnd\[0\].hard"),
        (truth(bbx=[1, 2, 3]), r"list of length 4, got 3, at gnd\[0\].bbx"),
        (truth(bbx=[9, 2, 3, 4]), "x1 < x2"),
        (
            edited(lambda value: value["gnd"][0].__delitem__("easy")),
            r"missing required field easy, at gnd\[0\]",
        ),
        (fields(imlist=[]), "image names as imlist"),
        (fields(imlist=["a", "a"]), "names as imlist, found several of 'a'"),
        (fields(qimlist=["../../etc/passwd", "b"]), "below the dataset's folder"),
    )
    spoiled = (
        ("jpg", emptied, "found 0 of 8 and 0 of 2; unpack the images there"),
        *(("gnd_roxford5k.pkl", *fault) for fault in faults),
    )

    def write(self, root: Path, row: DatasetEntry[Any]) -> None:
        fakes.write_fake_revisited(root, row.folder)

    def test_queries_have_boxes_and_images_of_three_kinds(self, tmp_path: Path) -> None:
        data = self.small(tmp_path).read(tmp_path)
        assert keys(data.queries) == ["query/query_0_000000", "query/query_1_000000"]
        assert (len(data.database), data.queries[0].box) == (8, (4.0, 3.0, 44.0, 33.0))
        assert [found.tolist() for found in data.easy] == [[0, 1], [4, 5]]
        assert [found.tolist() for found in (*data.hard, *data.junk)] == [[2], [6], [3], [7]]
        assert all(found.dtype == np.int64 for found in (*data.easy, *data.junk))

    def test_missing_images_leave_and_indices_follow(self, tmp_path: Path) -> None:
        small = self.small(tmp_path)
        for name in ("landmark_0_000001", "landmark_1_000003", "query_0_000000"):
            (tmp_path / small.folder / "jpg" / f"{name}.jpg").unlink()
        data = small.read(tmp_path)
        assert str(data.coverage) == "6 of 8 database images, 1 of 2 queries"
        assert (data.coverage.partial, len(data.queries)) == (True, 1)
        easy = [keys(data.database)[index] for index in data.easy[0]]
        assert easy == ["landmark_1_000000", "landmark_1_000001"]
        assert (data.hard[0].tolist(), data.junk[0].tolist()) == ([5], [])


class TestDavis(DatasetCase):
    entry = DAVIS_2017_VAL
    fake = fakes.write_fake_davis
    counts = MappingProxyType({"sequences": 2, "frames": 8, "objects": 4})
    complete = "2 of 2 sequences, 8 of 8 frames, 4 of 4 objects"
    partial = "2 of 30 sequences, 8 of 1,999 frames, 4 of 61 objects"
    first = "sequence-0/00000"
    limited = "limited to 1 video", 4
    pixels = "JPEGImages/480p/sequence-0/00000.jpg"
    target = "Annotations/480p/sequence-0/00002.png", masked(1, (48, 32))
    reordered = "ImageSets/2017/val.txt", backwards
    lacks = (
        ("JPEGImages", MISSING, "expected the frames of davis-2017-val at"),
        ("Annotations", MISSING, "expected the masks of davis-2017-val at"),
        ("ImageSets/2017/val.txt", BROKEN, r"a list of sequences at .*val\.txt"),
        ("JPEGImages/480p/sequence-1", PARTIAL, "^1 of 2 sequences, 4 of 8 frames, 2 of 4 objects$"),
        (
            "JPEGImages/480p/sequence-1/00003.jpg",
            BROKEN,
            "a frame for every mask, of sequence .* none at .*00003.jpg; fetch the",
        ),
        (target[0], BROKEN, "a mask for every frame, .*sequence-0, found none at .*00002.png"),
        ("Annotations/480p/sequence-0", BROKEN, "a folder of masks at .*sequence-0"),
    )
    spoiled = (
        ("ImageSets/2017/val.txt", content("a\na\n"), "expected one sequence a line in .*, each once"),
        ("ImageSets/2017/val.txt", content("a\nb\n"), "folders of the sequences a, b in .* found none"),
        ("JPEGImages/480p/sequence-0", emptied, r"expected frames \(\*\.jpg\) in"),
        (target[0], masked(1, (48, 30)), r"0/00002\.png to be 48 x 32 pixels as the first frame .* 48 x 30"),
        (
            "Annotations/480p/sequence-0/00000.png",
            masked(255, (48, 32)),
            r"at least one object in the first mask .*00000\.png",
        ),
        (pixels, content("no image"), r"cannot read the header of image .*00000\.jpg"),
    )

    def test_frames_and_masks_have_numbers(self, tmp_path: Path) -> None:
        video = self.small(tmp_path).read(tmp_path).videos[0]
        assert (video.name, video.size) == ("sequence-0", (48, 32))
        assert keys(video.frames) == [f"sequence-0/{index:05d}" for index in range(4)]
        assert [path.name for path in video.masks] == [f"{index:05d}.png" for index in range(4)]
        assert {1, 2} <= {*read_mask(video.masks[0]).ravel().tolist()} <= {0, 1, 2, 255}

    def test_a_sequence_without_a_frame_that_counts_is_named(self, tmp_path: Path) -> None:
        small = self.small(tmp_path)
        for name in ("JPEGImages/480p/sequence-1/{}.jpg", "Annotations/480p/sequence-1/{}.png"):
            for frame in ("00002", "00003"):
                (tmp_path / small.folder / name.format(frame)).unlink()
        said = str(small.read(tmp_path).coverage)
        assert said.endswith("4 of 4 objects; 1 sequence of fewer than 3 frames not scored (sequence-1)")


PAIR = "PairAnnotation/test/000001-2008_000000-2008_000001:cat.json"


class TestSpair(DatasetCase):
    entry = SPAIR_71K_TEST
    fake = fakes.write_fake_spair
    counts = MappingProxyType({"pairs": 4, "categories": 2})
    complete = "4 of 4 pairs, 2 of 2 categories, 6 images, 12 keypoints"
    partial = "4 of 12,234 pairs, 2 of 18 categories, 6 images"
    first = "cat/2008_000000.jpg"
    limited = "limited to 1 pair a category: 2 pairs used", 6
    pixels = "JPEGImages/cat/2008_000000.jpg"
    target = PAIR, fields(src_kps=[[1, 2], [3, 4], [5, 6]])
    lacks = (
        ("PairAnnotation", MISSING, "expected the pair annotations of spair-71k-test at"),
        (PAIR, PARTIAL, "3 of 4 pairs"),
        ("JPEGImages/dog/2008_010001.jpg", BROKEN, r"image .*_010001\.jpg of pair 000003-.*:dog, found none"),
        ("JPEGImages/dog", BROKEN, r"image .*dog/2008_010000\.jpg of pair"),
    )
    faults = (
        (cut, "expected JSON in .*000001-.*malformed .*; fetch it again"),
        (fields(mirror=1), "mirror to be 0"),
        (fields(mirror="no"), "expected int, got str, at mirror"),
        (fields(mirror=...), "missing required field mirror"),
        (fields(src_kps=[[1, 2]]), "as many source keypoints as target keypoints, found 1 and 3"),
        (fields(src_kps=[]), r"length >= 1, found \[\], at src_kps"),
        (fields(src_imsize=[0, 40, 3]), r"int >= 1, found 0, at src_imsize\[0\]"),
        (fields(occlusion=4), "int <= 3, found 4, at occlusion"),
        (fields(trg_kps=[[1, 2], [3, None], [4, 5]]), r"expected float, got null, at trg_kps\[1\]\[1\]"),
        (fields(trg_kps=[[1, 2], [3, 10**400], [4, 5]]), "number out of range"),
        (fields(trg_kps=[[1, 2], [3], [4, 5]]), r"length 2, got 1, at trg_kps\[1\]"),
        (fields(src_imname=3), "expected str, got int, at src_imname"),
        (fields(src_imname="../dog/a.jpg"), "below the dataset's folder"),
        (fields(trg_bndbox=[5, 5, 5, 9]), "trg_bndbox .* x1 < x2"),
        (fields(trg_bndbox=[5, 5, 10**400, 9]), "trg_bndbox .* x1 < x2"),
        (fields(trg_bndbox=[5, 5]), "list of length 4, got 2, at trg_bndbox"),
        (fields(src_imsize=[51, 40, 3]), "to be 51 x 40 pixels as .* says, found 50 x 40"),
        (fields(trg_imsize=[50, 41, 3], trg_imname="2008_000000.jpg"), "one size of image cat/2008_000000"),
        (fields(category="dog"), "ends with :dog.json"),
        (fields(kps_ids=[]), "as many kps_ids as target keypoints, found 0 and 3"),
    )
    places = (1e300, 101, -51)  # in another image
    names = ("a" * 300 + ".jpg", "\u732b" * 90 + ".jpg", "a\0.jpg")  # that no file has
    spoiled = (
        ("PairAnnotation/test", emptied, r"expected pair annotations \(\*\.json\)"),
        (pixels, content("no image"), "cannot read the header of image"),
        *((PAIR, *fault) for fault in faults),
        *(
            (PAIR, fields(trg_kps=[[1, 1], [2, y], [3, 3]]), r"keypoints .*trg_kps of .*found")
            for y in places
        ),
        *((PAIR, fields(src_imname=name), "at most 255 bytes in") for name in names),
        (PAIR, fields(src_imname="\ud800.jpg"), r"UTF-8 as names of files in .*, found '\\ud800\.jpg'"),
    )


LIST = "ImageSets/Segmentation/train.txt"


class TestVoc(DatasetCase):
    entry: ClassVar[DatasetEntry[Any]] = VOC_2012
    fake = fakes.write_fake_voc
    counts = MappingProxyType({"train_images": 4, "val_images": 3})
    complete = "4 of 4 training images, 3 of 3 validation images"
    partial = "4 of 1,464 training images, 3 of 1,449 validation images"
    first = "2007_000000"
    limited = "limited to 1 image of each split", 2
    pixels = "JPEGImages/2007_000000.jpg"
    target = "SegmentationClass/2007_000000.png", masked(2)
    reordered = LIST, backwards
    lacks: ClassVar[Lacks] = (
        ("ImageSets", MISSING, "expected the lists of voc-2012-val at"),
        (LIST, MISSING, r"list of training images of voc-2012-val at .*train\.txt, which does not exist"),
        ("ImageSets/Segmentation/val.txt", MISSING, r"list of validation images of .* at .*val\.txt"),
        ("SegmentationClass", MISSING, "expected the masks of voc-2012-val at"),
        ("JPEGImages", BROKEN, "images with masks of train of voc-2012-val, found none"),
        (pixels, PARTIAL, r"3 of 4 .*; 1 masks of train of voc-2012-val have no image \(2007_000000\)$"),
        (
            "SegmentationClass/2008_000001.png",
            PARTIAL,
            r"2 of 3 .*; 1 images of val .* no mask \(2008_000001\)$",
        ),
    )
    spoiled: ClassVar[Spoiled] = (
        (LIST, content(""), "found none"),
        (LIST, content("2007_000000\n2007_000000"), "each once"),
        (LIST, content("../2007_000000"), "below the dataset's folder"),
        (LIST, content("2008_000001"), "no image in both splits of voc-2012-val, found 2008_000001"),
        (target[0], masked(0, (4, 3)), "to be 48 x 40 pixels as its image .* found 4 x 3"),
        (pixels, content("no image"), "cannot read the header of image"),
    )

    def test_masks_hold_classes(self, tmp_path: Path) -> None:
        data = self.small(tmp_path).read(tmp_path)
        assert keys(scene.sample for scene in data.val) == [f"2008_{number:06d}" for number in range(3)]
        assert {scene.size for scene in (*data.train, *data.val)} == {(48, 40)}
        assert len(data.classes) == 21
        assert {*np.unique(read_classes(data, data.train[1]))} == {0, 2, 255}

    def test_masks_that_hold_none_are_refused_when_they_are_read(self, tmp_path: Path) -> None:
        small = self.small(tmp_path)
        path = tmp_path / small.folder / self.target[0]
        for change, words in (
            (masked(21), r"pixel values up to 20, and 255 for none, in .*, found 21"),
            (lambda path: Image.new("RGB", (48, 40), "red").save(path), r"values are classes at .* mode RGB"),
        ):
            change(path)
            data = small.read(tmp_path)
            with pytest.raises(InputError, match=words):
                read_classes(data, data.train[0])
        path.write_bytes(b"no image")
        with pytest.raises(UnreadableImageError, match="cannot decode mask"):
            read_classes(data, data.train[0])


class TestVocWithMoreMasks(TestVoc):
    entry = VOC_2012_AUG
    partial = "4 of 10,582 training images, 3 of 1,449 validation images"
    target = "SegmentationClassAug/2007_000000.png", masked(2)
    reordered = "ImageSets/Segmentation/trainaug.txt", backwards
    lacks = (
        (reordered[0], MISSING, r"list of training images of voc-2012-aug-val at .*trainaug\.txt"),
        ("SegmentationClassAug", MISSING, "expected the masks of voc-2012-aug-val at"),
    )
    spoiled = ((target[0], masked(0, (4, 3)), "to be 48 x 40 pixels as its image .* found 4 x 3"),)

    def write(self, root: Path, row: DatasetEntry[Any]) -> None:
        for mask in (fakes.write_fake_voc(root, augmented=True) / "SegmentationClass").glob("2007*"):
            mask.unlink()  # of training images, which are not read


def in_both_splits(folder: Path) -> None:
    """The first training image of ADE20k and its mask among those of validation, too."""
    for kind, ending in (("images", "jpg"), ("annotations", "png")):
        shutil.copy(folder / kind / f"training/ADE_train_00000001.{ending}", folder / kind / "validation")


class TestAde(DatasetCase):
    entry = ADE20K
    fake = fakes.write_fake_ade
    counts = MappingProxyType({"train_images": 4, "val_images": 3})
    complete = "4 of 4 training images, 3 of 3 validation images"
    partial = "4 of 20,210 training images, 3 of 2,000 validation images"
    first = "training/ADE_train_00000001"
    limited = "limited to 1 image of each split", 2
    pixels = "images/training/ADE_train_00000001.jpg"
    target = "annotations/training/ADE_train_00000001.png", masked(2)
    lacks = (
        ("images/validation", MISSING, "expected the images of ade20k-val at"),
        ("annotations/training", MISSING, "expected the masks of ade20k-val at"),
        (pixels, PARTIAL, "1 masks of train.* have no image"),
    )
    spoiled = (
        ("", in_both_splits, "both splits of ade20k-val, found ADE_train_00000001"),
        (target[0], masked(0, (4, 3)), "as its image .* found 4 x 3"),
    )

    def test_masks_hold_classes_from_one_on(self, tmp_path: Path) -> None:
        data = self.small(tmp_path).read(tmp_path)
        assert len(data.classes) == 150
        assert {*np.unique(read_classes(data, data.train[2]))} == {2, 255}  # 0 is none, 1 is the first class
        path = tmp_path / self.entry.folder / "annotations/validation/ADE_val_00000001.png"
        masked(150)(path)
        assert np.unique(read_classes(data, data.val[0])).tolist() == [149]
        masked(151)(path)
        with pytest.raises(InputError, match=r"up to 150, .* found 151"):
            read_classes(data, data.val[0])


JSON = "annotations/instances_val2017.json"


def lists_backwards(path: Path) -> None:
    """The images and annotations of a file the other way round."""
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, **{name: value[name][::-1] for name in ("images", "annotations")}}))


def listed(file_name: str, width: int = 4) -> Change:
    """One image in the file."""
    return fields(images=[{"id": 1, "file_name": file_name, "width": width, "height": 3}])


class TestCoco(DatasetCase):
    entry = COCO_VAL2017
    fake = fakes.write_fake_coco
    counts = MappingProxyType({"images": 4, "first": 4})
    complete = "4 of 4 images listed, 4 of 4 images used, 3 images with regions, 6 regions"
    partial = "4 of 5,000 images listed, 4 of 1,000 images used"
    first = "000000000001.jpg"
    limited = "limited to 1 image", 1
    pixels = "images/val2017/000000000001.jpg"
    target = JSON, last(category_id=1)
    reordered = JSON, lists_backwards
    lacks = (
        (
            "annotations",
            BROKEN,
            r"expected JSON in .*instances_val2017\.json, which cannot be read: No such file",
        ),
        ("images", BROKEN, "in .*images/val2017 or .*coco/val2017, found neither"),
        ("images/val2017/000000000002.jpg", PARTIAL, "3 of 4 images used, 2 images with regions"),
    )
    faults = (
        (cut, "expected JSON in .*malformed"),
        (fields(annotations=[]), "expected annotations of the images"),
        (fields(images=[]), r"length >= 1, found \[\], at images"),
        (fields(categories={}), "expected list, got object, at categories"),
        (fields(categories=[{"id": 1, "name": "a"}] * 2), "categories with different ids"),
        (listed("a.jpg", 0), r"int >= 1, found 0, at images\[0\].width"),
        (listed("/a.jpg"), "below the dataset's folder"),
        (listed("a.jpg"), r"such as a\.jpg\) in .* found none"),
        (last(segmentation={"size": [60, 44], "counts": [2640]}), r"run lengths of size \[44, 60\]"),
        (last(segmentation={"size": [44, 60], "counts": [2]}), "add up to the 2,640 pixels"),
        (last(segmentation=[[1, 2, 3, 4, 5]]), r"expected polygons \(x1 y1 x2 y2 ...\) in annotation"),
        (last(segmentation=[["a"]]), "expected polygons"),
        (last(segmentation=3), "polygons or run lengths as segmentation of annotation 10 .*found 3"),
        (last(category_id=7), "category that is listed in annotation 10 .*found 7"),
        (last(category_id="1"), r"expected int, got str, at annotations\[\d+\].category_id"),
        (last(image_id=None), r"expected int, got null, at annotations\[\d+\].image_id"),
    )
    small_image = Image.new("RGB", (30, 22))
    spoiled = (
        (pixels, small_image.save, r"000000000001\.jpg to be 60 x 44 pixels .* found 30 x 22"),
        ("images/val2017", emptied, r"such as 000000000001\.jpg\) in .* found none"),
        *((JSON, *fault) for fault in faults),
    )


def without(name: str) -> Change:
    """A folder without a file or folder of each partition."""
    return lambda folder: [remove(folder / name.format(split)) for split in ("train", "val", "test")]


WHEEL = {"id": 0, "name": "Wheel", "supercategory": "Car"}


class TestPartImageNet(DatasetCase):
    entry = PARTIMAGENET
    fake = fakes.write_fake_partimagenet
    counts = MappingProxyType({"images": 18, "classes": 6, "supercategories": 2, "parts": 4})
    complete = (
        "18 of 18 images listed, 6 of 6 classes, 2 of 2 super-categories, 4 of 4 part categories, "
        "18 of 18 sampled images, 18 images with regions, 36 regions"
    )
    partial = "18 of 24,095 images listed, 6 of 158 classes, 2 of 11 super-categories"
    first = pixels = "train/n00000001/n00000001_0.JPEG"
    limited = "limited to 1 image", 1
    target = "train.json", last(category_id=0)
    reordered = "val.json", lists_backwards
    lacks = (
        ("test.json", PARTIAL, "without test.json"),
        ("val/n00000003/n00000003_0.JPEG", PARTIAL, "17 of 18 sampled images"),
        ("train/n00000001", PARTIAL, "15 of 18 sampled images"),
    )
    spoiled = (
        (
            "val.json",
            fields(categories=[WHEEL]),
            r"found 'Quadruped Head' and, in .*val\.json, 'Wheel' with id 0",
        ),
        ("val.json", cut, "expected JSON in .*malformed"),
        ("", without("{}.json"), "in .*, found none; the original release of PartImageNet is meant"),
        ("", without("{}"), r"annotated images such as .*train/n00000001/n00000001_0\.JPEG"),
    )


class TestMvtec(OwnDatasetCase):
    entry = MVTEC_AD
    counts = MappingProxyType({"products": 2, "references": 10, "images": 12})
    complete = (
        "2 of 2 products, 10 of 10 reference images, 12 of 12 test images; "
        "6 test images with a defect, 6 of them with a mask"
    )
    partial = "2 of 15 products, 10 of 3,629 reference images, 12 of 1,725 test images"
    first = "bolt/train/good/0.png"
    limited = "limited to 1 image of each kind", 6
    pixels = first
    target = "nut/ground_truth/dent/1_mask.png", masked(255)
    own = "defects"
    lacks = (
        ("nut", PARTIAL, "1 of 2 products"),
        ("nut/train", PARTIAL, "1 of 2 products"),
        ("nut/train/good/0.png", PARTIAL, "9 of 10 reference images"),
        (target[0], PARTIAL, r"1 defect of nut without a mask \(nut/test/dent/1\.png\)"),
        ("nut/test/good", PARTIAL, r"no test image of nut without a defect \(in test/good\): AUROC"),
    )
    spoiled = (
        ("", emptied, "expected folders NAME/train/good and NAME/test in .*, found neither"),
        ("nut/train/good", emptied, "expected good images to learn from of nut in"),
        (target[0], masked(255, (9, 9)), "to be 48 x 40 pixels as its image .* found 9 x 9; save the"),
        (target[0], content("no image"), "cannot read the header of image"),
    )

    def write(self, root: Path, row: DatasetEntry[Any]) -> None:
        fakes.write_fake_defects(root / row.folder, names=("bolt", "nut"))


TABLE = "split_csv/1cls.csv"


class TestVisa(OwnDatasetCase):
    entry = VISA
    fake = fakes.write_fake_visa
    counts = MappingProxyType({"products": 1, "references": 2, "images": 2})
    complete = (
        "1 of 1 products, 2 of 2 reference images, 2 of 2 test images; "
        "1 test images with a defect, 1 of them with a mask"
    )
    partial = "1 of 12 products, 2 of 8,659 reference images, 2 of 2,162 test images"
    first = pixels = "candle/Data/Images/Normal/0.png"
    limited = "limited to 1 image of each kind", 3
    target = "candle/Data/Masks/Anomaly/0.png", masked(255, (40, 32))
    own = "defects"
    lacks = ((TABLE, BROKEN, f"or the table {TABLE}, found neither"),)
    header = "object,split,label,image,mask\n"
    faults = (
        (
            content(f"{header}candle,val,normal,a.png,\n"),
            "train or test and an image in line 2 .*, found 'val'",
        ),
        (content(f"{header}candle,test,normal,../a.png,\n"), "the name of a file below the dataset's folder"),
        (content(header), "a row for each image in .*1cls.csv, found none"),
        (content("a,b\n1,2\n"), "expected"),
    )
    spoiled = (*((TABLE, *fault) for fault in faults),)


EBAY = "Ebay_test.txt"


class TestSop(DatasetCase):
    entry = SOP
    fake = fakes.write_fake_sop
    counts = MappingProxyType({"things": 2, "images": 4})
    complete = "2 of 2 things, 4 of 4 images"
    partial = "2 of 11,316 things, 4 of 60,502 images"
    first = pixels = "mug_final/1_0.JPG"
    limited = "limited to 1 image of each thing: 2 images were used", 2
    target = EBAY, replaced("9 2 1", "9 1 1")
    lacks = (
        (EBAY, BROKEN, r"expected the table of sop at .*Ebay_test\.txt"),
        ("mug_final/2_1.JPG", PARTIAL, "2 of 2 things, 3 of 4 images; 1 image alone of its thing"),
        ("mug_final", BROKEN, "expected Stanford_Online_Products/Ebay_test.txt and the .*; unpack it there"),
    )
    columns = r"image_id class_id super_class_id path in line 5 of .*test\.txt"
    spoiled = (
        (EBAY, replaced("2 1 mug_final/2_1.JPG", "2 mug"), f"{columns}, found 3 words"),
        (EBAY, content("image_id class_id super_class_id path\n"), r"a line for each image in .*test\.txt"),
        (EBAY, replaced("mug_final/2_1.JPG", "../2_1.JPG"), "below the dataset's folder"),
    )


class TestCub(DatasetCase):
    entry = CUB
    fake = fakes.write_fake_cub
    counts = MappingProxyType({"things": 3, "images": 6})
    complete = "3 of 3 things, 6 of 6 images"
    partial = "3 of 100 things, 6 of 5,924 images"
    first = pixels = "images/101.Bird/0.jpg"
    limited = "limited to 1 image of each thing: 3 images were used", 3
    target = first, lambda path: path.rename(path.parents[1] / "102.Bird" / "9.jpg")
    lacks = (
        ("images", BROKEN, "expected a readable folder at .*images"),
        (first, PARTIAL, "5 of 6 images; 1 image alone of its thing"),
    )
    spoiled = (("images", emptied, r"expected CUB_200_2011/images/NUMBER\.NAME/\*\.jpg in .*; unpack it"),)
