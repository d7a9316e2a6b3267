"""SPair-71k: ``PairAnnotation/<split>/*:<category>.json`` and ``JPEGImages/<category>/*.jpg``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple, Self

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from layerboard.tasks.datasets import spair_facts as facts
from layerboard.tasks.datasets.base import (
    Count,
    Coverage,
    Data,
    DatasetEntry,
    FileSample,
    Needed,
    Sample,
    first_of_each,
)
from layerboard.tasks.datasets.coco import Edge
from layerboard.tasks.datasets.integrity import mismatch, require, require_no
from layerboard.tasks.datasets.reading import files as storage
from layerboard.tasks.datasets.reading.files import is_file, require_inside
from layerboard.tasks.datasets.spair_facts import Group, Levels, PairFacts
from layerboard.zoo.errors import counted
from layerboard.zoo.reading import read_as
from layerboard.zoo.view.geometry import Box

Number = int | float  # as it is written, since identities tell 1 from 1.0
BEYOND = 2**63  # no coordinate in pixels
ImageSize = tuple[Edge, Edge, int]  # width, height and channels
Points = Annotated[list[tuple[float, float]], Meta(min_length=1)]  # x and y of each
Hardness = Annotated[int, Meta(ge=0, le=len(facts.HARD) - 1)]  # levels of difficulty, as of `PairFacts`
Partly = Annotated[int, Meta(ge=0, le=len(facts.WHICH) - 1)]
# remark wherever those numbers are compared
TOLD = "the official numbers of pairs by level are those that a third party's script tells"


@dataclass(frozen=True, slots=True)
class KeypointPair:
    """Two images of one category with corresponding keypoints; sizes are (width, height), all in pixels."""

    key: str
    category: str
    source: int  # index of the image in ``Keypoints.samples``
    target: int
    source_size: tuple[int, int]
    target_size: tuple[int, int]
    target_box: Box  # bounding box of the object
    source_points: NDArray[np.float64]  # keypoints (x, y) visible in both images, float64 [points 2]
    target_points: NDArray[np.float64]  # the same keypoints in the target image, in the same order
    facts: PairFacts | None = None  # difficulty of the pair; None if its annotation does not state it
    turn: int | None = None  # eighths of a turn between the two viewpoints, 0 to 4; None if unknown


@dataclass(frozen=True, slots=True)
class Keypoints(Data):
    """A SPair-71k split: each image once, and pairs that refer to them."""

    name: str
    samples: tuple[Sample, ...]
    pairs: tuple[KeypointPair, ...]
    coverage: Coverage

    def limited(self, limit: int) -> Self:
        first = first_of_each(self.pairs, limit, lambda pair: pair.category)
        if len(first) == len(self.pairs):
            return self
        used = f"limited to {counted(limit, 'pairs')} a category: {counted(len(first), 'pairs')} used"
        return replace(self, pairs=first, coverage=self.coverage.noted(used))


@dataclass(frozen=True, slots=True)
class SpairEntry(DatasetEntry[Keypoints]):
    """A dataset in the layout of SPair-71k, and its official counts."""

    roles = ("keypoints",)
    form = "{0.folder}/PairAnnotation/{0.split}/*:<category>.json and {0.folder}/JPEGImages/<category>/*.jpg"
    needed = (Needed("PairAnnotation/{0.split}/", "the pair annotations"),)

    name: str = "spair-71k-test"
    folder: str = "SPair-71k"
    split: str = "test"  # folder of pair annotations
    pairs: int = 12_234
    categories: int = 18
    # by category, ids of interchangeable keypoints
    groups: tuple[tuple[str, tuple[Group, ...]], ...] = tuple(facts.GROUPS.items())
    # for each difficulty field, official numbers of pairs by level; empty if unknown
    levels: tuple[tuple[str, Levels], ...] = tuple(facts.OFFICIAL_LEVELS.items())

    def read(self, data: Path) -> Keypoints:
        """The existing pairs, sorted by category and file name; keys are ``<file name>:<category>``."""
        root = self.root(data)
        folder = root / "PairAnnotation" / self.split
        paths = storage.file_paths(folder, ".json")
        require(paths, f"pair annotations (*.json) in {folder}")
        reader = _PairReader(root, dict(self.groups))
        pairs = [reader.read(path) for path in paths]
        images = sorted(reader.images)
        rank = {reader.images[image][0]: position for position, image in enumerate(images)}
        pairs = [replace(pair, source=rank[pair.source], target=rank[pair.target]) for pair in pairs]
        pairs.sort(key=lambda pair: (pair.category, pair.key))
        levels = facts.level_counts([pair.facts for pair in pairs], self.levels)
        counts = (
            Count("pairs", len(pairs), self.pairs),
            Count("categories", len({pair.category for pair in pairs}), self.categories),
            Count("images", len(images)),
            Count("keypoints", sum(len(pair.target_points) for pair in pairs)),
        )
        samples = tuple(FileSample(image, str(root / "JPEGImages" / image)) for image in images)
        coverage = Coverage((*counts, *levels), remarks=(TOLD,) if levels else ())
        return Keypoints(self.name, samples, tuple(pairs), coverage)


SPAIR_71K_TEST = SpairEntry()


@dataclass(frozen=True, slots=True)
class _Stated:
    """The annotation of a pair, of its source (src) and its target (trg)."""

    category: str
    mirror: int
    src_imname: str
    src_imsize: ImageSize
    src_bndbox: tuple[Number, Number, Number, Number]
    src_kps: Points
    trg_imname: str
    trg_imsize: ImageSize
    trg_bndbox: tuple[Number, Number, Number, Number]
    trg_kps: Points
    kps_ids: list[str | int] | None = None
    viewpoint_variation: Hardness | None = None
    scale_variation: Hardness | None = None
    truncation: Partly | None = None
    occlusion: Partly | None = None

    def __post_init__(self) -> None:
        require(self.mirror == 0, "mirror to be 0", self.mirror, "mirrored pairs are not of the benchmark")
        number = len(self.trg_kps)
        for what, listed in (("source keypoints", self.src_kps), ("kps_ids", self.kps_ids)):
            alike = listed is None or len(listed) == number
            require(alike, f"as many {what} as target keypoints", f"{len(listed or ())} and {number}")


class _Side(NamedTuple):
    """One image of a pair; image is ``<category>/<file>``."""

    image: str
    size: tuple[int, int]
    box: Box
    points: NDArray[np.float64]


class _PairReader:
    """Reads pairs, and numbers their images in the order of first appearance."""

    def __init__(self, root: Path, groups: Mapping[str, tuple[Group, ...]]) -> None:
        self._root = root / "JPEGImages"
        self._groups = groups
        self._notes = facts.ImageNotes(root / "ImageAnnotation")
        self.images: dict[str, tuple[int, tuple[int, int]]] = {}  # number and size

    def read(self, path: Path) -> KeypointPair:
        pair, where = read_as(_Stated, path, read=storage.read_bytes), str(path)
        category = require_inside(pair.category, where)
        # the archive has a colon before the category; file systems without colons replace it
        stem = re.fullmatch(rf"(.+)[:?_]{re.escape(category)}", path.stem)
        if stem is None:
            raise mismatch(f"a file name that ends with :{category}.json as its category", str(path))
        key = f"{stem[1]}:{category}"
        source, target = (_side(pair, side, where) for side in ("src", "trg"))
        aware, levels = self._mistakable(pair, target, where), [getattr(pair, name) for name in facts.LEVELS]
        viewpoint, scale, truncation, occlusion = levels
        hard = None if None in levels else PairFacts(viewpoint, scale, truncation, occlusion, aware)
        first, second = (self._number(side, key, where) for side in (source, target))
        places = (source.size, target.size, target.box, source.points, target.points)
        turn = self._notes.turn(source.image, target.image)
        return KeypointPair(key, category, first, second, *places, hard, turn)

    def _mistakable(self, pair: _Stated, target: _Side, where: str) -> tuple[bool, ...] | None:
        """Whether each keypoint has an interchangeable one in the target image; None if unknown."""
        stated = pair.kps_ids
        ids = None if stated is None else [facts.keypoint_id(each, f"kps_ids of {where}") for each in stated]
        if not (groups := self._groups.get(pair.category, ())):
            return (False,) * len(target.points)
        if ids is None or (visible := self._notes.shown(target.image)) is None:
            return None
        aware = facts.geometry_aware(groups, ids, visible)
        return tuple(point in aware for point in ids)

    def _number(self, side: _Side, key: str, where: str) -> int:
        if side.image not in self.images:
            path = self._root / side.image
            require(is_file(path), f"image {path} of pair {key}", remedy="fetch it")
            storage.require_size(path, side.size, f"{where} says", storage.OTHER_VERSION)
            self.images[side.image] = len(self.images), side.size
        number, size = self.images[side.image]
        both = f"{size} and, in {where}, {side.size}"
        require(size == side.size, f"one size of image {side.image} in all pairs", both)
        return number


def _side(pair: _Stated, side: str, where: str) -> _Side:
    """The source (src) or the target (trg) of a pair; raises InputError."""
    facts = ("imname", "imsize", "bndbox", "kps")
    name, (*size, _), box, points = (getattr(pair, f"{side}_{fact}") for fact in facts)
    left, top, right, bottom = box
    is_box = -BEYOND < left < right < BEYOND and -BEYOND < top < bottom < BEYOND
    corners = f"{side}_bndbox (x1 y1 x2 y2) with x1 < x2 and y1 < y2 in {where}"
    require(is_box, corners, box)
    margin = max(size)  # official keypoints may be outside the image, but by less than its longer side

    def is_near(point: tuple[float, float]) -> bool:
        return all(-margin <= x <= edge + margin for x, edge in zip(point, size, strict=True))

    on_image = f"keypoints on an image of {size[0]} x {size[1]} pixels as {side}_kps of {where}"
    require_no([point for point in points if not is_near(point)], on_image, most=1)
    image = f"{pair.category}/{require_inside(name, where)}"
    return _Side(image, (size[0], size[1]), box, np.array(points, np.float64))
