"""Cost of a backbone on a device: time, memory, weights and operations, up to each depth and as a whole.

Sources: Dosovitskiy et al., ICLR 2021, appendix D.5 (images per second at the best batch, largest batch that
fits). Operations up to a depth are those of a backbone that is truncated there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isnan, nan
from typing import ClassVar

import numpy as np

from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.framework.base import Findings, LayerOutcome, Outcome, Score, digest
from layerboard.tasks.framework.stored import MeasurableBackbone
from layerboard.tasks.framework.task import Task
from layerboard.zoo.spec import WHOLE_BACKBONE, Layer

FLOAT32 = 4  # bytes of a number of a vector


@dataclass(frozen=True, slots=True)
class CostConfig:
    """Settings of the measurement. A batch size that would take too long is not started."""

    warm_up: int  # untimed forward passes for each batch size
    rounds: int  # least number of timed forward passes
    single_seconds: float  # for one image, further passes are timed for this long
    most_rounds: int  # largest number of timed passes
    gain: float  # batches are doubled until two in a row do not raise the images per second by this factor
    images: int  # too long: more than the time of this many single images
    seconds: float  # too long: more than this
    visits: int  # times that one image and the best batch are timed, with backbones taking turns


@dataclass(frozen=True, slots=True)
class Timed:
    """Timed forward passes with one batch size."""

    batch: int
    seconds: Mapping[Layer, Sequence[float]]  # until the layer is computed, for each forward pass in order

    @property
    def whole(self) -> float:
        """Seconds of the fastest forward pass up to its last layer."""
        return min([*self.seconds.values()][-1])

    @property
    def rate(self) -> float:
        """Images a second."""
        return self.batch / self.whole

    @property
    def spread(self) -> float:
        """Relative excess of the lower quartile over the fastest pass: near 0 without disturbance."""
        return float(np.quantile([*self.seconds.values()][-1], 0.25)) / self.whole - 1

    def joined(self, later: "Timed") -> "Timed":
        return Timed(
            self.batch, {layer: [*first, *later.seconds[layer]] for layer, first in self.seconds.items()}
        )


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """Measured costs of one backbone."""

    timed: tuple[Timed, ...]  # with batches of 1, 2, 4, ... images; at least one image
    weights: Mapping[Layer, int]  # parameters used up to each layer; 0 if none is found
    operations: Mapping[Layer, int]  # floating-point operations up to each layer, for one image
    dims: Mapping[Layer, int]  # channels of each layer
    peak: int | None  # peak memory in bytes of a forward pass at the best batch; None if unknown
    largest: int | None  # largest batch, a power of two, that fits into memory; None if unknown
    reasons: Mapping[str, str] = field(default_factory=dict)  # reasons for missing metrics
    waiting: float = nan  # share of the time that threads waited for a CPU, in the least disturbed visit
    compiling: float = nan  # compilation time in seconds; NaN without compilation

    @property
    def best(self) -> Timed:
        """The batch size with the most images per second; ties go to the smaller one."""
        return max(self.timed, key=lambda one: (one.rate, -one.batch))


@dataclass(frozen=True, eq=False)
class CostTask(Task):
    """Cost of a backbone.

    For the whole backbone: ``images-per-second`` at ``best-batch``, ``largest-batch``, ``latency`` of one
    image in milliseconds, ``peak-memory`` in bytes at the best batch, ``parameters``, ``gflops`` of one
    image; ``compiling`` in seconds, with `--compile`; ``spread`` and ``waiting``, in percent, show whether
    other work disturbed the times (`DISTURBED`). Up to each layer: ``ms`` of one image, ``ms-batch`` per
    image at the best batch, ``parameters``, ``gflops``; for its vector in float32 ``dim`` and ``bytes``.
    """

    data: None
    config: CostConfig
    configs: ClassVar = {"standard": CostConfig(2, 5, 0.2, 50, gain=1.03, images=250, seconds=20.0, visits=2)}
    needs = "device"
    device: str = field(default="device", kw_only=True)
    split = ""
    coverage = Coverage(())

    @property
    def dataset(self) -> str:
        return self.device

    @cached_property
    def fingerprint(self) -> str:
        return digest("cost", 2, self.config)

    def on(self, device: str) -> "CostTask":
        """The task on a device; each device has its own files."""
        return replace(self, device=device)

    def results(self, backbone: MeasurableBackbone) -> Findings:
        costs: MeasuredCosts = backbone.costs(self.config)
        layers = tuple(costs.timed[0].seconds)
        whole = Outcome(tuple(_of_whole(costs, layers[-1])), missing=costs.reasons)
        outcomes = [LayerOutcome(layer, "image", Outcome(tuple(_up_to(costs, layer)))) for layer in layers]
        return Findings((LayerOutcome(WHOLE_BACKBONE, "image", whole), *outcomes))


def _of_whole(costs: MeasuredCosts, last: Layer) -> Iterator[Score]:
    single, best = costs.timed[0], costs.best
    yield Score("images-per-second", best.rate, len(best.seconds[last]), "forwards")
    yield Score("best-batch", best.batch, len(costs.timed), "batch sizes")
    if costs.largest is not None:
        yield Score("largest-batch", costs.largest, 1, "forwards")
    yield Score("latency", 1000 * single.whole, len(single.seconds[last]), "forwards")
    forwards = len(single.seconds[last]) + len(best.seconds[last])
    yield Score("spread", 100 * max(single.spread, best.spread), forwards, "forwards")
    if not isnan(costs.waiting):
        yield Score("waiting", 100 * costs.waiting, forwards, "forwards")
    if not isnan(costs.compiling):
        yield Score("compiling", costs.compiling, 1, "networks")
    if costs.peak is not None:
        yield Score("peak-memory", costs.peak, 1, "forwards")
    yield from _counts(costs, last)


def _up_to(costs: MeasuredCosts, layer: Layer) -> Iterator[Score]:
    for name, timed in (("ms", costs.timed[0]), ("ms-batch", costs.best)):
        seconds = timed.seconds[layer]
        yield Score(name, 1000 * min(seconds) / timed.batch, len(seconds), "forwards")
    yield from _counts(costs, layer)
    yield Score("dim", costs.dims[layer], 1, "vectors")
    yield Score("bytes", FLOAT32 * costs.dims[layer], 1, "vectors")


def _counts(costs: MeasuredCosts, layer: Layer) -> Iterator[Score]:
    if costs.weights[layer]:
        yield Score("parameters", costs.weights[layer], 1, "forwards")
    if costs.operations[layer]:
        yield Score("gflops", costs.operations[layer] / 1e9, 1, "forwards")
