"""SPair-71k: ``PairAnnotation/<split>/*:<category>.json`` and ``JPEGImages/<category>/*.jpg``."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.base import Count, Coverage, Data, DatasetEntry, FileSample, PackPart, Sample, counted
from tasks.datasets.fields import JsonObject, get_integer, get_list, get_numbers, get_text, numbers, read_json
from tasks.datasets.files import (
    describe,
    file_names,
    file_paths,
    is_file,
    require_directory,
    require_inside,
    require_size,
)
from tasks.datasets.spair_facts import (
    GROUPS,
    OFFICIAL_LEVELS,
    Group,
    ImageNotes,
    Levels,
    PairFacts,
    geometry_aware,
    keypoint_id,
    level_counts,
    levels_of,
)
from zoo.errors import InputError
from zoo.view.geometry import Box


@dataclass(frozen=True, slots=True)
class KeypointPair:
    """Two images of one category with corresponding keypoints."""

    key: str  # name of the pair
    category: str  # its category
    source: int  # index of the source image in ``Keypoints.samples``
    target: int  # index of the target image
    source_size: tuple[int, int]  # width and height of the source image in pixels
    target_size: tuple[int, int]  # width and height of the target image in pixels
    source_box: Box  # bounding box of the object in the source image, in pixels
    target_box: Box  # bounding box of the object in the target image, in pixels
    source_points: NDArray[np.float64]  # keypoints (x, y) visible in both images, float64 [points 2]
    target_points: NDArray[np.float64]  # where these keypoints are in the target image, in the same order
    facts: PairFacts | None = None  # how hard it is; None where its annotation does not say so
    # eighths of a turn between the viewpoints of the two images, 0 to 4; None if not known
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Keypoints(Data):
    """A SPair-71k split: each image once, and pairs that point to them."""

    name: str
    samples: tuple[Sample, ...]
    pairs: tuple[KeypointPair, ...]
    coverage: Coverage

    def limited(self, limit: int | None) -> Self:
        if limit is None:
            return self
        seen = Counter[str]()
        first = []
        for pair in self.pairs:
            seen[pair.category] += 1
            if seen[pair.category] <= limit:
                first.append(pair)
        if len(first) == len(self.pairs):
            return self
        used = f" a category: {counted(len(first), 'pair')} used"
        return replace(self, pairs=tuple(first), coverage=self.coverage.limited(limit, "pair", rest=used))


@dataclass(frozen=True, slots=True)
class SpairEntry(DatasetEntry[Keypoints]):
    """A dataset in the layout of SPair-71k, and its official counts."""

    name: str = "spair-71k-test"
    folder: str = "SPair-71k"
    split: str = "test"  # folder of pair annotations
    pairs: int = 12_234
    categories: int = 18
    # by category, ids of keypoints that stand for the same
    groups: tuple[tuple[str, tuple[Group, ...]], ...] = tuple(GROUPS.items())
    # by field that says how hard a pair is, official numbers of pairs of each level, as a third party tells
    # them; none where they are not known
    levels: tuple[tuple[str, Levels], ...] = tuple(OFFICIAL_LEVELS.items())

    @property
    def layout(self) -> str:
        return (
            f"{self.folder}/PairAnnotation/{self.split}/*:<category>.json "
            f"and {self.folder}/JPEGImages/<category>/*.jpg"
        )

    def read(self, data: Path) -> Keypoints:
        """The pairs that are there by category, then file name; keys are ``<file name>:<category>``."""
        root = self.root(data)
        folder = root / "PairAnnotation" / self.split
        require_directory(folder, f"the pair annotations of {self.name}")
        names = file_names(folder, (".json",))
        if not names:
            raise InputError(f"expected pair annotations (*.json) in {folder}, found none")
        reader = _PairReader(root, dict(self.groups))
        pairs = [reader.read(folder / name) for name in names]
        images = sorted(reader.sizes)
        index = {image: position for position, image in enumerate(images)}
        rank = [index[image] for image in reader.sizes]
        pairs = [replace(pair, source=rank[pair.source], target=rank[pair.target]) for pair in pairs]
        pairs.sort(key=lambda pair: (pair.category, pair.key))
        levels = level_counts([pair.facts for pair in pairs], self.levels)
        counts = (
            Count("pairs", len(pairs), self.pairs),
            Count("categories", len({pair.category for pair in pairs}), self.categories),
            Count("images", len(images)),
            Count("keypoints", sum(len(pair.target_points) for pair in pairs)),
        )
        samples = tuple(FileSample(image, str(root / "JPEGImages" / image)) for image in images)
        coverage = Coverage((*counts, *levels), remarks=(TOLD,) if levels else ())
        return Keypoints(self.name, samples, tuple(pairs), coverage)

    def contents(self, data: Path) -> Iterable[PackPart]:
        """Annotations and images of the pairs, and the annotations of single images that are there."""
        root = data / self.folder
        names = [sample.key for sample in self.read(data).samples]
        images = [root / "JPEGImages" / name for name in names]
        pairs = file_paths(root / "PairAnnotation" / self.split, ".json")
        notes = ((root / "ImageAnnotation" / name).with_suffix(".json") for name in names)
        yield PackPart("files", [*pairs, *images, *filter(is_file, notes)])


SPAIR_71K_TEST = SpairEntry()

TOLD = "the official numbers of pairs by level are those that a third party's script tells"
"""What is said wherever those numbers are compared."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One image of a pair; image is ``<category>/<file>``."""

    image: str
    size: tuple[int, int]
    box: Box
    points: NDArray[np.float64]


