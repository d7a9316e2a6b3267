"""The JSON format of COCO instances, and masks of its regions."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.fields import (
    JsonObject,
    as_object,
    get_integer,
    get_objects,
    get_text,
    numbers,
    read_json,
)
from tasks.datasets.files import describe, require_inside
from zoo.errors import InputError

Polygons = list[list[float]]
RunLengths = dict[str, object]

LONGEST_OUTLINE = 2**22
"""Pixels of all edges of a polygon together; pycocotools takes about 80 bytes for each."""

_FIRST, _LAST = "0", "o"
"""The characters of compressed run lengths: each holds five bits and whether more follow."""

_MOST_CHARACTERS = 6
"""Of one number: 30 bits, as many as pycocotools can shift."""


def read_polygons(value: Sequence[object], size: tuple[int, int], where: str) -> Polygons:
    """Lists of x1 y1 x2 y2 ... near an image of the (width, height); raises InputError.

    Official annotations may leave the image a little, and what lies outside is cut off; one that leaves it by
    more than its longer side belongs to another image.
    """
    polygons: Polygons = []
    margin = max(size)
    for each in value:
        polygon = numbers(each)
        if polygon is None or len(polygon) % 2:
            raise InputError(f"expected polygons (x1 y1 x2 y2 ...) in {where}, found {describe(each)}")
        for axis, side in enumerate(size):
            far = [number for number in polygon[axis::2] if not -margin <= number <= side + margin]
            if far:
                raise InputError(
                    f"expected the polygons in {where} on its image of {size[0]} x {size[1]} pixels, found "
                    f"the {'xy'[axis]} coordinate {describe(far[0])}; fetch the official annotations"
                )
        if _length(polygon) > LONGEST_OUTLINE:
            raise InputError(
                f"expected polygons of at most {LONGEST_OUTLINE:,} pixels of outline in {where}, found one "
                f"of {_length(polygon):,.0f}; fetch the official annotations"
            )
        polygons.append(polygon)
    return polygons


def _length(polygon: Sequence[float]) -> float:
    """Pixels that the edges of a polygon pass, the closing one included."""
    points = list(zip(polygon[::2], polygon[1::2], strict=True))
    return sum(
        max(abs(x - u), abs(y - v)) for (x, y), (u, v) in zip(points, points[-1:] + points, strict=False)
    )


def read_run_lengths(value: object, size: tuple[int, int], where: str) -> RunLengths:
    """Compressed (text) or uncompressed (list) run lengths of an image of the (width, height).

    Raises:
        InputError: Another size, or counts that are no whole numbers from 0 on or do not add up to the image.
    """
    fields = as_object(value, f"segmentation of {where}")
    counts = fields.get("counts")
    shape = [size[1], size[0]]
    if fields.get("size") != shape:
        raise InputError(
            f"expected run lengths of size {shape} (height, width of the image) in {where}, "
            f"found {describe(fields.get('size'))}"
        )
    runs = _decompressed(counts) if isinstance(counts, str) else numbers(counts)
    if runs is None or any(run < 0 or run != int(run) for run in runs) or sum(runs) != size[0] * size[1]:
        raise InputError(
            f"expected run lengths, whole numbers from 0 on, that add up to the {size[0] * size[1]:,} pixels "
            f"of the image in {where}, found {describe(counts)}; fetch the official annotations"
        )
    return {"size": shape, "counts": counts}


def _decompressed(text: str) -> list[int] | None:
    """The run lengths in COCO's text, or None for one that is cut or has other characters.

    A number is written in groups of five bits, lowest first, as the difference from the last but one, where
    there are three before it. Source: the C code of pycocotools.
    """
    runs: list[int] = []
    value = characters = 0
    for character in text:
        if not _FIRST <= character <= _LAST or characters == _MOST_CHARACTERS:
            return None
        bits = ord(character) - ord(_FIRST)
        value |= (bits & 31) << 5 * characters
        characters += 1
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << 5 * characters
        runs.append(value + runs[-2] if len(runs) > 2 else value)
        value = characters = 0
    return None if characters else runs


@dataclass(frozen=True, slots=True)
class CocoRegion:
    """A region whose mask is drawn when it is asked for.

    Attributes:
        key: Unique name.
        label: Category id.
        size: Width and height of the image.
        shape: Polygons, or run lengths as ``{"size": [height, width], "counts": list or text}``.
    """

    key: str
    label: int
    size: tuple[int, int]
    shape: Polygons | RunLengths = field(hash=False)

    def mask(self) -> NDArray[np.uint8]:
        """Binary mask by pycocotools, values 0 and 1, [height width]; raises InputError."""
        from pycocotools import mask as coco

        width, height = self.size
        try:
            runs: object = self.shape
            if isinstance(self.shape, list):
                runs = coco.merge(coco.frPyObjects(self.shape, height, width))
            elif isinstance(self.shape["counts"], list):
                runs = coco.frPyObjects(self.shape, height, width)
            mask = np.asarray(coco.decode(runs), dtype=np.uint8)
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"expected a segmentation that pycocotools reads in {self.key}: {error}"
            ) from error
        return mask


@dataclass(frozen=True, slots=True)
class CocoImage:
    """An image of a file; size is (width, height)."""

    identity: int
    file_name: str
    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Category:
    """A category and what it belongs to ("" where that is not said)."""

    identity: int
    name: str
    supercategory: str


@dataclass(frozen=True, slots=True)
class CocoFile:
    """The content of an instances file.

    Attributes:
        path: The file.
        images: Its images, by ascending id.
        categories: Its categories by ascending id.
        annotations: For each image id, its annotations by ascending id.
        orphans: Number of annotations of images that are not listed.
    """

    path: Path
    images: tuple[CocoImage, ...]
    categories: dict[int, Category]
    annotations: dict[int, list[JsonObject]]
    orphans: int

    def labels(self, image: CocoImage) -> list[int]:
        """Category of each annotation of an image, in order; raises InputError."""
        return [
            get_integer(each, "category_id", self._where(each))
            for each in self.annotations.get(image.identity, [])
        ]

    def regions(self, image: CocoImage, prefix: str) -> tuple[CocoRegion, ...]:
        """The usable regions of an image, with keys ``<prefix><annotation id>``.

        As the published protocol has it, crowds are used, and an object whose first polygon is no more than
        a line (four numbers) is not.

        Raises:
            InputError: A malformed annotation, or one of an unknown category.
        """
        found = (self._region(each, image, prefix) for each in self.annotations.get(image.identity, []))
        return tuple(region for region in found if region is not None)

    def _where(self, annotation: JsonObject) -> str:
        return f"annotation {annotation.get('id')} of {self.path}"

    def _region(self, annotation: JsonObject, image: CocoImage, prefix: str) -> CocoRegion | None:
        where = self._where(annotation)
        label = get_integer(annotation, "category_id", where)
        if label not in self.categories:
            raise InputError(f"expected a category that is listed in {where}, found {label}")
        segmentation = annotation.get("segmentation")
        crowd = annotation.get("iscrowd", 0) == 1
        shape: Polygons | RunLengths
        if isinstance(segmentation, list):
            shape = read_polygons(segmentation, image.size, where)
            if not shape or (not crowd and len(shape[0]) <= 4):
                return None
        else:
            shape = read_run_lengths(segmentation, image.size, where)
        return CocoRegion(f"{prefix}{get_integer(annotation, 'id', where)}", label, image.size, shape)


def read_coco_file(path: Path) -> CocoFile:
    """The images, categories and annotations in an instances file; raises InputError."""
    content = read_json(path)
    images = sorted((_image(each, path) for each in get_objects(content, "images", str(path))), key=_identity)
    categories = sorted(
        (_category(each, path) for each in get_objects(content, "categories", str(path))), key=_identity
    )
    _require_unique(images, "images", path)
    _require_unique(categories, "categories", path)
    known = {image.identity for image in images}
    annotations: dict[int, list[JsonObject]] = defaultdict(list)
    orphans = 0
    for each in get_objects(content, "annotations", str(path)):
        image = get_integer(each, "image_id", f"annotation {each.get('id')} of {path}")
        if image in known:
            annotations[image].append(each)
        else:
            orphans += 1
    for group in annotations.values():
        group.sort(key=lambda each: get_integer(each, "id", f"an annotation of {path}"))
    listed = {category.identity: category for category in categories}
    return CocoFile(path, tuple(images), listed, dict(annotations), orphans)


def _identity(item: CocoImage | Category) -> int:
    return item.identity


def _require_unique(items: Sequence[CocoImage | Category], what: str, path: Path) -> None:
    if not items:
        raise InputError(f"expected {what} in {path}, found none")
    repeated = len(items) - len({item.identity for item in items})
    if repeated:
        raise InputError(f"expected {what} with different ids in {path}, found {repeated} repeated")


def _image(fields: JsonObject, path: Path) -> CocoImage:
    identity = get_integer(fields, "id", f"an image of {path}")
    where = f"image {identity} of {path}"
    size = get_integer(fields, "width", where), get_integer(fields, "height", where)
    if min(size) < 1:
        raise InputError(f"expected a positive width and height in {where}, found {size[0]} x {size[1]}")
    return CocoImage(identity, require_inside(get_text(fields, "file_name", where), where), size)


def _category(fields: JsonObject, path: Path) -> Category:
    identity = get_integer(fields, "id", f"a category of {path}")
    where = f"category {identity} of {path}"
    supercategory = fields.get("supercategory", "")
    if not isinstance(supercategory, str):
        raise InputError(f"expected text as supercategory in {where}, found {describe(supercategory)}")
    return Category(identity, get_text(fields, "name", where), supercategory)


def orphan_notes(files: Sequence[CocoFile]) -> tuple[str, ...]:
    """A note for each file with annotations of images that it does not list."""
    return tuple(
        f"{file.orphans:,} annotations of {file.path.name} belong to images that it does not list"
        for file in files
        if file.orphans
    )
