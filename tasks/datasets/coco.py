"""COCO val2017 and its JSON format of instances, which other datasets also use.

Shapes of regions are validated before they are passed to pycocotools, which does not check its input: run
lengths that end early leave memory uninitialised, and an outline far outside the image exhausts memory.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Count, Coverage, Data, DatasetEntry, FileSample, Sample
from layerboard.tasks.datasets.integrity import (
    explaining,
    mismatch,
    numbers,
    require,
    require_distinct,
    require_no,
)
from layerboard.tasks.datasets.reading.files import (
    OTHER_VERSION,
    is_file,
    is_folder,
    read_bytes,
    require_inside,
    require_size,
)
from layerboard.zoo.errors import shortened
from layerboard.zoo.reading import read_as

Polygons = list[list[float]]
RunLengths = dict[str, object]  # ``{"size": [height, width], "counts": list or text}``

LONGEST_OUTLINE = 2**22  # pixels of all edges of a polygon; pycocotools takes about 80 bytes for each
FETCH = "fetch the official annotations"
Identity = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # of an image or a category
Edge = Annotated[int, Meta(ge=1, le=2**63 - 1)]  # of an image
_FIRST, _LAST = "0", "o"  # characters of compressed run lengths: each has five bits and a continuation bit
_MOST_CHARACTERS = 6  # characters of one number: 30 bits, the most that pycocotools can shift


@dataclass(frozen=True, slots=True)
class CocoRegion:
    """An annotated object or part in an image, with a mask drawn on demand."""

    key: str  # unique and stable from run to run
    label: int  # number of its category
    size: tuple[int, int]  # width and height of the image
    shape: Polygons | RunLengths = field(hash=False)

    def mask(self) -> NDArray[np.uint8]:
        """Binary mask by pycocotools, values 0 and 1, [height width]; raises InputError."""
        from pycocotools import mask as coco

        width, height = self.size
        what = f"expected a segmentation that pycocotools reads in {self.key}"
        with explaining(what, TypeError, ValueError, IndexError):
            runs: object = self.shape
            if isinstance(self.shape, list):
                runs = coco.merge(coco.frPyObjects(self.shape, height, width))
            elif isinstance(self.shape["counts"], list):
                runs = coco.frPyObjects(self.shape, height, width)
            return np.asarray(coco.decode(runs), dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class RegionImage:
    """An image with its annotated regions, which are never empty; size is (width, height)."""

    sample: Sample
    size: tuple[int, int]
    regions: tuple[CocoRegion, ...]


@dataclass(frozen=True, slots=True)
class Regions(Data):
    """Images with object or part masks."""

    name: str
    images: tuple[RegionImage, ...]
    categories: dict[int, str] = field(hash=False)  # names by the ids of categories
    coverage: Coverage
    edition: str = ""  # distinguishes regions that a protocol selects or orders in its own way
    clusters: int = 0  # number of clusters k for the complete dataset
    unit: str = "objects"  # name of the regions
    split: str = "val"
    firsts = ("images",)


@dataclass(frozen=True, slots=True)
class CocoEntry(DatasetEntry[Regions]):
    """A dataset in the layout of COCO, and its official counts."""

    roles = ("objects", "masks")
    form = "{0.folder}/{0.images_folder}/*.jpg and {0.folder}/{0.annotations}"

    name: str = "coco-val2017"
    folder: str = "coco"
    images_folder: str = "images/val2017"  # also found without its parent folder
    annotations: str = "annotations/instances_val2017.json"
    images: int = 5000  # in that file
    first: int = 1000  # images that are used, by ascending id; those without annotations count
    left_out: int = 0  # of these, at their end, by a protocol
    categories: int = 80  # the number of clusters

    def read(self, data: Path) -> Regions:
        """The first images of COCO, by ascending id, that are on disk and have usable annotations."""
        file, folder = self._found(self.root(data))
        first = self.first - self.left_out
        there = [image for image in file.images[:first] if is_file(folder / image.file_name)]
        example = file.images[0].file_name
        listed = f"the images that {file.path} lists (such as {example}) in {folder}"
        require(there, listed, remedy="unpack them there")
        loaded = (file.load(image, folder / image.file_name, image.file_name) for image in there)
        images = tuple(image for image in loaded if image.regions)
        require(images, f"annotations of the images in {folder} in {file.path}")
        counts = (
            Count("images listed", len(file.images), self.images),
            Count("images used", len(there), first),
            Count("images with regions", len(images)),
            Count("regions", sum(len(image.regions) for image in images)),
        )
        categories = {identity: category.name for identity, category in file.categories.items()}
        edition = f"-but-{self.left_out}" if self.left_out else ""
        coverage = Coverage(counts, file.notes)
        return Regions(self.name, images, categories, coverage, edition, clusters=self.categories)

    def _found(self, root: Path) -> tuple["CocoFile", Path]:
        """The file, and the folder of the images, with its parent or without; raises InputError."""
        file = read_coco_file(root / self.annotations)
        folders = [root / self.images_folder, root / Path(self.images_folder).name]
        there = [*filter(is_folder, folders)]
        require(there, f"the images of {self.name} in {folders[0]} or {folders[1]}", "neither")
        return file, there[0]


COCO_VAL2017 = CocoEntry()


@dataclass(frozen=True, slots=True, order=True)
class CocoImage:
    """An image listed in a file."""

    id: Identity
    file_name: str
    width: Edge
    height: Edge

    def __post_init__(self) -> None:
        require_inside(self.file_name, f"image {self.id}")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height


@dataclass(frozen=True, slots=True)
class CocoCategory:
    """A category and its super-category ("" if not stated)."""

    id: Identity
    name: str
    supercategory: str = ""


N = TypeVar("N", CocoImage, CocoCategory)


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotated region as it is written."""

    id: int
    image_id: int
    category_id: int
    segmentation: object = None
    iscrowd: object = 0


