"""SPair-71k: ``PairAnnotation/<split>/*:<category>.json`` and ``JPEGImages/<category>/*.jpg``."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.base import (
    Count,
    Coverage,
    FileSample,
    KeypointPair,
    Keypoints,
    PairFacts,
    require_directory,
)
from tasks.datasets.fields import (
    JsonObject,
    as_object,
    describe,
    get_integer,
    get_list,
    get_numbers,
    get_text,
    numbers,
    read_json,
)
from tasks.datasets.files import file_names, require_inside, require_size
from tasks.datasets.spair_groups import GROUPS, Group, geometry_aware
from zoo.errors import InputError
from zoo.view.geometry import Box


@dataclass(frozen=True, slots=True)
class SpairEntry:
    """A dataset in the layout of SPair-71k, and its official counts.

    Attributes:
        name: Name of the dataset.
        folder: Its folder under the data folder.
        split: Folder of pair annotations.
        pairs: Official number of pairs.
        categories: Official number of categories.
        groups: By category, ids of keypoints that stand for the same.
    """

    name: str = "spair-71k-test"
    folder: str = "SPair-71k"
    split: str = "test"
    pairs: int = 12_234
    categories: int = 18
    groups: tuple[tuple[str, tuple[Group, ...]], ...] = tuple(GROUPS.items())

    @property
    def layout(self) -> str:
        """The files that are expected below the data folder, in words."""
        return (
            f"{self.folder}/PairAnnotation/{self.split}/*:<category>.json "
            f"and {self.folder}/JPEGImages/<category>/*.jpg"
        )


SPAIR_71K_TEST = SpairEntry()

LEVELS = {"viewpoint_variation": 3, "scale_variation": 3, "truncation": 4, "occlusion": 4}
"""Fields that say how hard a pair is, in the order of `PairFacts`, and how many levels each has."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One image of a pair; image is ``<category>/<file>``."""

    image: str
    size: tuple[int, int]
    box: Box
    points: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Pair:
    key: str
    category: str
    source: _Side
    target: _Side
    ids: tuple[int, ...] | None
    levels: tuple[int, ...] | None
    where: str


def read_spair(data: Path, entry: SpairEntry = SPAIR_71K_TEST) -> Keypoints:
    """The pairs that are there, by file name within sorted categories; keys are ``<file name>:<category>``.

    Args:
        data: Folder that holds the dataset's folder.
        entry: Folder name and official counts.

    Raises:
        InputError: A wrong layout, a malformed or mirrored pair, or a pair whose image is missing or of
            another size than stated.
    """
    root = data / entry.folder
    require_directory(root, f"{entry.name} ({entry.layout})")
    folder = root / "PairAnnotation" / entry.split
    require_directory(folder, f"the pair annotations of {entry.name}")
    names = file_names(folder, (".json",))
    if not names:
        raise InputError(f"expected pair annotations (*.json) in {folder}, found none")
    pairs = sorted((_read_pair(folder / name) for name in names), key=lambda pair: (pair.category, pair.key))
    images = _check_images(pairs, root / "JPEGImages")
    index = {image: position for position, image in enumerate(images)}
    shown = _ShownIds(root / "ImageAnnotation")
    groups = dict(entry.groups)
    hard = [_facts(pair, shown, groups.get(pair.category, ())) for pair in pairs]
    counts = (
        Count("pairs", len(pairs), entry.pairs),
        Count("categories", len({pair.category for pair in pairs}), entry.categories),
        Count("images", len(images)),
        Count("keypoints", sum(len(pair.target.points) for pair in pairs)),
    )
    return Keypoints(
        name=entry.name,
        samples=tuple(FileSample(image, str(root / "JPEGImages" / image)) for image in images),
        pairs=tuple(_keypoint_pair(pair, index, facts) for pair, facts in zip(pairs, hard, strict=True)),
        coverage=Coverage(counts),
    )


def _keypoint_pair(pair: _Pair, index: dict[str, int], facts: PairFacts | None) -> KeypointPair:
    return KeypointPair(
        key=pair.key,
        category=pair.category,
        source=index[pair.source.image],
        target=index[pair.target.image],
        source_size=pair.source.size,
        target_size=pair.target.size,
        source_box=pair.source.box,
        target_box=pair.target.box,
        source_points=pair.source.points,
        target_points=pair.target.points,
        facts=facts,
    )


