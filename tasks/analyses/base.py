"""Base classes of analyses: measurers of batches, stored arrays, and scores of layers and heads."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Generic

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.framework.base import (
    Findings,
    Group,
    Items,
    LayerOutcome,
    Measurements,
    Outcome,
    Score,
    Source,
    Statistic,
    digest,
)
from layerboard.tasks.framework.checks import nothing_read
from layerboard.tasks.framework.measurers import BatchMeasurer, Join, Measurer, Portion
from layerboard.tasks.framework.task import AnalysisTask
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

Array = NDArray[np.generic]

NOT_FINITE = "attention probabilities are not finite"


def first(kept: Tensor, _: Tensor) -> Tensor:
    """The array of the first batch, for values that are the same in all batches."""
    return kept


@dataclass(frozen=True)
class KeptImages:
    """Measurements of one layer, for groups with at least one readable image, in source order."""

    groups: tuple[tuple[Group, Measurements], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the images in the order of their measurements."""
        return self.keys_at("position")

    def keys_at(self, name: str) -> tuple[str, ...]:
        """Keys of the images whose positions in their group are in the array of that name."""
        pairs = ((group, arrays[name].tolist()) for group, arrays in self.groups)
        return tuple(group.samples[position].key for group, positions in pairs for position in positions)

    @property
    def first(self) -> Measurements:
        return self.groups[0][1]

    def having(self, name: str) -> "KeptImages":
        """The groups that have an array of that name."""
        return KeptImages(tuple(pair for pair in self.groups if name in pair[1]))

    def every(self, name: str) -> list[Array]:
        """An array of each group."""
        return [arrays[name] for _, arrays in self.groups]

    def each(self, name: str, axis: int = 0) -> Floats:
        """A measurement of all images, concatenated along an axis, as float64."""
        return np.concatenate([np.asarray(array, np.float64) for array in self.every(name)], axis)

    def total(self, name: str) -> Floats:
        """The sum of a measurement over the groups."""
        return np.asarray(np.sum([np.asarray(array, np.float64) for array in self.every(name)], axis=0))


class LayerArrays(dict[Layer, Mapping[str, Array]]):
    """Arrays of all layers that have any, in order."""

    @property
    def blocks(self) -> NDArray[np.int64]:
        """Numbers of the layers' blocks, [layers]."""
        return np.array([layer.index for layer in self], np.int64)

    @property
    def first(self) -> Mapping[str, Array]:
        return next(iter(self.values()))

    def every(self, name: str) -> list[Array]:
        """An array of each layer."""
        return [arrays[name] for arrays in self.values()]

    def stacked(self, name: str, axis: int = 0) -> Array:
        """An array of all layers stacked along an axis, float32; shorter rows are padded with NaN."""
        every = [np.asarray(array, np.float32) for array in self.every(name)]
        longest = max(array.shape[-1] for array in every)
        ends = [[(0, 0)] * (array.ndim - 1) + [(0, longest - array.shape[-1])] for array in every]
        pairs = zip(every, ends, strict=True)
        return np.stack([np.pad(array, end, constant_values=np.nan) for array, end in pairs], axis=axis)


class ImageAnalysis(AnalysisTask, Generic[Portion]):
    """An analysis of the features of a pass: images are reduced batch by batch, and each layer to findings.

    It uses the probe subset of a classification dataset, or of images without classes.
    """

    version: ClassVar[int] = 1  # increased when its findings change
    joins: ClassVar[Mapping[str, Join]] = {}  # joins for `BatchMeasurer`

    @property
    def source(self) -> Source:
        return self.data.probe  # type: ignore[no-any-return]

    @cached_property
    def fingerprint(self) -> str:
        """Digest of its name, version and config; by default it has no ground truth."""
        return digest(self.entry.name, self.version, *([] if self.config is None else [self.config]))

    def measure(self, group: Group, view: View) -> Measurer[Portion]:
        """The measurer that reduces batches of images, by default with `reduce`."""
        return BatchMeasurer(self.reduce, self.joins)

    def reduce(self, layer: Layer, positions: Sequence[int], portion: Portion) -> Mapping[str, Tensor]:
        """Tensors kept of one layer and batch, for `BatchMeasurer`."""
        raise NotImplementedError

    @abstractmethod
    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        """Findings of one layer with at least one readable image, and arrays to be combined over layers."""

    def report(self, outcomes: Sequence[LayerOutcome], layers: LayerArrays) -> Findings:
        """Findings of all layers, with more that follow from their arrays."""
        return Findings(tuple(outcomes), self.arrays(layers) if layers else {})

    def arrays(self, layers: LayerArrays) -> Mapping[str, Array]:
        """Arrays that are stored next to the records, by name, as described in `docs/reference/arrays.md`."""
        return {}

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """Findings for a backbone; raises UnreadableImageError if no image could be read."""
        summaries = {}
        for layer in measured:
            pairs = zip(self.source.groups, measured[layer], strict=True)
            if read := tuple(pair for pair in pairs if len(pair[1].get("position", ()))):
                summaries[layer] = self.summarise(layer, KeptImages(read))
        if not summaries:
            raise nothing_read(self.source)
        outcomes = [outcome for summary in summaries.values() for outcome in summary.outcomes]
        arrays = {layer: summary.arrays for layer, summary in summaries.items() if summary.arrays}
        return self.report(outcomes, LayerArrays(arrays))


class Tally:
    """Collects the scores of one layer and pooling; scores of images have items, and so intervals."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._scores: list[Score] = []
        self._values: dict[str, Floats] = {}
        self.missing: dict[str, str] = {}  # reasons for missing metrics

    def images(self, metric: str, values: Floats, head: int = -1) -> None:
        """Add the mean over images of one value each, [images]; NaN if an image has none."""
        score = Score(metric, float(np.nanmean(values)), int(np.isfinite(values).sum()), "images", head)
        self._scores.append(score)
        self._values[score.statistic] = values

    def heads(self, metric: str, values: Floats) -> None:
        """Add scores of each head and of all heads together, from values [images heads]."""
        self.images(metric, values.mean(axis=1))
        for head in range(values.shape[1]):
            self.images(metric, np.ascontiguousarray(values[:, head]), head)

    def whole(self, metric: str, values: Floats) -> None:
        """Add scores of each head and of all together, from values [heads] that are no means over images.

        Heads without a value (NaN) are left out.
        """
        there = np.flatnonzero(~np.isnan(values))
        if len(there):
            self.number(metric, float(values[there].mean()))
        for head in there.tolist():
            self._scores.append(Score(metric, float(values[head]), len(self._keys), "images", head))

    def number(
        self, metric: str, value: float, n: int | None = None, unit: str = "images", error: float = np.nan
    ) -> None:
        """Add a score that is not a mean over images; ``n`` is the number of images by default."""
        self._scores.append(Score(metric, value, len(self._keys) if n is None else n, unit, error=error))

    def outcome(self, empty: str = "") -> Outcome:
        """The collected scores; ``empty`` is the reason why the primary metric has no value."""
        statistics = {name: Statistic(name) for name in self._values}
        items = Items("images", self._keys, self._keys, ("",) * len(self._keys), self._values, statistics)
        return Outcome(tuple(self._scores), items if self._values else None, empty, self.missing)
