"""A pass that keeps every layer, or measures attention, against the bare forward pass of the same model."""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import torch

from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.passes.collectors import Collector, MeasuredCollector, VectorCollector
from layerboard.benchmark.passes.loading import Loader
from layerboard.benchmark.passes.one_pass import Listener, run_pass
from layerboard.benchmark.passes.shards import Shards
from layerboard.tasks.analyses.attention import AttentionDistance, AttentionShares
from layerboard.tasks.analyses.attention_maps import AttentionMapsTask
from layerboard.tasks.analyses.saliency import IMAGES_PER_GROUP, SaliencyTask
from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.coco import CocoRegion, RegionImage, Regions
from layerboard.tasks.framework.base import Group, Source
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.framework.sources import IMAGES
from layerboard.tasks.framework.task import Measurable
from layerboard.tasks.similarity.cka import CkaTask
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.census import Census
from layerboard.zoo.spec import Dtype, Layer
from workshop.perf.measuring import Budget, Rounds, Row, Setting, take_turns
from workshop.perf.networks import SIDE, SIZES, noise, nothings, one_batch, random_network, show_batch

GRAM_BATCH = 256  # batch size of CKA


def pass_rows(setting: Setting) -> Iterator[Row]:
    """A pass that keeps the vectors of all layers, and forward passes per image."""
    size, batch = ("ViT-S/16", 2) if setting.quick else ("ViT-B/16", setting.batch)
    backbone, pixels = random_network(size, setting), noise(batch, setting)
    what = f"pass that keeps every layer's vectors, over the bare forward ({size}, batch {batch})"
    yield beside_bare(backbone, pixels, setting).row(what, ("pass", "bare"), Budget(1.05))
    times, note = forwards(backbone, pixels), f"{len(backbone.spec.layers)} layers"
    yield Row("forwards an image, for all layers", times, budget=Budget(1), note=note)
    yield whole_pass_row(backbone, pixels, setting, f"{size}, {SHOWN_BATCHES} batches of {batch}")


SHOWN_BATCHES = 8


def whole_pass_row(backbone: Backbone, pixels: torch.Tensor, setting: Setting, size: str) -> Row:
    """A pass as `run_pass` makes it, from images in memory to files, over as many bare forward passes.

    Every batch is a shard, so that each is written while the next is shown.
    """
    images = {FileSample(f"image {number}", ""): each.cpu()[None] for number, each in enumerate(pixels)}
    groups = tuple(Group(f"batch {number}", tuple(images)) for number in range(SHOWN_BATCHES))
    source = replace(one_batch(0).probe, groups=groups)
    loader = Loader(4, lambda sample, _: (images[sample], (SIDE, SIDE)))  # type: ignore[index]

    def show_all() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = Shards(Path(folder), len(groups))
            collector = vectors_of(backbone, source)
            listener = Listener("vectors", collector, store, {*store.missing})
            run_pass(source, [listener], backbone, len(pixels), loader, Silent())

    def show_bare() -> None:
        for _ in groups:
            show_batch(backbone, pixels)

    rounds = take_turns(setting, {"bare": show_bare, "pass": show_all}, 0.5)
    what = f"a whole pass, from images in memory to files of all layers, over bare forwards ({size})"
    return rounds.row(what, ("pass", "bare"), Budget(1.11))


def gram_rows(setting: Setting) -> Iterator[Row]:
    """The pass that also computes CKA's Gram matrices of all patch tokens."""
    size, batch = ("ViT-S/16", 4) if setting.quick else ("ViT-B/16", GRAM_BATCH)
    rounds = beside_bare(random_network(size, setting), noise(batch, setting), setting, 0.5, grams)
    what = f"the same with CKA's patch Grams, over the bare forward ({size}, batch {batch})"
    yield rounds.row(what, ("pass", "bare"), Budget(1.10))


def beside_bare(
    backbone: Backbone,
    pixels: torch.Tensor,
    setting: Setting,
    times: float = 1,
    *further: Callable[[Backbone, int], Collector],
) -> Rounds:
    """A pass with every layer's vectors and ``further`` collectors, in turn with the bare forward pass."""

    def show_all() -> None:
        show_batch(
            backbone, pixels, [collector(backbone, len(pixels)) for collector in (vector_collector, *further)]
        )

    return take_turns(setting, {"bare": lambda: show_batch(backbone, pixels), "pass": show_all}, times)


def vector_collector(backbone: Backbone, count: int) -> Collector:
    """`vectors_of` one batch of ``count`` images."""
    return vectors_of(backbone, one_batch(count).probe)


def vectors_of(backbone: Backbone, source: Source) -> Collector:
    """The collector of class token and mean of all layers, for a source."""
    layers, poolings = frozenset(backbone.spec.layers), backbone.spec.poolings_of(("cls", "mean"))
    return VectorCollector(source, layers, poolings, torch.float32)