@dataclass(frozen=True, slots=True)
class _Instances:
    """An instances file as it is written."""

    images: Annotated[list[CocoImage], Meta(min_length=1)]
    categories: Annotated[list[CocoCategory], Meta(min_length=1)]
    annotations: list[Annotation]


@dataclass(frozen=True, slots=True)
class CocoFile:
    """The content of an instances file, everything by ascending id."""

    path: Path
    images: tuple[CocoImage, ...]
    categories: Mapping[int, CocoCategory]
    annotations: Mapping[int, Sequence[Annotation]]  # by image id, including ids that are not listed

    @property
    def notes(self) -> tuple[str, ...]:
        """Note on the number of annotations of images that are not listed; empty if there are none."""
        listed = {image.id for image in self.images}
        orphans = sum(len(each) for image, each in self.annotations.items() if image not in listed)
        note = f"{orphans:,} annotations of {self.path.name} belong to images that it does not list"
        return (note,) if orphans else ()

    def labels(self, image: CocoImage) -> list[int]:
        """Category of each annotation of an image, in order."""
        return [each.category_id for each in self.annotations.get(image.id, ())]

    def load(self, image: CocoImage, path: Path, key: str) -> RegionImage:
        """An existing image and its usable regions, ``<key>/<annotation id>``; raises InputError.

        As in the published protocol, crowds are used, and objects whose first polygon is only a line (four
        numbers) are not.
        """
        require_size(path, image.size, f"{self.path.name} says", OTHER_VERSION)
        regions = (self._region(each, image, key) for each in self.annotations.get(image.id, ()))
        return RegionImage(FileSample(key, str(path)), image.size, tuple(filter(None, regions)))

    def _region(self, annotation: Annotation, image: CocoImage, key: str) -> CocoRegion | None:
        where, label = f"annotation {annotation.id} of {self.path}", annotation.category_id
        require(label in self.categories, f"a category that is listed in {where}", label)
        shape: Polygons | RunLengths
        if isinstance(annotation.segmentation, list):
            shape = read_polygons(annotation.segmentation, image.size, where)
            if not shape or (annotation.iscrowd != 1 and len(shape[0]) <= 4):
                return None
        else:
            shape = read_run_lengths(annotation.segmentation, image.size, where)
        return CocoRegion(f"{key}/{annotation.id}", label, image.size, shape)


