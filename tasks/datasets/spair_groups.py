"""Keypoints of SPair-71k that stand for each other, such as the left and the right eye.

Source: Zhang et al., Telling Left from Right, CVPR 2024 (GeoAware-SC, commit 99fd6b6), the geometry-aware
subset.
"""

from collections.abc import Collection, Sequence

Group = tuple[int, ...]


def _pairs(first: int, last: int) -> tuple[Group, ...]:
    return tuple((number, number + 1) for number in range(first, last, 2))


_WHEELED = ((10, 13, 20, 23), (11, 14, 21, 24), (12, 15, 22, 25), (16, 17, 26, 27), (18, 19, 28, 29))
_CATTLE = ((2, 3), (9, 10, 11, 12), (15, 16, 17, 18), (19, 20))
_PETS = ((2, 3), (9, 10, 11, 12))

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
"""By category, ids of keypoints that are interchangeable."""


def geometry_aware(groups: Sequence[Group], shared: Collection[int], target: Collection[int]) -> list[int]:
    """The points of a pair that can be mistaken for another one of the target image.

    Args:
        groups: Ids of the pair's category that are interchangeable.
        shared: Ids that both images show.
        target: Ids that the target image shows.

    Returns:
        Ids of those shared of whose group the target image shows at least two, rising.
    """
    several = [{*group} for group in groups if len({*group} & {*target}) > 1]
    return sorted(one for one in shared if any(one in group for group in several))