def grams(backbone: Backbone, count: int) -> Collector:
    """The collector of the Gram matrices of all blocks' patch tokens."""
    return _measured(CkaTask(one_batch(count), config_of(STANDARD, "cka")), backbone)


def _measured(task: Measurable, backbone: Backbone) -> Collector:
    """The collector that feeds a task the layers that it measures, but not the input of the first block."""
    view = STANDARD.config_for(IMAGES).view.scaled(SIDE, backbone.spec.patch_size)
    layers = [layer for layer in backbone.spec.layers if layer.index]
    return MeasuredCollector(task, replace(task.source, view=view), task.feed.layers(layers, backbone.spec))


def forwards(backbone: Backbone, pixels: torch.Tensor) -> int:
    """Number of runs of the last block while every layer of a batch is shown."""
    layers: list[Layer] = []
    backbone.visit(pixels, lambda features: layers.append(features.layer), None)
    return layers.count(Layer(backbone.spec.depth))


# On a GPU; a CPU is measured in the dtype of the setting alone.
DTYPES = get_args(Dtype)


def throughput_rows(setting: Setting) -> Iterator[Row]:
    """The cost of keeping every layer's vectors for each network, and its throughput in images per second."""
    for dtype in DTYPES if setting.card else (setting.dtype,):
        for name in ["ViT-S/16"] if setting.quick else [*SIZES, "ResNet-50"]:
            cast, batch = replace(setting, dtype=dtype), 2 if setting.quick else setting.batch
            rounds = beside_bare(random_network(name, cast), noise(batch, cast), cast)
            bare, kept = (1000 * batch / rounds.milliseconds(candidate) for candidate in ("bare", "pass"))
            what = f"{name}, {dtype}, batch {batch}"
            yield Row(
                f"{what}: every layer's vectors kept, over the bare forward",
                rounds.ratio("pass", "bare"),
                budget=Budget(1.05),
                note=f"bare {bare:,.0f} images/s; all layers {kept:,.0f} images/s",
            )


def attention_rows(setting: Setting) -> Iterator[Row]:
    """The analyses of attention together, and each alone, all on the same batch."""
    size = "ViT-S/16" if setting.quick else "ViT-B/16"
    # saliency takes at most so many images together
    batch = 2 if setting.quick else min(setting.batch, IMAGES_PER_GROUP)
    backbone = random_network(size, setting)
    pixels, every = noise(batch, setting), problems(batch)
    shown = [Layer(index, "probabilities") for index in range(1, backbone.spec.depth + 1)]

    def analyse(*asked: Measurable) -> None:
        show_batch(backbone, pixels, [_measured(task, backbone) for task in asked], shown)

    together = partial(analyse, *every.values())
    alone = {name: partial(analyse, task) for name, task in every.items()}
    # processor time is hardly affected by other work on the machine
    clock = time.perf_counter if setting.card else time.process_time
    rounds = take_turns(setting, {"bare": analyse, **alone, "together": together}, clock=clock)
    what = (
        f"analyses of attention together, over the bare forward with eager attention ({size}, batch {batch})"
    )
    yield rounds.row(what, ("together", "bare"), Budget(1.35), "", "bare", "together")
    bytes_bare, most = most_bytes(analyse, setting.device), most_bytes(together, setting.device)
    extra, spec = most - bytes_bare, backbone.spec
    tokens = spec.prefix_tokens + (SIDE // spec.patch_size) ** 2
    maps = batch * (spec.heads or 0) * tokens**2 * backbone.dtype.itemsize
    yield Row(
        f"extra memory of the same, in one batch's maps of one block ({size}, batch {batch})",
        extra / maps,
        budget=Budget(1),
        note=f"{extra / 2**20:.1f} MiB over {bytes_bare / 2**20:,.0f} MiB; maps {maps / 2**20:.1f} MiB",
    )
    for name in alone:
        yield rounds.row(f"{name} alone", (name, "bare"), None, "", name)


def most_bytes(work: Callable[[], object], device: torch.device) -> int:
    """Peak bytes of live tensors, from the allocator of a GPU or from observed operations.

    What the CPU allocator keeps besides varies between processes by more than the maps.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return int(torch.cuda.max_memory_allocated(device))
    with Census() as held:
        work()
    return int(held.peak)


def problems(batch: int) -> dict[str, Measurable]:
    """The analyses of attention, for a batch of images."""
    where, samples = one_batch(batch), nothings(batch)
    quarter = CocoRegion("", 0, (SIDE, SIDE), [[0, 0, SIDE / 2, 0, SIDE / 2, SIDE / 2, 0, SIDE / 2]])
    masks = tuple(RegionImage(sample, (SIDE, SIDE), (quarter,)) for sample in samples)
    return {
        "attention-maps": AttentionMapsTask(where, config_of(STANDARD, "attention-maps")),
        "attention-distance": AttentionDistance(where),
        "attention-shares": AttentionShares(where),
        "saliency": SaliencyTask(Regions("masks", masks, {}, Coverage(())), config_of(STANDARD, "saliency")),
    }
