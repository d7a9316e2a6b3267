"""Anomaly detection by the nearest patches of good images: distances, maps, and scores of images and pixels.

Source: AnomalyDINO (Damm et al., WACV 2025; dammsi/AnomalyDINO, commit b3435f0); the per-region overlap is
that of Bergmann et al., The MVTec Anomaly Detection Dataset, IJCV 2021. An undefined metric is NaN here;
their code returns a number.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d, label
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.anomaly.counted_pixels import CountedPixels
from layerboard.tasks.metrics.arrays import Floats, Mask
from layerboard.tasks.metrics.bilinear import image_places
from layerboard.tasks.metrics.memory_search import most_similar_of_layers
from layerboard.tasks.metrics.neighbours import Key, mean_of
from layerboard.tasks.statistics.linearised import share_below

TOP = 100  # an image's score averages one in 100 of its patches: those farthest from the good ones
SIGMA = 4.0  # standard deviation, in pixels of the image, of the Gaussian that smooths its map
REACH = 4.0  # standard deviations at which the smoothing ends
SIDES: tuple[Literal["right"], Literal["left"]] = (
    "right",
    "left",
)  # values above a threshold, and at or above it
TOUCHING = np.ones((3, 3))  # pixels that touch at a corner belong to one region


def patch_distances_of_layers(
    patches: Mapping[Key, Tensor], memory: Mapping[Key, Tensor], layers: Mapping[Key, Sequence[Key]], k: int
) -> dict[Key, Tensor]:
    """Mean cosine distance of patches to their k nearest of a memory, for each layer: [patches].

    ``patches`` has an array [patches dim] for each member, and ``memory`` one [rows dim], rows in the same
    order for all. ``layers`` lists the members of each layer, over which the distances are averaged. The
    search is exact, in float32. The distance is 1 - cosine, 0 to 2: half the squared Euclidean distance of
    unit vectors. A zero vector stays zero, at 0.5 from every unit vector. Values are not checked for NaN.
    Raises ValueError if the memory has fewer than k rows.
    """
    rows = len(next(iter(memory.values())))
    if rows < k:
        raise ValueError(f"expected a memory of at least {k} patches, found {rows}")
    asked, known = (
        {member: functional.normalize(vectors.float(), dim=-1) for member, vectors in part.items()}
        for part in (patches, memory)
    )
    # the nearest row maximises the inner product minus half the row's squared length
    lengths = {member: vectors.square().sum(1, keepdim=True) for member, vectors in known.items()}
    ranked = {member: torch.cat([vectors, -lengths[member] / 2], 1) for member, vectors in known.items()}
    padded = {member: functional.pad(vectors, (0, 1), value=1.0) for member, vectors in asked.items()}
    halves = {member: vectors.square().sum(1) / 2 for member, vectors in asked.items()}
    nearest = most_similar_of_layers(padded, ranked, layers, k)
    return {
        name: (mean_of([halves[member] for member in layers[name]]) - voters.similarity.mean(1)).clamp_min(0)
        for name, voters in nearest.items()
    }


def image_scores(distances: Tensor) -> Tensor:
    """Mean of the largest 1 % of the patch distances [... patches] of an image, at least one patch: [...]."""
    most = max(1, distances.shape[-1] // TOP)
    return distances.topk(most, dim=-1).values.mean(-1)


def anomaly_map(distances: Floats, size: tuple[int, int]) -> Floats:
    """Smoothed anomaly map [image height, image width], float64, from patch distances [height width].

    The grid is interpolated bilinearly between patch centres to the image's (width, height), and smoothed by
    a Gaussian with a standard deviation of 4 pixels.
    """
    places = image_places(size, (distances.shape[0], distances.shape[1]))
    # both steps are linear along each axis, so one small matrix per axis does both
    down, across = (
        gaussian_filter1d(weights.numpy(), SIGMA, axis=0, mode="reflect", truncate=REACH)
        for weights in (places.rows, places.columns)
    )
    return np.asarray(down @ distances.astype(np.float64) @ across.T, np.float64)


def shown_references(count: int, shots: int, draw: int) -> range:
    """Indices of the reference images in one draw (numbered from 0) of ``shots`` images.

    Images are taken in sorted file-name order. The last draw may be smaller; raises ValueError if it is
    empty.
    """
    chosen = range(draw * shots, min((draw + 1) * shots, count))
    if not chosen:
        raise ValueError(f"expected more than {draw * shots} reference images, found {count}")
    return chosen


class PooledPixels(NamedTuple):
    """Pixels of all images of an object, with the pixels of defects separate from the others."""

    good: Floats  # values of the pixels outside all defect regions, ascending
    defective: Floats  # values of the pixels inside defect regions, ascending
    weight: Floats  # of each defective pixel: 1 / (pixels of its region x number of regions)
    images: CountedPixels | None = None  # pixels of each image; None if all pixels are of one kind

    @property
    def both(self) -> bool:
        """Whether there are pixels of both kinds, which most metrics need."""
        return bool(len(self.good) and len(self.defective))

    @property
    def auroc(self) -> float:
        """Area under the ROC curve over all pixels, in [0, 1]; NaN if all are of one kind."""
        return float(share_below(self.good, self.defective).mean()) if self.both else float("nan")

    @property
    def f1_max(self) -> float:
        """Maximum F1 over all thresholds, in [0, 1]; NaN without a defect.

        The best threshold is always the value of a pixel of a defect.
        """
        values, counts = np.unique(self.defective, return_counts=True)
        hits = np.cumsum(counts[::-1])
        wrong = len(self.good) - np.searchsorted(self.good, values[::-1], "left")
        return float((2 * hits / (hits + wrong + hits[-1])).max()) if len(hits) else float("nan")

    def au_pro(self, limit: float) -> float:
        """Area under the per-region overlap curve up to a false-positive rate, over that rate, in [0, 1].

        Every distinct value is a threshold, and all regions have the same weight, whatever their size. NaN if
        all pixels are of one kind.
        """
        if not self.both:
            return float("nan")
        count = len(self.good)
        lowest = np.searchsorted(self.good, self.good[max(0, int(count * (1 - limit)) - 1)])
        top = self.good[lowest:]
        starts = np.flatnonzero(np.diff(top, prepend=-np.inf))
        values = top[starts]
        after = (len(top) - starts[::-1]) / count  # false-positive rates, from the highest threshold down
        before = np.concatenate([[0.0], after[:-1]])
        share = np.append(np.cumsum(self.weight[::-1])[::-1], 0.0)
        first, last = (share[np.searchsorted(self.defective, values[::-1], side)] for side in SIDES)
        width = np.clip(limit - before, 0, after - before)
        ends = first + (last - first) * width / (after - before)
        return float(np.sum(width * (first + ends)) / (2 * limit))


def pooled_pixels(images: Iterable[tuple[Floats, Mask]]) -> PooledPixels:
    """Pixels of all images of an object, from their anomaly maps and defect masks, [height width] each."""
    parts: list[tuple[Floats, Floats, Floats]] = []
    total = 0
    for values, mask in images:
        regions, count = label(mask, TOUCHING)
        inside = regions[mask]
        parts.append((values[~mask], values[mask], 1 / np.bincount(inside)[inside]))
        total += count
    good, defective, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    good.sort()
    order = np.argsort(defective)
    defective = defective[order]
    both = len(good) and len(defective)
    counted = CountedPixels.of(parts, good, defective) if both else None
    return PooledPixels(good, defective, weight[order] / max(total, 1), counted)
