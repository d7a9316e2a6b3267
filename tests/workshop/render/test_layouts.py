"""Each dataset on disk: the official layout, complete, and read by the readers of the real ones."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from pycocotools import mask as coco_mask

from layerboard.mini import facts
from layerboard.mini.packs import packaged_data
from layerboard.tasks.datasets.classes import ProbeSubset
from layerboard.tasks.datasets.coco import CocoEntry
from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.defects import DefectEntry, read_defect
from layerboard.tasks.datasets.imagenet import ImageNetEntry
from layerboard.tasks.datasets.instances import InstanceEntry
from layerboard.tasks.datasets.partimagenet import PartImageNetEntry
from layerboard.tasks.datasets.reading.files import open_image
from layerboard.tasks.datasets.reading.masks import voc_palette
from layerboard.tasks.datasets.reading.safe_pickle import restricted_load
from layerboard.tasks.datasets.revisitop import RevisitedEntry
from layerboard.tasks.datasets.scenes import VocEntry, read_classes
from layerboard.tasks.datasets.spair import SpairEntry
from tests.workshop.render.conftest import IMAGENET_CLASSES
from workshop.render.templates import TEMPLATES
from workshop.render.writers import WRITERS, defects, imagenet, partimagenet, spair, voc
from workshop.render.writers.base import Note


def test_imagenet(mini_root: Path) -> None:
    train, val = (IMAGENET_CLASSES * each for each in (facts.TRAIN_PER_CLASS, facts.VAL_PER_CLASS))
    entry = ImageNetEntry(
        name="mini",
        classes=IMAGENET_CLASSES,
        train=train,
        val=val,
        probe=ProbeSubset(None, facts.TRAIN_PER_CLASS),
    )
    data = entry.read(mini_root)
    assert not data.coverage.partial
    assert data.train.classes == tuple(template.wnid for template in TEMPLATES[:IMAGENET_CLASSES])
    assert np.bincount(data.train.labels).tolist() == [facts.TRAIN_PER_CLASS] * IMAGENET_CLASSES
    assert np.bincount(data.val.labels).tolist() == [facts.VAL_PER_CLASS] * IMAGENET_CLASSES
    assert len({sample.open().size for sample in data.val.samples}) > 4


def test_all_of_imagenet_is_planned() -> None:
    assert len(imagenet.WRITER.images) == 2 * facts.CLASSES
    assert sum(imagenet.WRITER.images) == facts.TRAIN + facts.VAL


def test_revisited_oxford(mini_root: Path) -> None:
    data = RevisitedEntry("mini", "roxford5k", facts.DATABASE, facts.QUERIES).read(mini_root)
    assert not data.coverage.partial
    assert {len(rows) for rows in data.easy} == {facts.EASY_PER_IDENTITY}
    assert {len(rows) for rows in data.hard} == {facts.HARD_PER_IDENTITY}
    assert {len(rows) for rows in data.junk} == {facts.JUNK_PER_IDENTITY}
    used = {int(row) for lists in (data.easy, data.hard, data.junk) for rows in lists for row in rows}
    assert facts.DATABASE - len(used) == facts.DISTRACTORS
    for query in data.queries:
        width, height = query.open().size
        assert query.box is not None
        left, top, right, bottom = query.box
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height


def test_the_pickle_holds_plain_containers(mini_root: Path) -> None:
    path = mini_root / "roxford5k" / "gnd_roxford5k.pkl"
    assert path.read_bytes()[:2] == b"\x80\x03"
    content = restricted_load(path)
    assert isinstance(content, dict)
    assert list(content) == ["gnd", "imlist", "qimlist"]
    truth = content["gnd"]
    assert isinstance(truth, list)
    assert all(type(value) is float for entry in truth for value in entry["bbx"])
    assert all(
        type(row) is int for entry in truth for role in ("easy", "hard", "junk") for row in entry[role]
    )


def test_davis(mini_root: Path) -> None:
    entry = DavisEntry(name="mini", sequences=facts.SEQUENCES, frames=facts.FRAMES, objects=facts.OBJECTS)
    data = entry.read(mini_root)
    assert not data.coverage.partial
    for video in data.videos:
        assert video.size == (facts.FRAME_WIDTH, facts.FRAME_HEIGHT)
        with Image.open(video.masks[0]) as first:
            assert first.mode == "P"
            assert first.getpalette() == voc_palette().ravel().tolist()
            ids = [number for number in np.unique(np.asarray(first)) if number]
        assert ids == list(range(1, len(ids) + 1))
        for path in video.masks:
            with Image.open(path) as mask:
                areas = np.bincount(np.asarray(mask).ravel(), minlength=len(ids) + 1)
            assert len(areas) == len(ids) + 1
            assert areas[1:].min() > 100


def test_the_palette_is_that_of_davis() -> None:
    start = "0 0 0 128 0 0 0 128 0 128 128 0 0 0 128 128 0 128 0 128 128 128 128 128 64 0 0"
    official = [int(value) for value in start.split()]
    assert voc_palette().ravel().tolist()[:27] == official


def test_spair(mini_root: Path) -> None:
    data = SpairEntry("mini", pairs=facts.PAIRS, categories=facts.CATEGORIES, levels=()).read(mini_root)
    assert not data.coverage.partial
    assert len(data.samples) == facts.CATEGORIES * facts.IMAGES_PER_CATEGORY
    assert min(len(pair.source_points) for pair in data.pairs) >= facts.LEAST_POINTS
    for pair in data.pairs:
        assert pair.source != pair.target
        assert pair.category in spair.CATEGORIES


def test_spair_annotations_have_the_official_fields(mini_root: Path) -> None:
    example = {
        "pair_id",
        "filename",
        "src_imname",
        "trg_imname",
        "src_imsize",
        "trg_imsize",
        "src_bndbox",
        "trg_bndbox",
        "category",
        "src_pose",
        "trg_pose",
        "src_kps",
        "trg_kps",
        "kps_ids",
        "mirror",
        "viewpoint_variation",
        "scale_variation",
        "truncation",
        "occlusion",
    }
    folder = mini_root / "SPair-71k"
    names = (folder / "Layout" / "large" / "test.txt").read_text().split()
    assert len(names) == facts.PAIRS
    for name in names:
        pair = json.loads((folder / "PairAnnotation" / "test" / f"{name}.json").read_text())
        assert set(pair) == example
        assert pair["filename"] == name
        assert len(pair["src_kps"]) == len(pair["trg_kps"]) == len(pair["kps_ids"])
        assert name.endswith(f":{pair['category']}")


def test_voc(mini_root: Path) -> None:
    entry = VocEntry(
        name="mini", train_images=facts.SCENES_TRAIN, val_images=facts.SCENES_VAL, memory=facts.MEMORY
    )
    data = entry.read(mini_root)
    assert not data.coverage.partial
    assert {scene.size for scene in data.train} == {(128, 96), (96, 128)}
    numbers = {number for number, _ in voc.CLASSES}
    for scenes in (data.train, data.val):
        masks = [read_classes(data, scene) for scene in scenes]
        assert {int(one) for mask in masks for one in np.unique(mask)} == {0, 255, *numbers}
        # the first figure walks through the classes, and others beside it
        shown = [sum((mask == number).any() for mask in masks) for number in numbers]
        assert min(shown) >= len(masks) / 8
        assert all((mask == 0).any() for mask in masks)
    listed = (mini_root / "VOCdevkit/VOC2012/ImageSets/Segmentation/trainval.txt").read_text().split()
    assert listed == sorted(scene.sample.key for scene in (*data.train, *data.val))
    with Image.open(data.train[0].mask) as mask:
        assert mask.mode == "P"
        assert mask.getpalette() == voc_palette().ravel().tolist()


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


def test_coco(mini_root: Path) -> None:
    entry = CocoEntry(name="mini", images=facts.COCO_IMAGES, first=facts.COCO_IMAGES)
    data = entry.read(mini_root)
    assert not data.coverage.partial
    assert len(data.images) == facts.COCO_IMAGES
    assert len(data.categories) == facts.COCO_CATEGORIES
    used = {region.label for image in data.images for region in image.regions}
    assert used == set(data.categories)
    content = json.loads((mini_root / "coco/annotations/instances_val2017.json").read_text())
    assert len(content["annotations"]) == 165
    assert sum(annotation["iscrowd"] for annotation in content["annotations"]) == facts.COCO_CROWDS


def test_partimagenet(mini_root: Path) -> None:
    entry = PartImageNetEntry(
        name="mini",
        images=facts.PART_IMAGES,
        classes=facts.PART_CLASSES,
        supercategories=facts.PART_SUPERCATEGORIES,
        parts=facts.PART_CATEGORIES,
    )
    data = entry.read(mini_root)
    assert not data.coverage.partial
    assert sum(len(image.regions) for image in data.images) == 167
    used = {region.label for image in data.images for region in image.regions}
    assert used == set(range(len(partimagenet.CATEGORIES)))
    splits = [
        json.loads((mini_root / f"PartImageNet/{name}.json").read_text()) for name in ("train", "val", "test")
    ]
    assert tuple(len(split["images"]) for split in splits) == (31, 5, 12)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(
    "file", ["coco/annotations/instances_val2017.json", "PartImageNet/train.json", "PartImageNet/val.json"]
)
def test_segmentations_have_the_stated_area_and_box(mini_root: Path, file: str) -> None:
    content = json.loads((mini_root / file).read_text())
    sizes = {image["id"]: (image["height"], image["width"]) for image in content["images"]}
    kinds = set()
    for annotation in content["annotations"]:
        mask = _decode(annotation["segmentation"], *sizes[annotation["image_id"]])
        kinds.add(type(annotation["segmentation"]))
        rows, columns = np.nonzero(mask)
        left, top, width, height = annotation["bbox"]
        assert len(rows) == annotation["area"]
        assert (columns.min(), rows.min()) == (left, top)
        assert (columns.max() + 1, rows.max() + 1) == (left + width, top + height)
    assert kinds == {list, dict}


def test_annotations_made_of_kept_notes_are_the_same_bytes(
    mini_root: Path, mini_notes: dict[str, list[Note]], tmp_path: Path
) -> None:
    for writer in WRITERS:
        writer.finish(tmp_path, json.loads(json.dumps(mini_notes[writer.name])))
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > facts.PAIRS
    assert all((mini_root / file).read_bytes() == (tmp_path / file).read_bytes() for file in files)


def _decode(segmentation: object, height: int, width: int) -> NDArray[np.uint8]:
    coded = coco_mask.frPyObjects(segmentation, height, width)
    merged = coco_mask.merge(coded) if isinstance(coded, list) else coded
    return np.asarray(coco_mask.decode(merged))


def test_defects(mini_root: Path) -> None:
    entry = DefectEntry("mini", "defects", facts.PRODUCTS, facts.REFERENCES, facts.INSPECTED)
    data = entry.read(mini_root)
    assert not data.coverage.partial
    for product in data.products:
        assert product.masked
        kinds = Counter(image.kind for image in product.images)
        defective = dict.fromkeys(defects.KINDS, facts.DEFECTIVE_PER_KIND)
        assert kinds == {"good": facts.GOOD_PER_PRODUCT, **defective}
        for image in product.images:
            pixels = np.asarray(image.sample.open())
            mask = read_defect(image)
            assert mask.shape == pixels.shape[:2]
            assert (image.kind == "good") == (not mask.any())
            assert mask.mean() < 0.35


def test_things(mini_root: Path) -> None:
    entry = InstanceEntry("mini", "things", facts.THINGS, facts.THING_IMAGES, table="Ebay_test.txt")
    data = entry.read(mini_root)
    assert not data.coverage.partial
    each = Counter(image.thing for image in data.images)
    assert each == {str(thing + 1): facts.THING_IMAGES_EACH for thing in range(facts.THINGS)}
    assert data.images[0].sample.open().size == (96, 96)


def test_defects_change_the_pixels_of_their_masks_alone() -> None:
    for kind in defects.KINDS:
        good, changed = (defects.photograph(2, 30, each) for each in ("good", kind))
        differs = (good[0] != changed[0]).any(axis=2)
        assert not (differs & ~changed[1]).any()
        assert differs[changed[1]].mean() > 0.9


def test_the_package_has_what_is_drawn(mini_root: Path) -> None:
    """On another machine a function may differ in the last bit, and so may a pixel."""
    root = packaged_data()
    drawn = [
        path for path in sorted(mini_root.rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg", ".png")
    ]
    for path in drawn[::5]:
        with Image.open(path) as image, open_image(root / path.relative_to(mini_root)) as packaged:
            assert packaged.mode == image.mode
            assert np.abs(np.asarray(packaged, float) - np.asarray(image, float)).mean() < 0.5, path
