"""Costs of a backbone: forward passes of growing batches, timed at every layer."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import nan
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from layerboard.benchmark.passes.failures import within_memory
from layerboard.tasks.analyses.cost import CostConfig, MeasuredCosts, Timed
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.census import Census, count_up_to
from layerboard.zoo.spec import Layers

# maximum batch size: kernels with 32-bit indices fail beyond some size, and the process with them
LARGEST_BATCH = 4096

NO_LIMIT = "no largest batch: a CPU has no memory of its own that a batch could fill"
NO_WEIGHTS = "no weights were seen: the forward reads no parameters of torch"
NO_OPERATIONS = "no operations were counted: the forward makes no products or convolutions in torch"
NO_WAITING = "no waiting for processors was seen: the system does not tell it, as Linux does"
NO_TENSORS = "no memory was seen: the forward makes no tensors of torch"


def measure_cost(backbone: Backbone, rule: CostConfig, former: MeasuredCosts | None = None) -> MeasuredCosts:
    """Measure what a backbone costs on its device, while nothing else should compute; raises InputError.

    Batches of 1, 2, 4, ... images that are on the device already are shown at the backbone's input size. The
    time of a layer is from the start of a forward pass, normalisation included, until its output exists. On a
    later visit, one image and the best batch are timed once more; everything else is kept.
    """
    spec, layers = backbone.spec, _scored(backbone)
    compiling = _compile(backbone, layers) if backbone.compiled else nan
    begin, waited = perf_counter(), _waited()
    timed = _again(backbone, layers, rule, former) if former else _growing(backbone, layers, rule)
    threads = torch.get_num_threads() if backbone.device.type == "cpu" else 1
    waiting = (_waited() - waited) / (perf_counter() - begin) / threads
    if former:
        return replace(former, timed=timed, waiting=float(np.fmin(former.waiting, waiting)))
    counts = count_up_to(backbone, _pixels(backbone, 1), layers)
    best = max(timed, key=lambda forwards: forwards.rate).batch
    peak = _peak(backbone, _pixels(backbone, best), layers)
    largest, reason = _largest(backbone, layers, timed[-1].batch, rule.seconds)
    weights, operations = counts[layers[-1]]
    reasons = {
        "largest-batch": reason,
        "peak-memory": "" if peak else NO_TENSORS,
        "parameters": "" if weights else NO_WEIGHTS,
        "gflops": "" if operations else NO_OPERATIONS,
        "waiting": "" if waiting >= 0 else NO_WAITING,
    }
    return MeasuredCosts(
        timed,
        {layer: parameters for layer, (parameters, _) in counts.items()},
        {layer: products for layer, (_, products) in counts.items()},
        {layer: spec.stage_of(layer).width for layer in layers},
        peak or None,
        largest,
        {metric: reason for metric, reason in reasons.items() if reason},
        waiting,
        compiling,
    )


def best_batch(backbone: Backbone, rule: CostConfig) -> int:
    """Batch size with the highest throughput on a GPU, found as `measure_cost` finds it.

    Batches grow while more than half of the GPU memory is free: one of twice the size would fill it, and a
    pass keeps more than a forward pass.
    """

    def has_room() -> bool:
        free, whole = torch.cuda.mem_get_info(backbone.device)
        return 2 * free > whole

    layers = _scored(backbone)
    if backbone.compiled:
        _compile(backbone, layers)
    timed = _growing(backbone, layers, rule, has_room)
    return max(timed, key=lambda forwards: forwards.rate).batch


def _scored(backbone: Backbone) -> Layers:
    return tuple(layer for layer in backbone.spec.layers if layer.index > 0)


def _compile(backbone: Backbone, layers: Layers) -> float:
    """Seconds to compile graphs for one image and for any number, so that no timing includes it."""
    begin = perf_counter()
    for batch in (1, 2, 3):
        _forward(backbone, _pixels(backbone, batch), layers)
    return perf_counter() - begin


def _waited() -> float:
    """Seconds that the threads have waited for a processor so far; NaN if the system does not tell."""
    try:
        files = [folder / "schedstat" for folder in Path("/proc/self/task").iterdir()]
        return sum(int(file.read_text().split()[1]) for file in files) / 1e9
    except OSError:
        return nan


def _again(backbone: Backbone, layers: Layers, rule: CostConfig, former: MeasuredCosts) -> tuple[Timed, ...]:
    """The timings of former visits, with more for one image and for the best batch."""
    return tuple(
        each.joined(_timed(backbone, each.batch, layers, rule))
        if each.batch in (1, former.best.batch)
        else each
        for each in former.timed
    )


def _growing(
    backbone: Backbone, layers: Layers, rule: CostConfig, has_room: Callable[[], bool] = lambda: True
) -> tuple[Timed, ...]:
    """Timings of one image, and of doubled batches as long as these are faster, fit and are not too slow."""
    begin = perf_counter()
    timed = [_timed(backbone, 1, layers, rule)]
    limit = min(rule.seconds, rule.images * timed[0].whole)
    while timed[-1].batch < LARGEST_BATCH and has_room():
        expected = 2 * (rule.warm_up + rule.rounds) * timed[-1].whole
        if perf_counter() - begin + expected > limit:
            break
        larger = partial(_timed, backbone, 2 * timed[-1].batch, layers, rule)
        if (forwards := within_memory(backbone.device, larger)) is None:
            break
        timed.append(forwards)
        rates = [each.rate for each in timed]
        if max(rates[-2:]) < rule.gain * max(rates[:-2], default=0):
            break
    return tuple(timed)


def _timed(backbone: Backbone, batch: int, layers: Layers, rule: CostConfig) -> Timed:
    """Timed forward passes of one batch size, after some untimed ones."""
    pixels, begin = _pixels(backbone, batch), perf_counter()
    for _ in range(rule.warm_up):
        _forward(backbone, pixels, layers)
    rounds: list[list[float]] = []
    while len(rounds) < rule.rounds or (
        batch == 1 and len(rounds) < rule.most_rounds and perf_counter() - begin < rule.single_seconds
    ):
        rounds.append(_forward(backbone, pixels, layers))
    return Timed(batch, dict(zip(layers, map(list, zip(*rounds, strict=True)), strict=True)))


def _forward(backbone: Backbone, pixels: Tensor, layers: Layers) -> list[float]:
    """Seconds from the start of a forward pass to each layer."""
    if backbone.device.type != "cuda":
        moments = [perf_counter()]
        backbone.visit(pixels, lambda _: moments.append(perf_counter()), layers)
        return [moment - moments[0] for moment in moments[1:]]
    events: list[torch.cuda.Event] = []

    def mark() -> None:
        events.append(torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]
        events[-1].record(torch.cuda.current_stream(backbone.device))

    mark()
    backbone.visit(pixels, lambda _: mark(), layers)
    events[-1].synchronize()  # the process waits for the GPU once, at the end
    return [events[0].elapsed_time(event) / 1000 for event in events[1:]]


def _pixels(backbone: Backbone, batch: int) -> Tensor:
    """Random noise as images on the device, uint8 [batch 3 side side]."""
    side = backbone.spec.input_size
    seeded = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8, generator=seeded)
    return pixels.to(backbone.device)


def _peak(backbone: Backbone, pixels: Tensor, layers: Layers) -> int:
    """Peak bytes of a forward pass, weights included, from the GPU allocator or the tensors."""
    if backbone.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(backbone.device)
        _forward(backbone, pixels, layers)
        return int(torch.cuda.max_memory_allocated(backbone.device))
    held = Census()
    with held:
        _forward(backbone, pixels, layers)
    return held.peak


def _largest(backbone: Backbone, layers: Layers, batch: int, seconds: float) -> tuple[int | None, str]:
    """The largest power of two that fits into GPU memory, from ``batch`` upwards, or why it is unknown."""
    if backbone.device.type != "cuda":
        return None, NO_LIMIT

    def show(size: int) -> list[float]:
        return _forward(backbone, _pixels(backbone, size), layers)

    begin = perf_counter()
    while batch < LARGEST_BATCH and perf_counter() - begin < seconds:
        if within_memory(backbone.device, partial(show, 2 * batch)) is None:
            return batch, ""
        batch *= 2
    return None, f"{batch} images fit; larger batches were not tried"
