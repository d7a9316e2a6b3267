"""SPair-71k: ``PairAnnotation/<split>/*:<category>.json`` and ``JPEGImages/<category>/*.jpg``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets import spair_facts as facts
from layerboard.tasks.datasets.base import (
    Count,
    Coverage,
    Data,
    DatasetEntry,
    FileSample,
    Sample,
    first_of_each,
)
from layerboard.tasks.datasets.reading import fields
from layerboard.tasks.datasets.reading import files as storage
from layerboard.tasks.datasets.reading.fields import JsonObject
from layerboard.tasks.datasets.reading.files import is_file, require_inside
from layerboard.tasks.datasets.spair_facts import Group, Levels, PairFacts
from layerboard.zoo.errors import InputError, counted, shortened
from layerboard.zoo.view.geometry import Box

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

    def limited(self, limit: int | None) -> Self:
        if limit is None:
            return self
        first = first_of_each(self.pairs, limit, lambda pair: pair.category)
        if len(first) == len(self.pairs):
            return self
        used = f"limited to {counted(limit, 'pairs')} a category: {counted(len(first), 'pairs')} used"
        return replace(self, pairs=first, coverage=self.coverage.noted(used))


@dataclass(frozen=True, slots=True)
class SpairEntry(DatasetEntry[Keypoints]):
    """A dataset in the layout of SPair-71k, and its official counts."""

    roles = ("keypoints",)

    name: str = "spair-71k-test"
    folder: str = "SPair-71k"
    split: str = "test"  # folder of pair annotations
    pairs: int = 12_234
    categories: int = 18
    # by category, ids of interchangeable keypoints
    groups: tuple[tuple[str, tuple[Group, ...]], ...] = tuple(facts.GROUPS.items())
    # for each difficulty field, official numbers of pairs by level; empty if unknown
    levels: tuple[tuple[str, Levels], ...] = tuple(facts.OFFICIAL_LEVELS.items())

    @property
    def layout(self) -> str:
        return (
            f"{self.folder}/PairAnnotation/{self.split}/*:<category>.json "
            f"and {self.folder}/JPEGImages/<category>/*.jpg"
        )

    def read(self, data: Path) -> Keypoints:
        """The existing pairs, sorted by category and file name; keys are ``<file name>:<category>``."""
        root = self.root(data)
        folder = root / "PairAnnotation" / self.split
        storage.require_directory(folder, f"the pair annotations of {self.name}")
        paths = storage.file_paths(folder, ".json")
        if not paths:
            raise InputError(f"expected pair annotations (*.json) in {folder}, found none")
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
        pair, where = fields.read_json(path), str(path)
        category = require_inside(fields.get_text(pair, "category", where), where)
        # the archive has a colon before the category; file systems without colons replace it
        stem = re.fullmatch(rf"(.+)[:?_]{re.escape(category)}", path.stem)
        if stem is None:
            raise InputError(
                f"expected a file name that ends with :{category}.json as its category, found {path}"
            )
        key = f"{stem[1]}:{category}"
        if fields.get_integer(pair, "mirror", where) != 0:
            raise InputError(
                f"expected mirror to be 0 in {where}: mirrored pairs are not part of the benchmark"
            )
        source, target = (_read_side(pair, side, category, where) for side in ("src", "trg"))
        if len(source.points) != len(target.points):
            raise InputError(
                f"expected as many source as target keypoints in {where}, "
                f"found {len(source.points)} and {len(target.points)}"
            )
        hard = facts.read_pair_facts(pair, self._mistakable(pair, category, target, where), where)
        first, second = (self._number(side, key, where) for side in (source, target))
        places = (source.size, target.size, target.box, source.points, target.points)
        turn = self._notes.turn(source.image, target.image)
        return KeypointPair(key, category, first, second, *places, hard, turn)

    def _mistakable(
        self, pair: JsonObject, category: str, target: _Side, where: str
    ) -> tuple[bool, ...] | None:
        """Whether each keypoint has an interchangeable one in the target image; None if unknown."""
        ids, groups = None, self._groups.get(category, ())
        if "kps_ids" in pair:
            values = fields.get_list(pair, "kps_ids", where)
            ids = [facts.keypoint_id(value, f"kps_ids of {where}") for value in values]
            if len(ids) != len(target.points):
                raise InputError(
                    f"expected as many kps_ids as keypoints in {where}, found {len(ids)} and "
                    f"{len(target.points)}"
                )
        if not groups:
            return (False,) * len(target.points)
        if ids is None or (visible := self._notes.shown(target.image)) is None:
            return None
        aware = facts.geometry_aware(groups, ids, visible)
        return tuple(point in aware for point in ids)

    def _number(self, side: _Side, key: str, where: str) -> int:
        if side.image not in self.images:
            path = self._root / side.image
            if not is_file(path):
                raise InputError(f"expected image {path} of pair {key}, found none; fetch it")
            storage.require_size(path, side.size, where)
            self.images[side.image] = len(self.images), side.size
        number, size = self.images[side.image]
        if size != side.size:
            raise InputError(
                f"expected one size of image {side.image} in all pairs, found {size} and, in {where}, "
                f"{side.size}"
            )
        return number


def _read_side(pair: JsonObject, side: str, category: str, where: str) -> _Side:
    name = require_inside(fields.get_text(pair, f"{side}_imname", where), where)
    width, height, _ = fields.get_numbers(pair, f"{side}_imsize", 3, where)
    left, top, right, bottom = fields.get_numbers(pair, f"{side}_bndbox", 4, where)
    if not (left < right and top < bottom):
        raise InputError(f"expected {side}_bndbox (x1 y1 x2 y2) with x1 < x2 and y1 < y2 in {where}")
    size = int(width), int(height)
    values = fields.get_list(pair, f"{side}_kps", where)
    points = [_point(value, size, f"{side}_kps of {where}") for value in values]
    if not points:
        raise InputError(f"expected at least one keypoint in {side}_kps of {where}, found none")
    return _Side(f"{category}/{name}", size, (left, top, right, bottom), np.array(points, np.float64))


def _point(value: object, size: tuple[int, int], where: str) -> list[float]:
    point = fields.numbers(value)
    if point is None or len(point) != 2:
        raise InputError(f"expected keypoints (x, y) as {where}, found {shortened(value)}")
    margin = max(size)  # official keypoints may be outside the image, but by less than its longer side
    if not all(-margin <= x <= side + margin for x, side in zip(point, size, strict=True)):
        raise InputError(
            f"expected keypoints on an image of {size[0]} x {size[1]} pixels as {where}, found "
            f"{shortened(value)}"
        )
    return point