class _ShownIds:
    """Which keypoints each image shows, by the image annotations."""

    def __init__(self, folder: Path) -> None:
        """Read none yet.

        Args:
            folder: Folder of ``<category>/<image>.json``, which need not be there.
        """
        self._folder = folder
        self._read: dict[str, frozenset[int] | None] = {}

    def of(self, image: str) -> frozenset[int] | None:
        """Ids of an image's keypoints; None without its annotation. Raises InputError for a wrong one."""
        if image not in self._read:
            path = (self._folder / image).with_suffix(".json")
            self._read[image] = self._ids(path) if path.is_file() else None
        return self._read[image]

    def _ids(self, path: Path) -> frozenset[int]:
        points = as_object(read_json(path).get("kps"), f"kps of {path}")
        return frozenset(_id(name, f"kps of {path}") for name, point in points.items() if point is not None)


def _facts(pair: _Pair, shown: _ShownIds, groups: tuple[Group, ...]) -> PairFacts | None:
    """How hard a pair is; None where its annotation lacks a field of it."""
    if pair.levels is None:
        return None
    viewpoint, scale, truncation, occlusion = pair.levels
    return PairFacts(viewpoint, scale, truncation, occlusion, _mistakable(pair, shown, groups))


def _mistakable(pair: _Pair, shown: _ShownIds, groups: tuple[Group, ...]) -> tuple[bool, ...] | None:
    """Which keypoints of a pair its target image shows another one for; None where that is not known."""
    if not groups:
        return (False,) * len(pair.source.points)
    target = shown.of(pair.target.image)
    if pair.ids is None or target is None:
        return None
    aware = geometry_aware(groups, pair.ids, target)
    return tuple(one in aware for one in pair.ids)


def _check_images(pairs: list[_Pair], root: Path) -> list[str]:
    """Sorted images of the pairs, which are there in the stated sizes; raises InputError."""
    sizes: dict[str, tuple[int, int]] = {}
    for pair in pairs:
        for side in (pair.source, pair.target):
            path = root / side.image
            if side.image not in sizes:
                if not path.is_file():
                    raise InputError(f"expected image {path} of pair {pair.key}, found none; fetch it")
                require_size(path, side.size, pair.where)
            elif sizes[side.image] != side.size:
                raise InputError(
                    f"expected one size of image {side.image} in all pairs, found {sizes[side.image]} and, "
                    f"in {pair.where}, {side.size}"
                )
            sizes[side.image] = side.size
    return sorted(sizes)


def _read_pair(path: Path) -> _Pair:
    """One pair annotation, checked; raises InputError."""
    fields, where = read_json(path), str(path)
    category = require_inside(get_text(fields, "category", where), where)
    # The archive has a colon before the category; systems that cannot hold one put another sign there.
    stem = re.fullmatch(rf"(.+)[:?_]{re.escape(category)}", path.stem)
    if stem is None:
        raise InputError(
            f"expected a file name that ends with :{category}.json as its category, found {path}"
        )
    if get_integer(fields, "mirror", where) != 0:
        raise InputError(f"expected mirror to be 0 in {where}: mirrored pairs are not part of the benchmark")
    source, target = (_read_side(fields, side, category, where) for side in ("src", "trg"))
    if len(source.points) != len(target.points):
        raise InputError(
            f"expected as many source as target keypoints in {where}, "
            f"found {len(source.points)} and {len(target.points)}"
        )
    ids = _ids(fields, len(source.points), where)
    return _Pair(f"{stem[1]}:{category}", category, source, target, ids, _levels(fields, where), where)


def _ids(fields: JsonObject, points: int, where: str) -> tuple[int, ...] | None:
    """Ids of a pair's keypoints; None where it has none. Raises InputError where they are not as many."""
    if "kps_ids" not in fields:
        return None
    ids = tuple(_id(value, f"kps_ids of {where}") for value in get_list(fields, "kps_ids", where))
    if len(ids) != points:
        raise InputError(f"expected as many kps_ids as keypoints in {where}, found {len(ids)} and {points}")
    return ids


def _id(value: object, where: str) -> int:
    """The id of a keypoint, which is written as text; raises InputError for anything else."""
    if not str(value).isdecimal():
        raise InputError(f"expected ids of keypoints as whole numbers in {where}, found {describe(value)}")
    return int(str(value))


def _levels(fields: JsonObject, where: str) -> tuple[int, ...] | None:
    """Levels of a pair's `PairFacts`; None where one is missing. Raises InputError for an unknown level."""
    if any(name not in fields for name in LEVELS):
        return None
    levels = tuple(get_integer(fields, name, where) for name in LEVELS)
    for (name, known), level in zip(LEVELS.items(), levels, strict=True):
        if level not in range(known):
            raise InputError(f"expected {name} of 0 to {known - 1} in {where}, found {level}")
    return levels


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
