"""The package has what is drawn, and its files say what the pictures show, in the official layouts."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco_mask

from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.mini.packs import packaged_data
from layerboard.tasks.datasets.defects import read_defect
from layerboard.tasks.datasets.reading.files import is_file, open_image, read_bytes
from layerboard.tasks.datasets.reading.safe_pickle import restricted_load
from layerboard.tasks.datasets.scenes import read_classes
from workshop.render import facts
from workshop.render.masks import voc_palette
from workshop.render.templates import TEMPLATES
from workshop.render.writers import WRITERS, defects, imagenet, partimagenet, spair, voc
from workshop.render.writers.base import Writer

ROOT = packaged_data()
ANNOTATED = ("spair", "coco", "partimagenet")
"""Datasets with files that are made of notes of all units."""


def read(name: str) -> Any:
    """A dataset of the package."""
    return next(entry for entry in MINI_SUITE.datasets if entry.name == name).read(ROOT)


def content(name: str) -> Any:
    """A JSON file of the package."""
    return json.loads(read_bytes(ROOT / name))


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
def test_the_package_has_what_is_drawn(writer: Writer, tmp_path: Path) -> None:
    """On another machine a function may differ in the last bit, and so may a pixel."""
    every = range(len(writer.images))
    units = every if writer.name in ANNOTATED else every[-1:]
    notes = [note for unit in units for note in writer.render(tmp_path, unit)]
    drawn = [path for path in tmp_path.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png")]
    assert len(drawn) >= len(units)
    for path in sorted(drawn)[::3]:
        with Image.open(path) as image, open_image(ROOT / path.relative_to(tmp_path)) as packaged:
            assert packaged.mode == image.mode
            assert np.abs(np.asarray(packaged, float) - np.asarray(image, float)).mean() < 0.5, path
    if units == every:
        writer.finish(tmp_path, json.loads(json.dumps(notes)))
        files = {path: ROOT / path.relative_to(tmp_path) for path in tmp_path.rglob("*.json")}
        kept = {path: len(read_bytes(packed)) for path, packed in files.items() if is_file(packed)}
        assert kept
        assert {path: len(path.read_bytes()) for path in kept} == pytest.approx(kept, rel=0.02)


def test_all_of_imagenet_is_planned() -> None:
    assert len(imagenet.WRITER.images) == 2 * facts.CLASSES
    assert sum(imagenet.WRITER.images) == facts.TRAIN + facts.VAL
    data = read("mini-imagenet")
    assert data.train.classes == tuple(template.wnid for template in TEMPLATES)
    assert set(np.bincount(data.train.labels)) == {facts.TRAIN_PER_CLASS}
    assert len({sample.open().size for sample in data.val.samples[:40]}) > 4


def test_revisited_oxford() -> None:
    data = read("mini-oxford")
    assert {len(rows) for rows in data.easy} == {facts.EASY_PER_IDENTITY}
    assert {len(rows) for rows in data.hard} == {facts.HARD_PER_IDENTITY}
    assert {len(rows) for rows in data.junk} == {facts.JUNK_PER_IDENTITY}
    used = {int(row) for lists in (data.easy, data.hard, data.junk) for rows in lists for row in rows}
    assert facts.DATABASE - len(used) == facts.DISTRACTORS
    for query in data.queries:
        width, height = query.open().size
        left, top, right, bottom = query.box
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height


def test_the_pickle_holds_plain_containers() -> None:
    path = ROOT / "roxford5k" / "gnd_roxford5k.pkl"
    assert read_bytes(path)[:2] == b"\x80\x03"
    truth: Any = restricted_load(path)
    assert list(truth) == ["gnd", "imlist", "qimlist"]
    for entry in truth["gnd"]:
        assert {type(value) for value in entry["bbx"]} == {float}
        assert {type(row) for role in ("easy", "hard", "junk") for row in entry[role]} == {int}


def test_davis() -> None:
    for video in read("mini-davis").videos:
        assert video.size == (facts.FRAME_WIDTH, facts.FRAME_HEIGHT)
        first = open_image(video.masks[0])
        assert (first.mode, first.getpalette()) == ("P", voc_palette().ravel().tolist())
        ids = [number for number in np.unique(np.asarray(first)) if number]
        assert ids == list(range(1, len(ids) + 1))
        for path in video.masks:
            areas = np.bincount(np.asarray(open_image(path)).ravel(), minlength=len(ids) + 1)
            assert len(areas) == len(ids) + 1
            assert areas[1:].min() > 100


def test_spair_annotations_have_the_official_fields() -> None:
    data = read("mini-spair")
    assert len(data.samples) == facts.CATEGORIES * facts.IMAGES_PER_CATEGORY
    assert min(len(pair.source_points) for pair in data.pairs) >= facts.LEAST_POINTS
    assert {pair.category for pair in data.pairs} == {*spair.CATEGORIES}
    sides = (
        f"{side}_{what}" for side in ("src", "trg") for what in ("imname", "imsize", "bndbox", "pose", "kps")
    )
    fields = {*sides, "pair_id", "filename", "category", "kps_ids", "mirror"}
    fields |= {"viewpoint_variation", "scale_variation", "truncation", "occlusion"}
    assert len(data.pairs) == facts.PAIRS
    for name in [pair.key for pair in data.pairs][::5]:
        pair = content(f"SPair-71k/PairAnnotation/test/{name}.json")
        assert set(pair) == fields
        assert pair["filename"] == name
        assert len(pair["src_kps"]) == len(pair["trg_kps"]) == len(pair["kps_ids"])
        assert name.endswith(f":{pair['category']}")


def test_voc() -> None:
    data = read("mini-voc")
    assert {scene.size for scene in data.train} == {(128, 96), (96, 128)}
    numbers = {number for number, _ in voc.CLASSES}
    for scenes in (data.train, data.val):
        masks = [read_classes(data, scene) for scene in scenes]
        assert {int(one) for mask in masks for one in np.unique(mask)} == {0, 255, *numbers}
        # the first figure walks through the classes, and others beside it
        shown = [sum((mask == number).any() for mask in masks) for number in numbers]
        assert min(shown) >= len(masks) / 8
        assert all((mask == 0).any() for mask in masks)
    mask = open_image(data.train[0].mask)
    assert (mask.mode, mask.getpalette()) == ("P", voc_palette().ravel().tolist())


def test_outlines_and_small_figures_have_no_class() -> None:
    figures = np.zeros((20, 20), np.int16)
    figures[2:12, 2:12] = 1
    figures[14:18, 14:18] = 2  # 16 pixels
    mask = voc.class_mask(figures, [7, 9])
    assert (mask[3:11, 3:11] == 7).all()
    assert (mask[2, 2:12] == 255).all()
    assert (mask[1, 2:12] == 255).all()
    assert (mask[14:18, 14:18] == 255).all()
    assert mask[0, 0] == mask[1, 1] == mask[12, 12] == 0


def test_objects_and_parts_are_of_all_categories() -> None:
    objects, parts = read("mini-coco"), read("mini-partimagenet")
    assert {region.label for image in objects.images for region in image.regions} == {*objects.categories}
    annotations = content("coco/annotations/instances_val2017.json")["annotations"]
    assert len(annotations) == 165
    assert sum(annotation["iscrowd"] for annotation in annotations) == facts.COCO_CROWDS
    labels = [region.label for image in parts.images for region in image.regions]
    assert (len(labels), {*labels}) == (167, {*range(len(partimagenet.CATEGORIES))})
    splits = [content(f"PartImageNet/{name}.json") for name in ("train", "val", "test")]
    assert [len(split["images"]) for split in splits] == [31, 5, 12]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("file", ["coco/annotations/instances_val2017.json", "PartImageNet/train.json"])
def test_segmentations_have_the_stated_area_and_box(file: str) -> None:
    stated = content(file)
    sizes = {image["id"]: (image["height"], image["width"]) for image in stated["images"]}
    kinds = set()
    for annotation in stated["annotations"]:
        mask = _decode(annotation["segmentation"], *sizes[annotation["image_id"]])
        kinds.add(type(annotation["segmentation"]))
        rows, columns = np.nonzero(mask)
        left, top, width, height = annotation["bbox"]
        assert len(rows) == annotation["area"]
        assert (columns.min(), rows.min()) == (left, top)
        assert (columns.max() + 1, rows.max() + 1) == (left + width, top + height)
    assert kinds == {list, dict}


def _decode(segmentation: object, height: int, width: int) -> NDArray[np.uint8]:
    coded = coco_mask.frPyObjects(segmentation, height, width)
    merged = coco_mask.merge(coded) if isinstance(coded, list) else coded
    return np.asarray(coco_mask.decode(merged))


def test_defects_and_things() -> None:
    for product in read("mini-defects").products:
        kinds = Counter(image.kind for image in product.images)
        defective = dict.fromkeys(defects.KINDS, facts.DEFECTIVE_PER_KIND)
        assert kinds == {"good": facts.GOOD_PER_PRODUCT, **defective}
        for image in product.images:
            mask = read_defect(image)
            assert mask.shape == image.size[::-1]
            assert (image.kind == "good") == (not mask.any())
            assert mask.mean() < 0.35
    each = Counter(image.thing for image in read("mini-things").images)
    assert each == {str(thing + 1): facts.THING_IMAGES_EACH for thing in range(facts.THINGS)}


def test_defects_change_the_pixels_of_their_masks_alone() -> None:
    for kind in defects.KINDS:
        good, changed = (defects.photograph(2, 30, each) for each in ("good", kind))
        differs = (good[0] != changed[0]).any(axis=2)
        assert not (differs & ~changed[1]).any()
        assert differs[changed[1]].mean() > 0.9
