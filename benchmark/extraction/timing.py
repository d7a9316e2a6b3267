"""The cost of a backbone, measured: forwards of growing batches, timed at every layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import torch
from torch import Tensor

from benchmark.extraction.failures import free_unused, is_out_of_memory
from tasks.analyses.cost import CostRule, Costs, Timed
from zoo.features import Backbone
from zoo.features.census import BytesHeld, count_up_to
from zoo.spec import Layer

LARGEST_BATCH = 4096
"""No larger batch is tried: kernels that count in 32 bits fail beyond some, and the process with them."""

NO_LIMIT = "no largest batch: a CPU has no memory of its own that a batch could fill"
NO_WEIGHTS = "no weights were seen: the forward reads no parameters of torch"
NO_OPERATIONS = "no operations were counted: the forward makes no products or convolutions in torch"
NO_TENSORS = "no memory was seen: the forward makes no tensors of torch"


class _Stamps(Protocol):
    """Marks moments of a forward."""

    def mark(self) -> None:
        """Now."""
        ...

    def seconds(self) -> list[float]:
        """From the first moment to each of the others."""
        ...


class _HostStamps:
    """Moments of this process, which computes itself."""

    def __init__(self) -> None:
        self._moments: list[float] = []

    def mark(self) -> None:
        self._moments.append(perf_counter())

    def seconds(self) -> list[float]:
        return [moment - self._moments[0] for moment in self._moments[1:]]


class _CudaStamps:
    """Moments of a graphics card; the process waits for it once, at the end."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._events: list[torch.cuda.Event] = []

    def mark(self) -> None:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        self._events.append(event)

    def seconds(self) -> list[float]:
        self._events[-1].synchronize()
        return [self._events[0].elapsed_time(event) / 1000 for event in self._events[1:]]


def measure_cost(backbone: Backbone, rule: CostRule) -> Costs:
    """Measure what a backbone costs on its device, while nothing else should compute.

    Batches of 1, 2, 4, ... images that lie on the device already are shown at the backbone's input size; the
    time of a layer is from the start of a forward, normalisation included, to the moment when it is there.

    Raises:
        InputError: The backbone shows something else than its spec says.
    """
    spec = backbone.spec
    layers = tuple(layer for layer in spec.layers if layer.index > 0)
    counts = count_up_to(backbone, _pixels(backbone, 1), layers)
    timed = _growing(backbone, layers, rule)
    best = max(timed, key=lambda one: one.rate).batch
    peak = _peak(backbone, _pixels(backbone, best), layers)
    fits = _largest(backbone, layers, timed[-1].batch, rule.seconds)
    reasons = {"largest-batch": fits.reason, "peak-memory": "" if peak else NO_TENSORS}
    weights, operations = counts[layers[-1]]
    reasons |= {"parameters": "" if weights else NO_WEIGHTS, "gflops": "" if operations else NO_OPERATIONS}
    return Costs(
        timed,
        {layer: found for layer, (found, _) in counts.items()},
        {layer: found for layer, (_, found) in counts.items()},
        {layer: spec.stage_of(layer).width for layer in layers},
        peak or None,
        fits.batch,
        {metric: reason for metric, reason in reasons.items() if reason},
    )


def _growing(backbone: Backbone, layers: Sequence[Layer], rule: CostRule) -> tuple[Timed, ...]:
    """Forwards of one image, and of doubled batches as long as that pays, fits and does not take too long."""
    begin = perf_counter()
    found = [_timed(backbone, 1, layers, rule)]
    limit = min(rule.seconds, rule.images * found[0].whole)
    while found[-1].batch < LARGEST_BATCH:
        forwards = rule.warm_up + rule.rounds
        expected = 2 * forwards * found[-1].whole
        if perf_counter() - begin + expected > limit:
            break
        try:
            found.append(_timed(backbone, 2 * found[-1].batch, layers, rule))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            free_unused(backbone.device)
            break
        if found[-1].rate < rule.gain * found[-2].rate:
            break
    return tuple(found)


def _timed(backbone: Backbone, batch: int, layers: Sequence[Layer], rule: CostRule) -> Timed:
    """Timed forwards of one batch size, after some that are not."""
    pixels, begin = _pixels(backbone, batch), perf_counter()
    for _ in range(rule.warm_up):
        _forward(backbone, pixels, layers)
    rounds: list[list[float]] = []
    while len(rounds) < rule.rounds or (
        batch == 1 and len(rounds) < rule.most_rounds and perf_counter() - begin < rule.single_seconds
    ):
        rounds.append(_forward(backbone, pixels, layers))
    return Timed(batch, {layer: [one[place] for one in rounds] for place, layer in enumerate(layers)})


def _forward(backbone: Backbone, pixels: Tensor, layers: Sequence[Layer]) -> list[float]:
    """Seconds from the start of a forward to each layer."""
    on_card = backbone.device.type == "cuda"
    stamps: _Stamps = _CudaStamps(backbone.device) if on_card else _HostStamps()
    stamps.mark()
    backbone.visit(pixels, lambda _: stamps.mark(), layers)
    return stamps.seconds()


def _pixels(backbone: Backbone, batch: int) -> Tensor:
    """Noise as images on the device, uint8 [batch 3 side side]."""
    side = backbone.spec.input_size
    seeded = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8, generator=seeded)
    return pixels.to(backbone.device)


def _peak(backbone: Backbone, pixels: Tensor, layers: Sequence[Layer]) -> int:
    """Most bytes at once of a forward, weights included, as the card's allocator or the tensors tell."""
    if backbone.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(backbone.device)
        _forward(backbone, pixels, layers)
        return int(torch.cuda.max_memory_allocated(backbone.device))
    held = BytesHeld()
    with held:
        _forward(backbone, pixels, layers)
    return held.peak


@dataclass(frozen=True, slots=True)
class _Fits:
    """The largest batch that fits, or why it is not known."""

    batch: int | None
    reason: str = ""


def _largest(backbone: Backbone, layers: Sequence[Layer], batch: int, seconds: float) -> _Fits:
    """The last power of two that fits into a card's memory, from one on that does."""
    if backbone.device.type != "cuda":
        return _Fits(None, NO_LIMIT)
    begin = perf_counter()
    while batch < LARGEST_BATCH and perf_counter() - begin < seconds:
        try:
            _forward(backbone, _pixels(backbone, 2 * batch), layers)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            free_unused(backbone.device)
            return _Fits(batch)
        batch *= 2
    return _Fits(None, f"{batch} images fit; larger batches were not tried")