def read_coco_file(path: Path) -> CocoFile:
    """The images, categories and annotations in an instances file; raises InputError."""
    content = read_as(_Instances, path, read=read_bytes)
    images = _by_id(content.images, "images", path)
    annotations = defaultdict[int, list[Annotation]](list)
    for each in sorted(content.annotations, key=lambda each: each.id):
        annotations[each.image_id].append(each)
    categories = _by_id(content.categories, "categories", path)
    return CocoFile(path, tuple(images.values()), categories, dict(annotations))


def _by_id(items: Sequence[N], what: str, path: Path) -> dict[int, N]:
    """Items of a list by ascending id; raises InputError for two with one id."""
    require_distinct([each.id for each in items], f"{what} with different ids in {path}")
    return {each.id: each for each in sorted(items, key=lambda item: item.id)}


def read_polygons(value: Sequence[object], size: tuple[int, int], where: str) -> Polygons:
    """Polygons as lists of x1 y1 x2 y2 ..., near an image of (width, height); raises InputError.

    Official polygons may exceed the image a little. One that exceeds it by more than the longer side belongs
    to another image.
    """
    polygons, margin = [], max(size)
    for each in value:
        polygon = numbers(each)
        if polygon is None or len(polygon) % 2:
            raise mismatch(f"polygons (x1 y1 x2 y2 ...) in {where}", shortened(each))
        for axis, side in enumerate(size):
            far = [number for number in polygon[axis::2] if not -margin <= number <= side + margin]
            coordinates = [f"the {'xy'[axis]} coordinate {shortened(number)}" for number in far]
            on_image = f"the polygons in {where} on its image of {size[0]} x {size[1]} pixels"
            require_no(coordinates, on_image, FETCH, most=1)
        points = np.array(polygon, np.float64).reshape(-1, 2)
        length = np.abs(points - np.roll(points, 1, axis=0)).max(axis=1).sum()  # with the closing edge
        longest = f"polygons of at most {LONGEST_OUTLINE:,} pixels of outline in {where}"
        require(length <= LONGEST_OUTLINE, longest, f"one of {length:,.0f}", FETCH)
        polygons.append(polygon)
    return polygons


def read_run_lengths(value: object, size: tuple[int, int], where: str) -> RunLengths:
    """Compressed (text) or uncompressed (list) run lengths for (width, height); raises InputError."""
    if not isinstance(value, dict):
        raise mismatch(f"polygons or run lengths as segmentation of {where}", shortened(value))
    counts, shape, pixels = value.get("counts"), [size[1], size[0]], size[0] * size[1]
    sized = f"run lengths of size {shape} (height, width of the image) in {where}"
    require(value.get("size") == shape, sized, shortened(value.get("size")))
    runs = _decompressed(counts) if isinstance(counts, str) else numbers(counts)
    if runs is None or any(run < 0 or run != int(run) for run in runs) or sum(runs) != pixels:
        whole = f"run lengths, whole numbers from 0 on, that add up to the {pixels:,} pixels of the image"
        raise mismatch(f"{whole} in {where}", shortened(counts), FETCH)
    return {"size": shape, "counts": counts}


def _decompressed(text: str) -> list[int] | None:
    """Run lengths from COCO's compressed text, or None if it is truncated or has other characters.

    A number is written in groups of five bits, lowest first. From the fourth number on, it is the difference
    from the number two places before. Source: the C code of pycocotools.
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