class _PairReader:
    """Reads pairs, whose images are numbered in the order in which they are first seen."""

    def __init__(self, root: Path, groups: Mapping[str, tuple[Group, ...]]) -> None:
        self._root = root / "JPEGImages"
        self._groups = groups
        self._notes = ImageNotes(root / "ImageAnnotation")
        self._numbers: dict[str, int] = {}
        self.sizes: dict[str, tuple[int, int]] = {}

    def read(self, path: Path) -> KeypointPair:
        """One pair annotation, checked; raises InputError."""
        fields, where = read_json(path), str(path)
        category = require_inside(get_text(fields, "category", where), where)
        # The archive has a colon before the category; systems that cannot hold one put another sign there.
        stem = re.fullmatch(rf"(.+)[:?_]{re.escape(category)}", path.stem)
        if stem is None:
            raise InputError(
                f"expected a file name that ends with :{category}.json as its category, found {path}"
            )
        key = f"{stem[1]}:{category}"
        if get_integer(fields, "mirror", where) != 0:
            raise InputError(
                f"expected mirror to be 0 in {where}: mirrored pairs are not part of the benchmark"
            )
        source, target = (_read_side(fields, side, category, where) for side in ("src", "trg"))
        if len(source.points) != len(target.points):
            raise InputError(
                f"expected as many source as target keypoints in {where}, "
                f"found {len(source.points)} and {len(target.points)}"
            )
        levels = levels_of(fields, where)
        first, second = (self._number(side, key, where) for side in (source, target))
        hard = self._mistakable(fields, category, target, where)
        return KeypointPair(
            key=key,
            category=category,
            source=first,
            target=second,
            source_size=source.size,
            target_size=target.size,
            source_box=source.box,
            target_box=target.box,
            source_points=source.points,
            target_points=target.points,
            facts=None if levels is None else PairFacts(*levels, mistakable=hard),
            turn=self._notes.turn(source.image, target.image),
        )

    def _mistakable(
        self, fields: JsonObject, category: str, target: _Side, where: str
    ) -> tuple[bool, ...] | None:
        """Which keypoints have another one like them in the target image; None where that is not known."""
        ids, groups = None, self._groups.get(category, ())
        if "kps_ids" in fields:
            values = get_list(fields, "kps_ids", where)
            ids = [keypoint_id(value, f"kps_ids of {where}") for value in values]
            if len(ids) != len(target.points):
                raise InputError(
                    f"expected as many kps_ids as keypoints in {where}, found {len(ids)} and "
                    f"{len(target.points)}"
                )
        if not groups:
            return (False,) * len(target.points)
        visible = None if ids is None else self._notes.shown(target.image)
        if ids is None or visible is None:
            return None
        aware = geometry_aware(groups, ids, visible)
        return tuple(point in aware for point in ids)

    def _number(self, side: _Side, key: str, where: str) -> int:
        """Number of an image, which is there in the stated size; raises InputError."""
        path = self._root / side.image
        if side.image not in self.sizes:
            if not is_file(path):
                raise InputError(f"expected image {path} of pair {key}, found none; fetch it")
            require_size(path, side.size, where)
            self._numbers[side.image], self.sizes[side.image] = len(self.sizes), side.size
        elif self.sizes[side.image] != side.size:
            raise InputError(
                f"expected one size of image {side.image} in all pairs, found {self.sizes[side.image]} and, "
                f"in {where}, {side.size}"
            )
        return self._numbers[side.image]


def _read_side(fields: JsonObject, side: str, category: str, where: str) -> _Side:
    """The fields of one image: ``<side>_imname``, ``_imsize``, ``_bndbox`` and ``_kps``."""
    name = require_inside(get_text(fields, f"{side}_imname", where), where)
    width, height, _ = get_numbers(fields, f"{side}_imsize", 3, where)
    left, top, right, bottom = get_numbers(fields, f"{side}_bndbox", 4, where)
    if not (left < right and top < bottom):
        raise InputError(f"expected {side}_bndbox (x1 y1 x2 y2) with x1 < x2 and y1 < y2 in {where}")
    size = int(width), int(height)
    points = [
        _point(value, size, f"{side}_kps of {where}") for value in get_list(fields, f"{side}_kps", where)
    ]
    if not points:
        raise InputError(f"expected at least one keypoint in {side}_kps of {where}, found none")
    return _Side(
        image=f"{category}/{name}",
        size=size,
        box=(left, top, right, bottom),
        points=np.array(points, dtype=np.float64),
    )


def _point(value: object, size: tuple[int, int], where: str) -> list[float]:
    """A keypoint of an image of the (width, height), checked; raises InputError."""
    point = numbers(value)
    if point is None or len(point) != 2:
        raise InputError(f"expected keypoints (x, y) as {where}, found {describe(value)}")
    margin = max(size)  # official ones may leave the image, but not by another image
    if not all(-margin <= x <= side + margin for x, side in zip(point, size, strict=True)):
        raise InputError(
            f"expected keypoints on an image of {size[0]} x {size[1]} pixels as {where}, found "
            f"{describe(value)}"
        )
    return point
