"""Smaller versions of datasets, for trying things out; always marked partial."""

from dataclasses import replace

import numpy as np

from tasks.datasets.base import (
    Classification,
    ClassImages,
    Coverage,
    Keypoints,
    Regions,
    Retrieval,
    Scenes,
    Unlabelled,
    Videos,
)


def limit_classes(data: Classification, limit: int) -> Classification:
    """At most ``limit`` images a class in each split."""
    train, val = _first_of_classes(data.train, limit), _first_of_classes(data.val, limit)
    used = f"{len(train.samples):,} train and {len(val.samples):,} val images"
    if (len(train.samples), len(val.samples)) == (len(data.train.samples), len(data.val.samples)):
        return data
    note = f"limited to {_counted(limit, 'image')} a class: {used} were used"
    return replace(data, train=train, val=val, coverage=_noted(data.coverage, note))


def limit_unlabelled(data: Unlabelled, limit: int) -> Unlabelled:
    """The first ``limit`` images."""
    if limit >= len(data.samples):
        return data
    note = f"limited to {_counted(limit, 'image')}"
    return replace(data, samples=data.samples[:limit], coverage=_noted(data.coverage, note))


def limit_retrieval(data: Retrieval, limit: int) -> Retrieval:
    """The first ``limit`` queries; the database stays whole, since it decides the ranking."""
    if limit >= len(data.queries):
        return data
    return replace(
        data,
        queries=data.queries[:limit],
        easy=data.easy[:limit],
        hard=data.hard[:limit],
        junk=data.junk[:limit],
        coverage=_noted(data.coverage, f"limited to {_counted(limit, 'query', 'queries')}"),
    )


def limit_videos(data: Videos, limit: int) -> Videos:
    """The first ``limit`` videos."""
    if limit >= len(data.videos):
        return data
    note = f"limited to {_counted(limit, 'video')}"
    return replace(data, videos=data.videos[:limit], coverage=_noted(data.coverage, note))


def limit_keypoints(data: Keypoints, limit: int) -> Keypoints:
    """The first ``limit`` pairs of each category."""
    seen: dict[str, int] = {}
    kept = []
    for pair in data.pairs:
        seen[pair.category] = seen.get(pair.category, 0) + 1
        if seen[pair.category] <= limit:
            kept.append(pair)
    if len(kept) == len(data.pairs):
        return data
    note = f"limited to {_counted(limit, 'pair')} a category: {_counted(len(kept), 'pair')} used"
    return replace(data, pairs=tuple(kept), coverage=_noted(data.coverage, note))


def limit_scenes(data: Scenes, limit: int) -> Scenes:
    """The first ``limit`` images of each split."""
    if limit >= max(len(data.train), len(data.val)):
        return data
    note = f"limited to {_counted(limit, 'image')} of each split"
    return replace(data, train=data.train[:limit], val=data.val[:limit], coverage=_noted(data.coverage, note))


def limit_regions(data: Regions, limit: int) -> Regions:
    """The first ``limit`` images."""
    if limit >= len(data.images):
        return data
    note = f"limited to {_counted(limit, 'image')}"
    return replace(data, images=data.images[:limit], coverage=_noted(data.coverage, note))


def _first_of_classes(images: ClassImages, limit: int) -> ClassImages:
    rank = np.zeros(len(images.labels), np.int64)
    for label in np.unique(images.labels):
        (where,) = np.nonzero(images.labels == label)
        rank[where] = np.arange(len(where))
    (kept,) = np.nonzero(rank < limit)
    return ClassImages(tuple(images.samples[i] for i in kept), images.labels[kept], images.classes)


def _counted(count: int, one: str, several: str = "") -> str:
    """A count with its noun."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def _noted(coverage: Coverage, note: str) -> Coverage:
    return replace(coverage, notes=(*coverage.notes, note))
