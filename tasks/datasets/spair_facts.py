"""Further annotations of SPair-71k: difficulty levels, viewpoints, and interchangeable keypoints.

Source of the groups of interchangeable keypoints, such as the left and the right eye: Zhang et al., Telling
Left from Right, CVPR 2024 (GeoAware-SC, commit 99fd6b6), the geometry-aware subset.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from layerboard.tasks.datasets.base import Count
from layerboard.tasks.datasets.integrity import mismatch
from layerboard.tasks.datasets.reading.files import is_file, read_bytes
from layerboard.zoo.errors import shortened
from layerboard.zoo.reading import read_as


@dataclass(frozen=True, slots=True)
class PairFacts:
    """Annotated difficulty of a pair."""

    viewpoint: int  # difference of the viewpoints: 0 easy, 1 medium, 2 hard
    scale: int  # difference of the object sizes: the same levels
    truncation: int  # truncated object: 0 none, 1 source, 2 target, 3 both
    occlusion: int  # occluded object: the same levels
    # for each keypoint, whether the target image shows an interchangeable one, such as the other eye; None if
    # the keypoints of the target image are unknown
    mistakable: tuple[bool, ...] | None


HARD = ("easy", "medium", "hard")
WHICH = ("none", "source", "target", "both")

KINDS = {"viewpoint": HARD, "scale": HARD, "truncation": WHICH, "occlusion": WHICH}
"""Names of the levels of each field of `PairFacts`."""

AZIMUTH = {"azimuth": tuple(str(eighths) for eighths in range(5))}
"""Kinds of pairs by eighths of a turn between the two viewpoints, in addition to `KINDS`."""

MISTAKABLE = "geometry-aware"
"""Points whose target image shows an interchangeable point (Zhang et al., CVPR 2024)."""

Levels = tuple[int, ...]
Group = tuple[int, ...]

LEVELS = ("viewpoint_variation", "scale_variation", "truncation", "occlusion")
"""The fields of difficulty of an annotation, in the order of `PairFacts`."""

# number of pairs of each level in the test split, from a third party's script
OFFICIAL_LEVELS: Mapping[str, Levels] = {
    "viewpoint_variation": (6_654, 4_474, 1_106),
    "scale_variation": (6_458, 3_794, 1_982),
    "truncation": (7_050, 2_166, 2_166, 852),
    "occlusion": (8_166, 1_806, 1_806, 456),
}


def _pairs(first: int, last: int) -> tuple[Group, ...]:
    return tuple((number, number + 1) for number in range(first, last, 2))


_WHEELED = ((10, 13, 20, 23), (11, 14, 21, 24), (12, 15, 22, 25), (16, 17, 26, 27), (18, 19, 28, 29))
_CATTLE = ((2, 3), (9, 10, 11, 12), (15, 16, 17, 18), (19, 20))
_PETS = ((2, 3), (9, 10, 11, 12))

# by category, ids of keypoints that are interchangeable
GROUPS: dict[str, tuple[Group, ...]] = {
    "aeroplane": _pairs(4, 21),
    "bicycle": ((2, 3), (6, 7), (9, 10)),
    "bird": ((1, 2), (10, 11), (12, 13), (14, 15)),
    "boat": _pairs(1, 12),
    "bottle": _pairs(0, 30),
    "bus": ((0, 1), (2, 3, 5, 6), (4, 7), *_WHEELED),
    "car": ((0, 1), (2, 3, 6, 7), (4, 8), (5, 9), *_WHEELED),
    "cat": _PETS,
    "chair": ((0, 1), (2, 3), (4, 5, 6, 7), (8, 9), (10, 11), (12, 13)),
    "cow": _CATTLE,
    "dog": _PETS,
    "horse": ((2, 3), (10, 11, 12, 13), (16, 17, 18, 19)),
    "motorbike": ((0, 1), (2, 3)),
    "person": _pairs(8, 19),
    "pottedplant": ((0, 1, 2, 3), (4, 5), (6, 8)),
    "sheep": _CATTLE,
    "train": _pairs(0, 30),
    "tvmonitor": ((0, 2, 4, 6), (1, 3, 5, 7), (8, 10, 12, 14), (9, 11, 13, 15)),
}


def geometry_aware(groups: Sequence[Group], shared: Collection[int], target: Collection[int]) -> list[int]:
    """Ascending indices of a pair's points that can be mistaken for another point of the target image.

    For each of these, the target shows at least two points of its group of interchangeable ones. ``shared``
    are the points in both images.
    """
    several = [{*group} for group in groups if len({*group} & {*target}) > 1]
    return sorted(point for point in shared if any(point in group for group in several))


def level_counts(
    pairs: Iterable[PairFacts | None], official: Iterable[tuple[str, Levels]]
) -> tuple[Count, ...]:
    """Number of pairs of each level, with the official numbers; empty if no pair states its levels."""
    known = [(each.viewpoint, each.scale, each.truncation, each.occlusion) for each in pairs if each]
    columns = dict(zip(LEVELS, zip(*known, strict=True), strict=False))
    return tuple(
        Count(f"pairs by {name}", tuple(map(columns[name].count, range(len(expected)))), expected)
        for name, expected in official
        if known
    )


@dataclass(frozen=True, slots=True)
class _ImageNote:
    """The annotation of an image: its visible keypoints by id, and its viewpoint."""

    kps: dict[str, object]
    azimuth_id: object = None


class ImageNotes:
    """Optional annotations ``<category>/<image>.json`` of images in a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, _ImageNote | None] = {}

    def shown(self, image: str) -> frozenset[int] | None:
        """Ids of the keypoints in an image; None without its annotation; raises InputError."""
        note, where = self._note(image), f"kps of {self._path(image)}"
        if note is None:
            return None
        return frozenset(keypoint_id(name, where) for name, point in note.kps.items() if point is not None)

    def turn(self, first: str, second: str) -> int | None:
        """Eighths of a turn between two viewpoints, 0 to 4; None if one is not among the eight."""
        notes = (self._note(image) for image in (first, second))
        source, target = (note and note.azimuth_id for note in notes)
        if type(source) is not int or type(target) is not int or not {source, target} <= {*range(8)}:
            return None
        apart = abs(source - target)
        return min(apart, 8 - apart)

    def _note(self, image: str) -> _ImageNote | None:
        if image not in self._read:
            path = self._path(image)
            self._read[image] = read_as(_ImageNote, path, read=read_bytes) if is_file(path) else None
        return self._read[image]

    def _path(self, image: str) -> Path:
        return (self._folder / image).with_suffix(".json")


def keypoint_id(value: object, where: str) -> int:
    """The id of a keypoint, which is written as text; raises InputError for anything else."""
    if not str(value).isdecimal():
        raise mismatch(f"ids of keypoints as whole numbers in {where}", shortened(value))
    return int(str(value))
