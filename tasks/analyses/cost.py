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
from layerboard.zoo.view.geometry import ViewSize

FLOAT32 = 4  # bytes of a number of a vector


@dataclass(frozen=True, slots=True)
class CostConfig:
    """Settings of the measurement. A batch size that would take too long is not started."""

    warm_up: int  # untimed forward passes of one image for each view size
    rounds: int  # least number of timed forward passes
    single_seconds: float  # for one image, further passes are timed for this long, at all view sizes together
    most_rounds: int  # largest number of timed passes
    gain: float  # batches are doubled until two in a row do not raise the images per second by this factor
    images: int  # too long: more than the time of this many single images
    seconds: float  # too long: more than this
    visits: int  # times that one image and the best batch are timed, with backbones taking turns


@dataclass(frozen=True, slots=True)
class Timed:
    """Timed forward passes with one batch size and view size."""

    batch: int
    seconds: Mapping[Layer, Sequence[float]]  # until the layer is computed, for each forward pass in order

    @property
    def shortest(self) -> dict[Layer, float]:
        """Seconds up to each layer: the sum of the shortest times of its parts, each in whichever pass.

        A part is what is computed between a layer and the one before. Other work disturbs one that takes
        milliseconds in some passes only, but nearly every pass as a whole.
        """
        passes = np.array([*self.seconds.values()], np.float64)  # [layers passes]
        parts = np.diff(passes, axis=0, prepend=0.0).min(axis=1)
        return dict(zip(self.seconds, parts.cumsum().tolist(), strict=True))

    @property
    def passes(self) -> int:
        """Number of forward passes."""
        return len([*self.seconds.values()][-1])

    @property
    def whole(self) -> float:
        """Seconds up to the last layer, without disturbance."""
        return [*self.shortest.values()][-1]

    @property
    def rate(self) -> float:
        """Images a second."""
        return self.batch / self.whole

    @property
    def spread(self) -> float:
        """Relative excess of the lower quartile of passes over the time without disturbance.

        It is small if a quarter of the passes were not disturbed, such as those of one visit of two.
        """
        return float(np.quantile([*self.seconds.values()][-1], 0.25)) / self.whole - 1

    def joined(self, later: "Timed") -> "Timed":
        seconds = {layer: [*first, *later.seconds[layer]] for layer, first in self.seconds.items()}
        return Timed(self.batch, seconds)


@dataclass(frozen=True, slots=True)
class ViewCosts:
    """Measured costs of one image at one view size."""

    timed: Timed
    operations: Mapping[Layer, int]  # floating-point operations up to each layer; 0 if none is found
    tokens: Mapping[Layer, int]  # patch tokens of each layer: vectors of a grid


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """Measured costs of one backbone."""

    views: Mapping[ViewSize, ViewCosts]  # the backbone's own input size first
    batches: tuple[Timed, ...]  # with 1, 2, 4, ... images at its own input size; at least one image
    weights: Mapping[Layer, int]  # parameters used up to each layer; 0 if none is found
    dims: Mapping[Layer, int]  # channels of each layer
    peak: int | None  # peak memory in bytes of a forward pass at the best batch; None if unknown
    largest: int | None  # largest batch, a power of two, that fits into memory; None if unknown
    reasons: Mapping[str, str] = field(default_factory=dict)  # reasons for missing metrics
    waiting: float = nan  # share of the time that threads waited for a CPU, in the least disturbed visit
    compiling: float = nan  # compilation time in seconds; NaN without compilation

    @property
    def best(self) -> Timed:
        """The batch size with the most images per second; ties go to the smaller one."""
        return max(self.batches, key=lambda one: (one.rate, -one.batch))


