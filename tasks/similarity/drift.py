"""Drift: difference of a network's vectors between number formats or image resizings, layer by layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import numpy as np

from layerboard.tasks.framework.base import PairFindings, digest
from layerboard.tasks.framework.checks import NOT_FINITE
from layerboard.tasks.framework.sources import ProbedImages
from layerboard.tasks.framework.stored import StoredBackbone
from layerboard.tasks.framework.task import ComparisonTask
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.spec import WHOLE_BACKBONE, BackboneSpec, Dtype, Layer


@dataclass(frozen=True, eq=False)
class DriftTask(ComparisonTask):
    """Relative difference of the probe images' vectors between two ways to run a backbone, at each layer.

    A way is a number format and a resizing of images, by Pillow or by torch. The difference of an image's
    vectors a and b is ``|a - b| / |b|``, where b is the vector with Pillow's resizing or else with the wider
    format. It is exactly 0 if all numbers are bitwise equal. Records belong to the layers of a.
    """

    data: ProbedImages
    poolings = ("cls", "mean")

    @property
    def fingerprint(self) -> str:
        return digest("drift", 1, self.poolings)

    def compares(self, first: BackboneSpec, second: BackboneSpec) -> bool:
        same = (first.entry, first.input_size) == (second.entry, second.input_size)
        return same and _way(first) != _way(second)

    def compare(self, backbones: Sequence[StoredBackbone], pooling: str) -> Iterator[PairFindings]:
        there = [row for row, each in enumerate(backbones) if pooling in each.of_source.poolings()]
        for first, second in combinations(sorted(there, key=lambda row: _way(backbones[row].spec)), 2):
            base, other = backbones[first], backbones[second]
            if self.compares(base.spec, other.spec):
                layers = tuple(layer for layer in other.layers if layer in base.layers)
                drifts = np.array([drift(other, base, layer, pooling) for layer in layers]).reshape(-1, 2)
                for metric, values in zip(self.entry.metrics, drifts.T, strict=True):
                    value, error = values[:, None], np.full((len(layers), 1), np.nan)  # images are no sample
                    yield PairFindings(
                        second, first, metric, layers, (WHOLE_BACKBONE,), value, error, NOT_FINITE
                    )


def _way(spec: BackboneSpec) -> tuple[bool, int]:
    """Sort key for the way in which a backbone runs: Pillow's resizing and the widest format first."""
    return spec.fast_resize, get_args(Dtype).index(spec.dtype)


def drift(backbone: StoredBackbone, reference: StoredBackbone, layer: Layer, pooling: str) -> Floats:
    """Median and maximum of the images' relative differences of vectors: [2]; NaN if any is not finite."""
    shown = reference.of_source.shown & backbone.of_source.shown
    vectors, base = (
        each.of_source.read(layer, pooling)[shown].astype(np.float64) for each in (backbone, reference)
    )
    if not (np.isfinite(vectors).all() and np.isfinite(base).all()):
        return np.full(2, np.nan)
    apart, length = np.linalg.norm(vectors - base, axis=1), np.linalg.norm(base, axis=1)
    relative = np.divide(apart, length, out=np.where(apart > 0, np.inf, 0.0), where=length > 0)
    return np.array([np.median(relative), relative.max()])
