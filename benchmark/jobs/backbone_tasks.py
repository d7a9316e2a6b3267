"""Tasks on one loaded backbone, without a pass: gradients of a few images, its weights, and its costs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.jobs.job import ScoreJob, Setup
from layerboard.benchmark.jobs.passes import BackboneCache
from layerboard.benchmark.jobs.scores import write_findings
from layerboard.benchmark.passes.failures import Failure, noting, within_memory
from layerboard.benchmark.passes.loading import Batch, Event, Loader, Unreadable
from layerboard.benchmark.passes.one_pass import PassResult
from layerboard.benchmark.passes.timing import measure_cost
from layerboard.benchmark.plan.plan import view_for
from layerboard.tasks.analyses.cost import CostConfig, MeasuredCosts
from layerboard.tasks.framework.base import Source
from layerboard.tasks.framework.checks import nothing_read
from layerboard.tasks.framework.stored import Fields
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import Channels, ReceptiveField, Weights
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.geometry import ViewSize

KEPT_WEIGHTS = 1 << 22  # maximum number of weights of a backbone that stays in memory until its next visit


def run_backbone_tasks(jobs: Sequence[ScoreJob], cache: BackboneCache, report: Reporter) -> PassResult:
    """Run the tasks on one backbone, which is loaded when it is first needed, and write their results."""
    asked, failures = list[LoadedBackbone](), list[Failure]()
    for job in jobs:
        begin, task = perf_counter(), job.task
        with noting(failures, job.setup.spec.name, task):
            asked.append(LoadedBackbone(cache.backbone(), job.setup, report))
            write_findings(job, task.results(asked[-1]), len(asked[-1].sums.unreadable), begin)
    sums = [backbone.sums for backbone in asked]
    unreadable = tuple(line for each in sums for line in each.unreadable)
    return PassResult(sum(each.images for each in sums), unreadable, tuple(failures))


def measure_costs(jobs: Sequence[ScoreJob], report: Reporter) -> PassResult:
    """Measure and write the costs of all backbones in turn, in several visits; returns the failures."""
    visits = [(number, job) for job in jobs for number in range(job.task.config.visits)]
    failures, measured = list[Failure](), dict[str, MeasuredCosts | None]()
    loaded = dict[str, BackboneCache]()  # of small backbones
    if visits:
        with report.bar("measuring cost", len(visits), "visits") as advance:
            for number, job in sorted(visits, key=lambda visit: visit[0]):
                name, begin = job.setup.spec.name, perf_counter()
                if number == 0 or name in measured:
                    with noting(failures, name, job.task):
                        backbones = loaded.get(name) or BackboneCache(job.setup)
                        if (job.setup.spec.parameters or inf) <= KEPT_WEIGHTS:
                            loaded[name] = backbones
                        backbone = backbones.backbone()
                        sizes, former = job.view_sizes, measured.get(name)
                        asked = LoadedBackbone(backbone, job.setup, report, sizes=sizes, measured=former)
                        write_findings(job, job.task.results(asked), 0, begin)
                        measured[name] = asked.measured
                advance(1)
    return PassResult(failures=tuple(failures))


@dataclass
class FieldSums:
    """Receptive fields, summed over images."""

    strength: dict[Layer, NDArray[np.float64]] = field(default_factory=dict)  # [height width] of each layer
    cells: dict[Layer, tuple[int, int]] = field(default_factory=dict)  # rows and columns of each layer's grid
    size: tuple[int, int] = (0, 0)  # height and width of the images in pixels
    images: int = 0  # images in the sums
    unreadable: list[str] = field(default_factory=list)  # why other images were left out

    def add(self, pixels: Tensor, fields: Iterable[ReceptiveField]) -> None:
        """Add the fields of images [images 3 height width]."""
        self.images += len(pixels)
        self.size = (pixels.shape[2], pixels.shape[3])
        for each in fields:
            strength = each.strength.detach().cpu().double().numpy()
            self.strength[each.layer] = self.strength.get(each.layer, 0.0) + strength
            self.cells[each.layer] = each.cells


@dataclass
class LoadedBackbone:
    """A loaded backbone that a task measures apart from the passes: a `tasks.stored.MeasurableBackbone`."""

    backbone: Backbone
    setup: Setup
    report: Reporter  # hears of images that are processed
    sums: FieldSums = field(default_factory=FieldSums)  # sums over images; empty before fields are asked for
    sizes: tuple[ViewSize, ...] = ()  # of an image that are timed, its own first
    measured: MeasuredCosts | None = None  # costs, as far as they were measured

    @property
    def spec(self) -> BackboneSpec:
        return self.backbone.spec

    def weights(self) -> Weights:
        return self.backbone.weights()

    def costs(self, config: CostConfig) -> MeasuredCosts:
        self.measured = measure_cost(self.backbone, config, self.sizes, self.measured)
        return self.measured

    def fields(
        self,
        task: str,
        source: Source,
        layers: Callable[[Sequence[Layer]], Sequence[Layer]],
        channels: Callable[[int], Sequence[int]],
    ) -> Fields:
        spec, request, backbone = self.setup.spec, self.setup.request, self.backbone
        wanted = [layer for layer in layers(self.setup.layers) if spec.has(layer)]
        if reason := backbone.fields_refusal():  # for the whole backbone, reported for each block
            refused = {layer: reason for layer in wanted if layer.tap == "block"}
        else:
            refused = {layer: reason for layer in wanted if (reason := backbone.refusal([layer]))}
            asked = [layer for layer in wanted if layer not in refused]
            source = replace(source, view=view_for(spec, source.view))
            size = request.batch_on(backbone.device.type)
            shards, loader = range(source.shards), Loader(request.workers)
            events = loader.batches(source, shards, size, spec.input_size)
            # backward passes take nearly all of the time: one for each channel of each layer
            each = max((len(channels(spec.stage_of(layer).width)) for layer in asked), default=1)
            title, total = f"{spec.name}  {task}", len(source.samples) * each
            with self.report.bar(title, total, "gradients") as advance:
                self.sums = sum_fields(
                    events, size, backbone, asked, channels, lambda images: advance(each * images)
                )
            if not self.sums.images:
                raise nothing_read(source)
        height, width = self.sums.size
        coarsest = height // spec.patch_size, width // spec.patch_size
        return Fields(self.sums.strength, self.sums.cells, coarsest, self.sums.images, refused)


class _Part:
    """Tells how far a batch of images is, in images; what did not fit into memory is taken back."""

    def __init__(self, advance: Callable[[float], object], images: int) -> None:
        self._advance, self._images, self.done = advance, images, 0.0

    def share(self, share: float) -> None:
        self.done += share
        self._advance(share * self._images)


def sum_fields(
    events: Iterable[Event],
    batch_size: int,
    backbone: Backbone,
    layers: Sequence[Layer],
    channels: Channels,
    advance: Callable[[float], object],
) -> FieldSums:
    """Show images to a backbone that gives gradients, each once, and sum the fields of layers.

    At most ``batch_size`` images are shown together. A batch whose gradients do not fit into memory is
    halved, and so are those after it, down to one image; then InputError is raised. ``advance`` is called
    with images, or parts of these.
    """
    sums = FieldSums()
    for event in events:
        if isinstance(event, Unreadable):
            sums.unreadable.append(event.reason)
            advance(1)
        waiting = [event.pixels] if isinstance(event, Batch) else []
        while waiting:
            pixels, *waiting = (*torch.split(waiting[0], batch_size), *waiting[1:])
            part = _Part(advance, len(pixels))
            show = partial(backbone.receptive_fields, pixels, layers, channels, part.share)
            if (fields := within_memory(backbone.device, show)) is not None:
                sums.add(pixels, fields)
                part.share(1 - part.done)
            elif len(pixels) > 1:
                part.share(-part.done)
                batch_size, waiting = len(pixels) // 2, [pixels, *waiting]
            else:
                raise InputError(
                    f"the gradients of one image do not fit into the memory of {backbone.device} beside "
                    f"{backbone.spec.name}; take a smaller --input-size, fewer --workers, or another --device"
                )
    return sums
