"""Passes of planted features, in memory: what a task is given of each image, and outcomes of its layers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.framework.base import FINITE, Group, Measurements, Outcome
from layerboard.tasks.framework.checks import NOT_FINITE
from layerboard.tasks.framework.measurers import Measurer
from layerboard.tasks.framework.stored import LayerMeasurements, StoredBackbone
from layerboard.tasks.framework.task import Measurable, Task, VectorTask
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View
from tests.benchmark.doubles import SPEC

LAYER, OTHER = Layer(1), Layer(2)
BOTH = Layer(2, fused=(1,))
Features = Mapping[str, NDArray[Any]]
"""Of each image, by its key: a vector [dim], or a grid [height width dim]."""


class Measured(LayerMeasurements):
    """What groups left behind, in memory, and why some layers could not be measured."""

    bytes = 0

    def __init__(
        self, layers: Mapping[Layer, list[Measurements]], failures: Mapping[Layer, str] | None = None
    ):
        self.failures = dict(failures or {})
        self._layers = {layer: groups for layer, groups in layers.items() if layer not in self.failures}

    def __getitem__(self, layer: Layer) -> Sequence[Measurements]:
        return self._layers[layer]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def of_group(self, group: int) -> Mapping[Layer, Measurements]:
        return {layer: groups[group] for layer, groups in self._layers.items()}


class Vectors:
    """Stored vectors of a source; those of images without features could not be read."""

    def __init__(self, keys: Sequence[str], layers: Mapping[Layer, Features]) -> None:
        self._keys, self._layers = keys, layers
        self.shown = np.array([all(key in features for features in layers.values()) for key in keys])

    def poolings(self) -> tuple[str, ...]:
        return ("mean",)

    def read(self, layer: Layer, pooling: str) -> NDArray[np.float32]:
        features = self._layers[layer]
        unread = np.full_like(next(iter(features.values())), np.nan)
        return np.stack([features.get(key, unread) for key in self._keys]).astype(np.float32)

    def bytes(self, layer: Layer, pooling: str) -> int:
        return 0


def stored(task: Task, layers: Mapping[Layer, Features]) -> dict[str, Vectors]:
    """Vectors of the sources of a task."""
    return {
        source.name: Vectors([sample.key for sample in source.samples], layers)
        for source in task.vector_sources
    }


def vectors_of(task: Task, features: Features) -> dict[str, NDArray[np.float32]]:
    """Vectors of one layer, as `VectorTask.score` takes them."""
    return {name: each.read(LAYER, "mean") for name, each in stored(task, {LAYER: features}).items()}


def finished(
    measurer: Measurer[Any], layers: Sequence[Layer], failed: Mapping[Layer, str] | None = None
) -> tuple[dict[Layer, dict[str, NDArray[Any]]], dict[Layer, str]]:
    """What is kept of a group of each layer, and the reasons of the layers of which nothing is."""
    kept: dict[Layer, Mapping[str, Tensor]] = {}
    reasons = dict(failed or {})
    for layer in (layer for layer in layers if layer not in reasons):
        try:
            arrays = measurer.finish(layer)
        except ValueError as error:
            reasons[layer] = str(error)
            continue
        if arrays.pop(FINITE, torch.tensor(True)).all():
            kept[layer] = arrays
        else:
            reasons[layer] = NOT_FINITE
    settled = measurer.settle(kept)
    return {layer: {name: a.numpy() for name, a in settled[layer].items()} for layer in kept}, reasons


def measured_group(
    task: Measurable,
    group: Group,
    layers: Mapping[Layer, Features],
    batch: int = 3,
    view: View | None = None,
    sets: Sequence[Layer] = (),
) -> tuple[dict[Layer, dict[str, NDArray[Any]]], dict[Layer, str]]:
    """What one group leaves behind; activations are gone after each call, unless the feed lets them last."""
    measurer, count = task.measure(group, view or task.source.view), len(group.samples)
    failed: dict[Layer, str] = {}
    for start in range(0, count, batch):
        positions = range(count)[start : start + batch]
        keys = [group.samples[position].key for position in positions]
        live = {
            layer: torch.stack([torch.as_tensor(features[key]) for key in keys])
            for layer, features in layers.items()
        }
        lasting = getattr(task.feed, "lasting", False)
        if lasting:
            live = {layer: LayerFeatures(layer, None, grids).kept_grid for layer, grids in live.items()}
        if sets:
            measurer.compare(sets, positions, live)  # type: ignore[attr-defined]
        for layer, grids in live.items() if not sets else ():
            try:
                measurer.update(layer, positions, grids)
            except ValueError as error:
                failed.setdefault(layer, str(error))
        for grids in live.values() if not lasting else ():
            grids.fill_(torch.nan)
    return finished(measurer, sets or list(layers), failed)


def by_key(task: Measurable, images: Iterable[Any]) -> dict[str, Any]:
    """Features of the images of a source, which are in its order."""
    return {sample.key: each for sample, each in zip(task.source.samples, images, strict=True)}


def measured(
    task: Measurable,
    layers: Mapping[Layer, Features],
    batch: int = 3,
    view: View | None = None,
    sets: Sequence[Layer] = (),
) -> Measured:
    """What all groups of a pass leave behind."""
    left: dict[Layer, list[Measurements]] = {layer: [] for layer in sets or layers}
    failures: dict[Layer, str] = {}
    for group in task.source.groups:
        kept, reasons = measured_group(task, group, layers, batch, view, sets)
        failures |= reasons
        for layer, groups in left.items():
            groups.append(kept.get(layer, {}))
    return Measured(left, failures)


def outcomes(
    task: Task, layers: Mapping[Layer, Features], batch: int = 3, view: View | None = None
) -> dict[Layer, Outcome]:
    """Outcomes of layers, or of the sets of them that a task has, as a run comes to them."""
    backbone = StoredBackbone(SPEC, tuple(layers), None, {})
    if isinstance(task, VectorTask):
        backbone = replace(backbone, vectors=stored(task, layers))
    else:
        if task.memory is not None:
            remembered = measured(task.memory, layers, batch, view)
            task = task.remembering(remembered, remembered.failures)  # type: ignore[assignment]
        sets = task.scored([*layers], SPEC) if task.sets else ()
        found = measured(task, layers, batch, view, sets)  # type: ignore[arg-type]
        backbone = replace(backbone, measured=found, unmeasured=found.failures)
    return {each.layer: each.outcome for each in task.results(backbone).outcomes}


def outcome(task: Task, features: Features, batch: int = 3, view: View | None = None) -> Outcome:
    """The outcome of one layer."""
    return outcomes(task, {LAYER: features}, batch, view)[LAYER]


def by_metric(found: Outcome) -> dict[str, float]:
    """Scores by metric."""
    return {score.metric: score.value for score in found.scores}
