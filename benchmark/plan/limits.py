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
    Videos,
)


def limit_classes(data: Classification, limit: int) -> Classification:
    """At most ``limit`` images a class in each split."""
    return replace(
        data,
        train=_first_of_classes(data.train, limit),
        val=_first_of_classes(data.val, limit),
        coverage=_noted(data.coverage, f"limited to {limit} images a class"),
    )


def limit_retrieval(data: Retrieval, limit: int) -> Retrieval:
    """The first ``limit`` queries; the database stays whole, since it decides the ranking."""
    return replace(
        data,
        queries=data.queries[:limit],
        easy=data.easy[:limit],
        hard=data.hard[:limit],
        junk=data.junk[:limit],
        coverage=_noted(data.coverage, f"limited to {limit} queries"),
    )


def limit_videos(data: Videos, limit: int) -> Videos:
    """The first ``limit`` videos."""
    return replace(
        data, videos=data.videos[:limit], coverage=_noted(data.coverage, f"limited to {limit} videos")
    )


def limit_keypoints(data: Keypoints, limit: int) -> Keypoints:
    """The first ``limit`` pairs of each category."""
    seen: dict[str, int] = {}
    kept = []
    for pair in data.pairs:
        seen[pair.category] = seen.get(pair.category, 0) + 1
        if seen[pair.category] <= limit:
            kept.append(pair)
    note = f"limited to {limit} pairs a category"
    return replace(data, pairs=tuple(kept), coverage=_noted(data.coverage, note))


def limit_regions(data: Regions, limit: int) -> Regions:
    """The first ``limit`` images."""
    return replace(
        data, images=data.images[:limit], coverage=_noted(data.coverage, f"limited to {limit} images")
    )


def _first_of_classes(images: ClassImages, limit: int) -> ClassImages:
    rank = np.zeros(len(images.labels), np.int64)
    for label in np.unique(images.labels):
        (where,) = np.nonzero(images.labels == label)
        rank[where] = np.arange(len(where))
    (kept,) = np.nonzero(rank < limit)
    return ClassImages(tuple(images.samples[i] for i in kept), images.labels[kept], images.classes)


def _noted(coverage: Coverage, note: str) -> Coverage:
    return replace(coverage, notes=(*coverage.notes, note))
