"""Costs of a backbone: forward passes of growing batches, timed at every layer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import nan
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from layerboard.benchmark.passes.failures import within_memory
from layerboard.tasks.analyses.cost import CostConfig, MeasuredCosts, Timed, ViewCosts
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.census import Census, count_up_to
from layerboard.zoo.spec import Layer, Layers
from layerboard.zoo.view.geometry import ViewSize

Counts = Mapping[Layer, tuple[int, int]]
"""Weights and operations up to each layer."""

# maximum batch size: kernels with 32-bit indices fail beyond some size, and the process with them
LARGEST_BATCH = 4096

NO_LIMIT = "no largest batch: a CPU has no memory of its own that a batch could fill"
NO_WEIGHTS = "no weights were seen: the forward reads no parameters of torch"
NO_OPERATIONS = "no operations were counted: the forward makes no products or convolutions in torch"
NO_WAITING = "no waiting for processors was seen: the system does not tell it, as Linux does"
NO_TENSORS = "no memory was seen: the forward makes no tensors of torch"


def measure_cost(
    backbone: Backbone, rule: CostConfig, sizes: Sequence[ViewSize] = (), former: MeasuredCosts | None = None
) -> MeasuredCosts:
    """Measure what a backbone costs on its device, while nothing else should compute; raises InputError.

    Images are on the device already. One image is shown at the backbone's input size and at ``sizes``, in
    turn; a size that it cannot take, or that does not fit into memory while its operations are counted, is
    left out. Batches of 2, 4, ... images are shown at its input size. The time of a layer is from the start
    of a forward pass, normalisation included, until its output exists. On a later visit, one image at each
    size and the best batch are timed once more; everything else is kept.
    """
    clock = Stopwatch(backbone, rule)
    spec, layers, own = backbone.spec, clock.layers, clock.own_size
    compiling = clock.compile() if backbone.compiled else nan
    counts = {} if former else clock.counts([own, *sizes])
    sizes = [*(former.views if former else counts)]
    begin, waited = perf_counter(), _waited()
    single = clock.in_turns(sizes)
    batches = clock.again(former, single[own]) if former else clock.growing(single[own])
    threads = torch.get_num_threads() if backbone.device.type == "cpu" else 1
    waiting = (_waited() - waited) / (perf_counter() - begin) / threads
    if former:
        views = {
            size: replace(view, timed=view.timed.joined(single[size])) for size, view in former.views.items()
        }
        waiting = float(np.fmin(former.waiting, waiting))
        return replace(former, views=views, batches=batches, waiting=waiting)
    views = {
        size: ViewCosts(
            single[size],
            {layer: products for layer, (_, products) in counts[size].items()},
            {layer: size.cells(spec.stage_of(layer).stride) for layer in layers},
        )
        for size in sizes
    }
    peak = clock.peak(max(batches, key=lambda forwards: forwards.rate).batch)
    largest, reason = clock.largest(batches[-1].batch)
    weights, operations = counts[own][layers[-1]]
    reasons = {
        "largest-batch": reason,
        "peak-memory": "" if peak else NO_TENSORS,
        "parameters": "" if weights else NO_WEIGHTS,
        "gflops": "" if operations else NO_OPERATIONS,
        "waiting": "" if waiting >= 0 else NO_WAITING,
    }
    return MeasuredCosts(
        views,
        batches,
        {layer: parameters for layer, (parameters, _) in counts[own].items()},
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

    clock = Stopwatch(backbone, rule)
    if backbone.compiled:
        clock.compile()
    own = clock.own_size
    timed = clock.growing(clock.in_turns([own])[own], has_room)
    return max(timed, key=lambda forwards: forwards.rate).batch


@dataclass(frozen=True)
class Stopwatch:
    """Shows a backbone batches of images at a size, by default its own, and times its scored layers."""

    backbone: Backbone
    rule: CostConfig

    @property
    def own_size(self) -> ViewSize:
        return ViewSize(self.backbone.spec.input_size, self.backbone.spec.input_size)

    @cached_property
    def layers(self) -> Layers:
        return tuple(layer for layer in self.backbone.spec.layers if layer.index > 0)

    def pixels(self, batch: int, size: ViewSize | None = None) -> Tensor:
        """Random noise as images on the device, uint8 [batch * tiles 3 height width]."""
        size, device = size or self.own_size, self.backbone.device
        width, height = size.shown
        seeded = torch.Generator(device).manual_seed(0)
        shape = batch * size.tiles, 3, height, width
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=seeded, device=device)

    def forward(self, pixels: Tensor) -> list[float]:
        """Seconds from the start of a forward pass to each layer."""
        backbone, layers = self.backbone, self.layers
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

    def compile(self) -> float:
        """Seconds to compile graphs for one image and for any number, so that no timing includes it."""
        begin = perf_counter()
        for batch in (1, 2, 3):
            self.forward(self.pixels(batch))
        return perf_counter() - begin

    def counts(self, sizes: Sequence[ViewSize]) -> dict[ViewSize, Counts]:
        """Weights and operations up to each layer for one image, at those sizes at which it can be shown.

        The first size, its own, must be possible: otherwise the error is raised.
        """
        alike: dict[object, Counts | None] = {}  # no image of that many pixels can be shown if None
        for size in sizes:
            if _pixels_of(size) not in alike:
                count = partial(count_up_to, self.backbone, self.pixels(1, size), self.layers)
                try:
                    alike[_pixels_of(size)] = within_memory(self.backbone.device, count) if alike else count()
                except InputError:
                    if not alike:
                        raise
                    alike[_pixels_of(size)] = None
        return {size: counted for size in sizes if (counted := alike[_pixels_of(size)]) is not None}

    def again(self, former: MeasuredCosts, single: Timed) -> tuple[Timed, ...]:
        """The timings of batches on former visits, with more for one image and for the best batch."""
        best, first = former.best.batch, former.batches[0].joined(single)
        return first, *(
            each.joined(self.timed(each.batch)) if each.batch == best else each for each in former.batches[1:]
        )

    def growing(self, single: Timed, has_room: Callable[[], bool] = lambda: True) -> tuple[Timed, ...]:
        """Timings of one image, and of doubled batches while these are faster, fit and are not too slow."""
        begin, timed, rule = perf_counter(), [single], self.rule
        limit = min(rule.seconds, rule.images * single.whole)
        while timed[-1].batch < LARGEST_BATCH and has_room():
            expected = 2 * rule.rounds * timed[-1].whole
            if perf_counter() - begin + expected > limit:
                break
            if (
                forwards := within_memory(self.backbone.device, partial(self.timed, 2 * timed[-1].batch))
            ) is None:
                break
            timed.append(forwards)
            rates = [each.rate for each in timed]
            if max(rates[-2:]) < rule.gain * max(rates[:-2], default=0):
                break
        return tuple(timed)

    def in_turns(self, sizes: Sequence[ViewSize]) -> dict[ViewSize, Timed]:
        """Timed forward passes of one image, at all sizes in turn: other work disturbs none of them alone.

        Sizes that are cut into as many tiles of one side are the same pixels, and timed once.
        """
        rule, pixels = self.rule, {_pixels_of(size): self.pixels(1, size) for size in sizes}
        begin, rounds = perf_counter(), list[dict[object, list[float]]]()
        for shown in pixels.values():
            for _ in range(rule.warm_up):
                self.forward(shown)
        for number in range(rule.most_rounds):
            limit = rule.seconds if number < rule.rounds else rule.single_seconds
            if rounds and perf_counter() - begin >= limit:
                break
            rounds.append({each: self.forward(shown) for each, shown in pixels.items()})
        return {size: self._passes(1, [each[_pixels_of(size)] for each in rounds]) for size in sizes}

    def timed(self, batch: int) -> Timed:
        """Timed forward passes of one batch size.

        Passes of one image have warmed up; a first pass that is slow counts no more than a disturbed one.
        """
        pixels = self.pixels(batch)
        return self._passes(batch, [self.forward(pixels) for _ in range(self.rule.rounds)])

    def _passes(self, batch: int, rounds: Sequence[list[float]]) -> Timed:
        return Timed(batch, dict(zip(self.layers, map(list, zip(*rounds, strict=True)), strict=True)))

    def peak(self, batch: int) -> int:
        """Peak bytes of a forward pass, weights included, from the GPU allocator or the tensors."""
        pixels, device = self.pixels(batch), self.backbone.device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self.forward(pixels)
            return int(torch.cuda.max_memory_allocated(device))
        held = Census()
        with held:
            self.forward(pixels)
        return held.peak

    def largest(self, batch: int) -> tuple[int | None, str]:
        """The largest power of two that fits into GPU memory, from ``batch`` on, or why there is none."""
        if self.backbone.device.type != "cuda":
            return None, NO_LIMIT

        def show(size: int) -> list[float]:
            return self.forward(self.pixels(size))

        begin = perf_counter()
        while batch < LARGEST_BATCH and perf_counter() - begin < self.rule.seconds:
            if within_memory(self.backbone.device, partial(show, 2 * batch)) is None:
                return batch, ""
            batch *= 2
        return None, f"{batch} images fit; larger batches were not tried"


def _pixels_of(size: ViewSize) -> object:
    """What sizes share whose images are as many pixels in as many tiles, so that they cost the same."""
    return size.tiles, size.shown


def _waited() -> float:
    """Seconds that the threads have waited for a processor so far; NaN if the system does not tell."""
    try:
        files = [folder / "schedstat" for folder in Path("/proc/self/task").iterdir()]
        return sum(int(file.read_text().split()[1]) for file in files) / 1e9
    except OSError:
        return nan
