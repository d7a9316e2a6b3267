"""Anomaly detection by the nearest patches of good images: distances, maps, and scores of images and pixels.

Source: AnomalyDINO (Damm et al., WACV 2025; dammsi/AnomalyDINO, commit b3435f0); the per-region overlap is
that of Bergmann et al., The MVTec Anomaly Detection Dataset, IJCV 2021. An undefined metric is NaN here;
their code returns a number.

An image is sampled with all its pixels, so intervals of pixel metrics follow from one value per image, as in
`tasks.statistics.linearised`. Pixel counts at a few thousand scores are enough for these values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d, label
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.metrics.arrays import Floats, Mask
from layerboard.tasks.metrics.bilinear import image_places
from layerboard.tasks.metrics.memory_search import most_similar_of_layers
from layerboard.tasks.metrics.neighbours import Key, mean_of
from layerboard.tasks.statistics.linearised import f1_values, share_below

STEPS = 1_000  # score levels for each kind of pixel; enough for the standard error of a metric
TOP = 100  # an image's score averages one in 100 of its patches: those farthest from the good ones
SIGMA = 4.0  # standard deviation, in pixels of the image, of the Gaussian that smooths its map
REACH = 4.0  # standard deviations at which the smoothing ends
TOUCHING = np.ones((3, 3))  # pixels that touch at a corner belong to one region


def patch_distances_of_layers(
    patches: Mapping[Key, Tensor], memory: Mapping[Key, Tensor], layers: Mapping[Key, Sequence[Key]], k: int
) -> dict[Key, Tensor]:
    """Mean cosine distance of patches to their k nearest of a memory, for each layer: [patches].

    ``patches`` has an array [patches dim] for each member, and ``memory`` one [rows dim] of at least k rows,
    in the same order for all. ``layers`` lists the members of each layer, over which the distances are
    averaged. The search is exact, in float32. The distance is 1 - cosine, 0 to 2: half the squared Euclidean
    distance of unit vectors. A zero vector stays zero, at 0.5 from every unit vector. Values are not checked
    for NaN.
    """
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
        name: (
            mean_of([halves[member] for member in layers[name]]) - neighbours.similarity.mean(1)
        ).clamp_min(0)
        for name, neighbours in nearest.items()
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


@dataclass(frozen=True, slots=True)
class CountedPixels:
    """Pixel counts by image and score level, separate for defects and other pixels: [images scores] each.

    Scores fall along the second axis. Pixels of one level count as having equal scores; ties count half.
    """

    good: Floats  # pixels outside all regions
    defective: Floats  # pixels of regions
    weight: Floats  # of defective pixels: 1 / pixels of the region, so that each region sums to 1

    @classmethod
    def of(
        cls, images: Sequence[tuple[Floats, Floats, Floats]], good: Floats, defective: Floats
    ) -> "CountedPixels":
        """Counts from the good scores, defective scores, and defective weights of each image.

        ``good`` and ``defective`` are the scores of all images, ascending, from which about `STEPS` levels
        are taken each.
        """
        few = [np.append(ranked[:: 1 + len(ranked) // STEPS], ranked[-1]) for ranked in (good, defective)]
        ends = np.unique(np.concatenate(few))
        counted = np.zeros((3, len(images), len(ends) + 1))
        for number, (outside, inside, weight) in enumerate(images):
            steps = [len(ends) - np.searchsorted(ends, values, "right") for values in (outside, inside)]
            for kind, (step, each) in enumerate(((steps[0], None), (steps[1], None), (steps[1], weight))):
                counted[kind, number] = np.bincount(step, each, len(ends) + 1)
        return cls(*counted)

    def area_under_roc(self) -> Floats:
        """AUROC of all pixels, 0 to 1, as a value per image: [images].

        Source: Obuchowski, Nonparametric analysis of clustered ROC curve data, Biometrics 53, 1997.
        """
        good, defective = (each / each.sum() for each in (self.good, self.defective))
        # the shares before each level, plus half of its own
        above, below = (shares.cumsum() - shares / 2 for shares in (defective.sum(0), good.sum(0)))
        value = float((defective.sum(0) * (1 - below)).sum())
        added = defective @ (1 - below) + good @ above
        alone = value * (defective.sum(1) + good.sum(1))
        return np.asarray(value + len(good) * (added - alone), np.float64)

    def f1_max(self) -> Floats:
        """Maximum F1 over all thresholds, 0 to 1, as a value per image: [images]."""
        hits, wrong = self.defective.sum(0).cumsum(), self.good.sum(0).cumsum()
        best = int(np.argmax(2 * hits / (hits + wrong + hits[-1]))) + 1
        hit = self.defective[:, :best].sum(1)
        return f1_values(hit + self.good[:, :best].sum(1), hit, self.defective.sum(1))

    def au_pro(self, limit: float) -> Floats:
        """AU-PRO up to a false-positive rate, 0 to 1, as a value per image: [images].

        An image contributes by its regions, and by its good pixels, which change the threshold at each rate.
        """
        good, weight = self.good / self.good.sum(), self.weight / self.weight.sum()
        width = good.sum(0)
        before, last = width.cumsum() - width, weight.cumsum(1)
        taken = np.clip((limit - before) / np.where(width > 0, width, 1), 0, width > 0)  # part of each step
        first = last - weight
        middle = first + (last - first) * taken / 2  # [images scores]
        value, share = middle @ (taken * width) / limit, weight.sum(1)
        end = np.flatnonzero(taken)[-1]
        least = (first + (last - first) * taken)[:, end].sum()  # of all regions, at the limit
        moved = good @ (taken * (middle.sum(0) - least)) / limit
        total = value.sum()
        added = value - share * total + moved - good.sum(1) * (total - least)
        return np.asarray(total + len(good) * added, np.float64)


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
        first = share[np.searchsorted(self.defective, values[::-1], "right")]  # above each threshold
        last = share[np.searchsorted(self.defective, values[::-1], "left")]  # at or above it
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
