"""Tiny datasets in the official on-disk layouts, written by functions that double as their description.

Every function writes below ``root`` (the data folder) and returns the dataset's own folder. Images have some
structure: an ellipse or a rectangle whose colour and place depend on the class, over a gradient.
"""

import json
import pickle
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from workshop.render.masks import write_mask

Size = tuple[int, int]


def fake_image(
    kind: int, size: Size, generator: np.random.Generator
) -> tuple[Image.Image, NDArray[np.uint8]]:
    """An image (width, height) with one object of a kind, and the object's mask, uint8 0/1 [height width]."""
    width, height = size
    across = np.linspace(0, 1, width)[None, :, None]
    down = np.linspace(0, 1, height)[:, None, None]
    first, second = generator.integers(0, 120, (2, 3))
    pixels = first * across + second * down + generator.normal(0, 4, (height, width, 3))
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    mask = Image.new("L", size)
    left, top = generator.uniform(0.05, 0.3, 2) * size
    right, bottom = generator.uniform(0.6, 0.95, 2) * size
    colour = tuple(int(160 + 95 * np.sin(kind * 2 + channel)) for channel in range(3))
    for canvas, fill in ((image, colour), (mask, 1)):
        draw = ImageDraw.Draw(canvas)
        draw.ellipse((left, top, right, bottom), fill) if kind % 2 else draw.rectangle(
            (left, top, right, bottom), fill
        )
    return image, np.array(mask, dtype=np.uint8)


def _save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def _write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_fake_class_folders(
    root: Path, classes: int = 3, images: int = 4, size: Size = (40, 32), seed: int = 0, mark: str = ""
) -> Path:
    """``<root>/<class>/<class>_<index>.JPEG``, classes named like wnids."""
    generator = np.random.default_rng(seed)
    for kind in range(classes):
        name = f"n{kind + 1:08d}"
        for index in range(images):
            _save(fake_image(kind, size, generator)[0], root / name / f"{name}_{mark}{index}.JPEG")
    return root


def write_fake_cub(root: Path) -> Path:
    """``CUB_200_2011/images/<number>.<name>/*.jpg`` of the first things of the test half."""
    generator = np.random.default_rng(11)
    for thing in range(3):
        for image in range(2):
            name = f"{101 + thing}.Bird/{image}.jpg"
            _save(fake_image(thing, (40, 32), generator)[0], root / "CUB_200_2011" / "images" / name)
    return root / "CUB_200_2011"