@dataclass(frozen=True, eq=False)
class CostTask(Task):
    """Cost of a backbone.

    The pooling of its records is the view size: how large an image was shown (`zoo.view.geometry.ViewSize`).
    For the whole backbone: ``images-per-second`` at ``best-batch``, ``largest-batch``, ``latency`` of one
    image in milliseconds, ``peak-memory`` in bytes at the best batch, ``parameters``, ``gflops`` of one
    image; ``compiling`` in seconds, with `--compile`; ``spread``, at each view size, and ``waiting``, in
    percent, show whether other work disturbed the times (`DISTURBED`). Up to each layer: ``ms-batch`` per
    image at the best batch, ``parameters``; for its vector in float32 ``dim`` and ``bytes``; and at each view
    size ``ms`` and ``gflops`` of one image, and ``tokens``, its patch tokens, each a vector of a grid.
    """

    data: None
    config: CostConfig
    configs: ClassVar = {"standard": CostConfig(1, 3, 0.3, 25, gain=1.03, images=40, seconds=20.0, visits=2)}
    needs = "device"
    device: str = field(default="device", kw_only=True)
    split = ""
    coverage = Coverage()

    @property
    def dataset(self) -> str:
        return self.device

    @cached_property
    def fingerprint(self) -> str:
        return digest("cost", 3, self.config)

    def on(self, device: str) -> "CostTask":
        """The task on a device; each device has its own files."""
        return replace(self, device=device)

    def results(self, backbone: MeasurableBackbone) -> Findings:
        costs: MeasuredCosts = backbone.costs(self.config)
        own = next(iter(costs.views))
        outcomes = []
        for size, view in costs.views.items():
            is_own = size == own
            whole = _of_whole(costs, view) if is_own else [_spread(view.timed)]
            outcome = Outcome(tuple(whole), missing=costs.reasons if is_own else {})
            outcomes.append(LayerOutcome(WHOLE_BACKBONE, str(size), outcome))
            for layer in view.timed.seconds:
                scores = tuple(_of_layer(costs, view, layer, is_own))
                outcomes.append(LayerOutcome(layer, str(size), Outcome(scores)))
        return Findings(tuple(outcomes))


def _of_whole(costs: MeasuredCosts, own: ViewCosts) -> Iterator[Score]:
    single, best = own.timed, costs.best
    last = [*single.seconds][-1]
    yield Score("images-per-second", best.rate, best.passes, "forwards")
    yield Score("best-batch", best.batch, len(costs.batches), "batch sizes")
    if costs.largest is not None:
        yield Score("largest-batch", costs.largest, 1, "forwards")
    yield Score("latency", 1000 * single.whole, single.passes, "forwards")
    yield _spread(single, best)
    if not isnan(costs.waiting):
        yield Score("waiting", 100 * costs.waiting, single.passes + best.passes, "forwards")
    if not isnan(costs.compiling):
        yield Score("compiling", costs.compiling, 1, "networks")
    if costs.peak is not None:
        yield Score("peak-memory", costs.peak, 1, "forwards")
    yield from _counts({"parameters": costs.weights[last], "gflops": own.operations[last] / 1e9})


def _spread(*timed: Timed) -> Score:
    most, passes = max(each.spread for each in timed), sum(each.passes for each in timed)
    return Score("spread", 100 * most, passes, "forwards")


def _of_layer(costs: MeasuredCosts, view: ViewCosts, layer: Layer, is_own: bool) -> Iterator[Score]:
    """Costs up to a layer: those of a view, and at the backbone's own size those that it has once."""
    yield Score("ms", 1000 * view.timed.shortest[layer], view.timed.passes, "forwards")
    yield from _counts({"gflops": view.operations[layer] / 1e9})
    yield Score("tokens", view.tokens[layer], 1, "images")
    if not is_own:
        return
    best = costs.best
    yield Score("ms-batch", 1000 * best.shortest[layer] / best.batch, best.passes, "forwards")
    yield from _counts({"parameters": costs.weights[layer]})
    yield Score("dim", costs.dims[layer], 1, "vectors")
    yield Score("bytes", FLOAT32 * costs.dims[layer], 1, "vectors")


def _counts(counts: Mapping[str, float]) -> Iterator[Score]:
    """Counts of one forward pass; those of which it found none are left out."""
    for metric, count in counts.items():
        if count:
            yield Score(metric, count, 1, "forwards")