def write_fake_sop(root: Path) -> Path:
    """``Stanford_Online_Products/Ebay_test.txt`` and the images that it names."""
    folder, generator = root / "Stanford_Online_Products", np.random.default_rng(12)
    lines = ["image_id class_id super_class_id path"]
    for number in range(4):
        name = f"mug_final/{1 + number // 2}_{number % 2}.JPG"
        lines.append(f"{7 + number} {1 + number // 2} 1 {name}")
        _save(fake_image(number // 2, (40, 32), generator)[0], folder / name)
    (folder / "Ebay_test.txt").write_text("\n".join(lines))
    return folder


def write_fake_visa(root: Path) -> Path:
    """``VisA/split_csv/1cls.csv`` and its images: two to learn from, a good one, and one with a mask."""
    folder, generator = root / "VisA", np.random.default_rng(13)
    rows = ["object,split,label,image,mask"]
    for split, label, name in (
        ("train", "normal", "Normal/1"),
        ("train", "normal", "Normal/0"),
        ("test", "normal", "Normal/2"),
        ("test", "anomaly", "Anomaly/0"),
    ):
        image, mask = fake_image(1, (40, 32), generator)
        path = f"candle/Data/Images/{name}.png"
        _save(image, folder / path)
        masked = f"candle/Data/Masks/{name}.png" if label == "anomaly" else ""
        if masked:
            _save(Image.fromarray(mask * np.uint8(255)), folder / masked)
        rows.append(f"candle,{split},{label},{path},{masked}")
    (folder / "split_csv").mkdir()
    (folder / "split_csv" / "1cls.csv").write_text("\n".join(rows) + "\n")
    return folder


def write_fake_imagenet(root: Path, classes: int = 3, train: int = 4) -> Path:
    """``imagenet/{train,val}/<wnid>/*.JPEG``."""
    folder = root / "imagenet"
    write_fake_class_folders(folder / "train", classes, train)
    write_fake_class_folders(folder / "val", classes, images=2, seed=1, mark="val_")
    return folder


def write_fake_cifar10(root: Path) -> Path:
    """``cifar10/{train,test}/<class>/*.png``, the first three classes."""
    generator = np.random.default_rng(7)
    for split, images in (("train", 4), ("test", 2)):
        for kind, name in enumerate(("airplane", "automobile", "bird")):
            for index in range(images):
                path = root / "cifar10" / split / name / f"{index:04d}.png"
                _save(fake_image(kind, (32, 32), generator)[0], path)
    return root / "cifar10"


def write_fake_vtab(
    root: Path, name: str = "dtd", train: Sequence[int] = (0, 0, 1, 1), test: Sequence[int] = (0, 1, 2)
) -> Path:
    """``vtab-1k/<name>/{train800val200,test}.txt`` and ``images/...jpg``, of the classes of the images."""
    folder, generator = root / "vtab-1k" / name, np.random.default_rng(5)
    for split, labels in (("train800val200", train), ("test", test)):
        lines = []
        for number, label in enumerate(labels):
            lines.append(f"images/{split}/{number:06d}.jpg {label}")
            _save(fake_image(label, (40, 32), generator)[0], folder / lines[-1].partition(" ")[0])
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n")
    return folder


def write_fake_revisited(root: Path, name: str = "roxford5k", size: Size = (48, 36), seed: int = 0) -> Path:
    """``<name>/gnd_<name>.pkl`` and ``<name>/jpg/<image>.jpg``.

    A query a landmark; of its views the first are easy positives, the last but one hard, the last junk.
    """
    generator, landmarks, views = np.random.default_rng(seed), 2, 4
    folder = root / name
    database = [f"landmark_{kind}_{view:06d}" for kind in range(landmarks) for view in range(views)]
    queries = [f"query_{kind}_000000" for kind in range(landmarks)]
    for image in [*database, *queries]:
        _save(fake_image(int(image.split("_")[1]), size, generator)[0], folder / "jpg" / f"{image}.jpg")
    truths = [
        {
            "bbx": [4.0, 3.0, size[0] - 4.0, size[1] - 3.0],
            "easy": list(range(kind * views, (kind + 1) * views - 2)),
            "hard": [(kind + 1) * views - 2],
            "junk": np.array([(kind + 1) * views - 1]),
        }
        for kind in range(landmarks)
    ]
    content = {"gnd": truths, "imlist": database, "qimlist": queries}
    (folder / f"gnd_{name}.pkl").write_bytes(pickle.dumps(content, protocol=2))
    return folder


def write_fake_davis(root: Path, sequences: int = 2, frames: int = 4, size: Size = (48, 32)) -> Path:
    """``DAVIS/ImageSets/2017/val.txt``, ``DAVIS/JPEGImages/480p``, palettes in ``DAVIS/Annotations/480p``.

    Rectangles that move to the right; the upper left pixel of a mask is void (255).
    """
    generator, objects = np.random.default_rng(0), 2
    folder = root / "DAVIS"
    names = [f"sequence-{index}" for index in range(sequences)]
    for name in names:
        background = generator.integers(0, 100, 3)
        colours = generator.integers(120, 255, (objects, 3))
        for frame in range(frames):
            pixels = np.zeros((size[1], size[0], 3)) + background + np.arange(size[0])[None, :, None]
            mask = np.zeros((size[1], size[0]), dtype=np.uint8)
            band = size[1] // objects
            for index in range(objects):
                place = np.s_[index * band + 2 : (index + 1) * band - 2, 4 + 2 * frame : 20 + 2 * frame]
                pixels[place], mask[place] = colours[index], index + 1
            mask[0, 0] = 255
            image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
            _save(image, folder / "JPEGImages/480p" / name / f"{frame:05d}.jpg")
            path = folder / "Annotations/480p" / name / f"{frame:05d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_mask(path, mask)
    subset = folder / "ImageSets/2017/val.txt"
    subset.parent.mkdir(parents=True, exist_ok=True)
    subset.write_text("\n".join(names) + "\n")
    return folder


def write_fake_spair(root: Path, categories: tuple[str, ...] = ("cat", "dog"), separator: str = ":") -> Path:
    """``SPair-71k/JPEGImages/<category>/*.jpg`` and a pair annotation for each two neighbours in the list."""
    generator, images, size = np.random.default_rng(0), 3, (50, 40)
    folder = root / "SPair-71k"
    number = 0
    for kind, category in enumerate(categories):
        names = [f"2008_{kind:02d}{index:04d}" for index in range(images)]
        for name in names:
            _save(fake_image(kind, size, generator)[0], folder / "JPEGImages" / category / f"{name}.jpg")
        for source, target in pairwise(names):
            number += 1
            stem = f"{number:06d}-{source}-{target}{separator}{category}"
            pair = fake_spair_pair(source, target, category, size, generator)
            _write_json(folder / "PairAnnotation/test" / f"{stem}.json", pair)
    return folder


def fake_spair_pair(
    source: str, target: str, category: str, size: Size, generator: np.random.Generator
) -> dict[str, object]:
    """The fields of a pair annotation that are used, with three keypoints."""
    points = generator.integers(2, min(size) - 2, (2, 3, 2)).tolist()
    return {
        "src_imname": f"{source}.jpg",
        "trg_imname": f"{target}.jpg",
        "src_imsize": [*size, 3],
        "trg_imsize": [*size, 3],
        "src_bndbox": [1, 1, size[0] - 1, size[1] - 1],
        "trg_bndbox": [2, 2, size[0] - 2, size[1] - 2],
        "category": category,
        "src_kps": points[0],
        "trg_kps": points[1],
        "kps_ids": ["0", "1", "2"],
        "mirror": 0,
    }


def uncompressed_rle(mask: NDArray[np.uint8]) -> dict[str, object]:
    """COCO's run lengths of a binary mask [height width]: column by column, zeros first."""
    flat = np.concatenate([[0], mask.ravel(order="F")])
    changes = np.flatnonzero(np.diff(flat)) if len(flat) > 1 else np.empty(0, np.int64)
    counts = np.diff(np.concatenate([[0], changes, [mask.size]])).tolist()
    return {"size": list(mask.shape), "counts": counts}


def write_fake_coco(root: Path, images: int = 4, size: Size = (60, 44)) -> Path:
    """``coco/images/val2017/*.jpg`` and ``coco/annotations/instances_val2017.json``.

    Every image but the last has a crowd (run lengths) and a triangle (polygon); the last has nothing.
    """
    generator = np.random.default_rng(0)
    folder = root / "coco"
    listed, annotations = [], []
    for identity in range(images, 0, -1):
        image, mask = fake_image(identity, size, generator)
        name = f"{identity:012d}.jpg"
        _save(image, folder / "images/val2017" / name)
        listed.append({"id": identity, "file_name": name, "width": size[0], "height": size[1]})
        if identity == images:
            continue
        shared = {"image_id": identity, "category_id": 1 + identity % 2}
        triangle = [[5, 5, size[0] - 5, 8, 20.5, size[1] - 3]]
        annotations += [
            {**shared, "id": 10 * identity + 1, "iscrowd": 1, "segmentation": uncompressed_rle(mask)},
            {**shared, "id": 10 * identity, "iscrowd": 0, "segmentation": triangle},
        ]
    categories = [{"id": 2, "name": "cat", "supercategory": "animal"}, {"id": 1, "name": "person"}]
    content = {"images": listed, "annotations": annotations, "categories": categories}
    _write_json(folder / "annotations/instances_val2017.json", content)
    return folder


def write_fake_partimagenet(root: Path, images: int = 3) -> Path:
    """``PartImageNet/{train,val,test}.json`` and ``PartImageNet/<split>/<wnid>/<wnid>_<index>.JPEG``.

    Classes with an even number are quadrupeds, the others birds; every image has a head and a body.
    """
    generator, size = np.random.default_rng(0), (40, 36)
    folder = root / "PartImageNet"
    parts = ["Quadruped Head", "Quadruped Body", "Bird Head", "Bird Body"]
    categories = [
        {"id": index, "name": name, "supercategory": name.split()[0]} for index, name in enumerate(parts)
    ]
    for number, split in enumerate(("train", "val", "test")):
        listed: list[dict[str, object]] = []
        annotations: list[dict[str, object]] = []
        for kind in (2 * number, 2 * number + 1):
            wnid = f"n{kind:08d}"
            for index in range(images):
                image, _ = fake_image(kind, size, generator)
                identity = len(listed)
                name = f"{wnid}_{index}.JPEG"
                _save(image, folder / split / wnid / name)
                listed.append({"id": identity, "file_name": name, "width": size[0], "height": size[1]})
                for part, box in enumerate(([2, 2, 18, 2, 18, 30, 2, 30], [20, 4, 38, 4, 38, 30, 20, 30])):
                    annotations.append(
                        {
                            "id": 2 * identity + part,
                            "image_id": identity,
                            "category_id": 2 * (kind % 2) + part,
                            "iscrowd": 0,
                            "segmentation": [box],
                        }
                    )
        content = {"images": listed, "annotations": annotations, "categories": categories}
        _write_json(folder / f"{split}.json", content)
    return folder


def write_fake_voc(root: Path, train: int = 4, val: int = 3, augmented: bool = False) -> Path:
    """``VOCdevkit/VOC2012``: one figure an image, of classes 1 to 3 in turn, with a rim without a class."""
    generator, size = np.random.default_rng(0), (48, 40)
    folder = root / "VOCdevkit" / "VOC2012"
    lists = {"train": [f"2007_{n:06d}" for n in range(train)], "val": [f"2008_{n:06d}" for n in range(val)]}
    names = {"trainaug": lists["train"], "val": lists["val"]} if augmented else lists
    for split, ids in names.items():
        folders = (
            ["SegmentationClass", "SegmentationClassAug"] if split == "trainaug" else ["SegmentationClass"]
        )
        for number, name in enumerate(ids):
            image, mask = fake_image(number, size, generator)
            _save(image, folder / "JPEGImages" / f"{name}.jpg")
            classes = mask * np.uint8(1 + number % 3)
            classes[:, 0] = 255
            for masks in folders:
                (folder / masks).mkdir(exist_ok=True)
                write_mask(folder / masks / f"{name}.png", classes)
        listed = folder / "ImageSets" / "Segmentation" / f"{split}.txt"
        listed.parent.mkdir(parents=True, exist_ok=True)
        listed.write_text("\n".join(ids))  # without a last newline, as some copies have it
    return folder


def write_fake_ade(root: Path, train: int = 4, val: int = 3) -> Path:
    """``ADEChallengeData2016``: one figure an image, of pixel values 1 to 3 in turn, on 0."""
    generator, size = np.random.default_rng(0), (48, 40)
    folder = root / "ADEChallengeData2016"
    for split, part, count in (("training", "train", train), ("validation", "val", val)):
        for number in range(count):
            image, mask = fake_image(number, size, generator)
            name = f"ADE_{part}_{number + 1:08d}"
            _save(image, folder / "images" / split / f"{name}.jpg")
            _save(
                Image.fromarray(mask * np.uint8(1 + number % 3)),
                folder / "annotations" / split / f"{name}.png",
            )
    return folder


def write_fake_defects(folder: Path, names: Sequence[str] = ("nut",)) -> Path:
    """Products in MVTec AD's layout: three good images to score, and as many with a bright square."""
    generator = np.random.default_rng(7)
    for name in names:
        pattern = generator.integers(0, 256, (40, 48, 3)).astype(np.int64)
        for part, count in (("train/good", 5), ("test/good", 3), ("test/dent", 3)):
            for number in range(count):
                mask = np.zeros(pattern.shape[:2], np.uint8)
                if part == "test/dent":
                    mask[8 + 4 * number : 24 + 4 * number, 8:24] = 255
                noisy = np.clip(pattern + generator.integers(-9, 10, pattern.shape), 0, 255)
                image = np.where(mask[:, :, None] > 0, 255, noisy).astype(np.uint8)
                _save(Image.fromarray(image), folder / name / part / f"{number}.png")
                if mask.any():
                    _save(
                        Image.fromarray(mask), folder / name / "ground_truth" / "dent" / f"{number}_mask.png"
                    )
    return folder


def write_deep_image(path: Path, values: np.ndarray, kind: str = "PNG") -> Path:
    """Values of 16 bits, [height width channels], as PNG, or as TIFF: ``<raw``, ``>deflate``, ...

    Alone it serves grey, grey with alpha (PNG), colour and colour with alpha.
    """
    height, width, channels = values.shape
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "PNG":
        rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
        head = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
        chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
        framed = (struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks)
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(framed))
        return path
    order, how = kind[0], kind[1:]
    data = values.astype(f"{order}u2").tobytes()
    data = zlib.compress(data) if how == "deflate" else data
    entries = 10 + (channels == 4)
    start = 8 + 2 + 12 * entries + 4
    bits = struct.pack(f"{order}{channels}H", *([16] * channels))
    shorts = {256: width, 257: height, 259: {"raw": 1, "deflate": 8}[how], 262: 2 if channels > 2 else 1}
    shorts |= {277: channels, 278: height, 284: 1} | ({338: 2} if channels == 4 else {})
    longs = {258: start, 273: start + len(bits), 279: len(data)}
    tags = {tag: struct.pack(f"{order}HHIHH", tag, 3, 1, value, 0) for tag, value in shorts.items()}
    tags |= {tag: struct.pack(f"{order}HHII", tag, 4, 1, value) for tag, value in longs.items()}
    alone = struct.pack(f"{order}HHIHH", 258, 3, 1, 16, 0)
    tags[258] = alone if channels == 1 else struct.pack(f"{order}HHII", 258, 3, channels, start)
    mark = b"II" if order == "<" else b"MM"
    head = mark + struct.pack(f"{order}HIH", 42, 8, entries)
    path.write_bytes(head + b"".join(tags[tag] for tag in sorted(tags)) + bytes(4) + bits + data)
    return path
