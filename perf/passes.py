"""A pass that keeps every layer, or measures attention, beside the bare forward of the same model."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import get_args

import torch

from layerboard.benchmark.extraction.collectors import Collector, MeasuredCollector, VectorCollector
from layerboard.tasks.analyses.attention import AttentionDistance, AttentionShares
from layerboard.tasks.analyses.attention_maps import AttentionMapsTask
from layerboard.tasks.analyses.saliency import SaliencyTask
from layerboard.tasks.cka import CkaTask
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.coco import CocoRegion, RegionImage, Regions
from layerboard.tasks.protocols import STANDARD
from layerboard.tasks.registry import config_of
from layerboard.tasks.sources import IMAGES
from layerboard.tasks.task import Measurable
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.census import Census
from layerboard.zoo.spec import Dtype, Layer
from perf.measuring import Budget, Rounds, Row, Setting, take_turns
from perf.networks import SIDE, SIZES, noise, nothings, one_batch, random_network, show

GRAM_BATCH = 256  # images of a batch of CKA


def pass_rows(setting: Setting) -> Iterator[Row]:
    """A pass that keeps all layers' vectors, and forwards an image."""
    size, batch = ("ViT-S/16", 2) if setting.quick else ("ViT-B/16", setting.batch)
    backbone, pixels = random_network(size, setting), noise(batch, setting)
    what = f"pass that keeps every layer's vectors, over the bare forward ({size}, batch {batch})"
    yield beside_bare(backbone, pixels, setting).row(what, ("pass", "bare"), Budget(1.05))
    times, note = forwards(backbone, pixels), f"{len(backbone.spec.layers)} layers"
    yield Row("forwards an image, for all layers", times, budget=Budget(1), note=note)


def gram_rows(setting: Setting) -> Iterator[Row]:
    """The pass with CKA's Gram matrices of all patch tokens, too."""
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
    """A pass that keeps every layer's vectors, and what else is asked for, in turn with the bare forward."""

    def show_all() -> None:
        show(backbone, pixels, [collector(backbone, len(pixels)) for collector in (vectors, *further)])

    return take_turns(setting, {"bare": lambda: show(backbone, pixels), "pass": show_all}, times)


def vectors(backbone: Backbone, count: int) -> Collector:
    """What keeps class token and mean of all layers, of a batch of so many images."""
    layers = frozenset(backbone.spec.layers)
    return VectorCollector(one_batch(count).probe, layers, ("cls", "mean"), torch.float32)


def grams(backbone: Backbone, count: int) -> Collector:
    """What keeps the Gram matrices of all blocks' patch tokens."""
    return _measured(CkaTask(one_batch(count), config_of(STANDARD, "cka")), backbone)


def _measured(task: Measurable, backbone: Backbone) -> Collector:
    """What hands a task the layers that it measures, but for what enters the first block."""
    view = STANDARD.choice(IMAGES).view.scaled(SIDE, backbone.spec.patch_size)
    layers = [layer for layer in backbone.spec.layers if layer.index]
    return MeasuredCollector(task, view, task.feed.layers(layers, backbone.spec))


def forwards(backbone: Backbone, pixels: torch.Tensor) -> int:
    """How often the last block runs while every layer of a batch is shown."""
    layers: list[Layer] = []
    backbone.visit(pixels, lambda features: layers.append(features.layer), None)
    return layers.count(Layer(backbone.spec.depth))


# On a graphics card; a processor is asked in the dtype of the setting alone.
DTYPES = get_args(Dtype)


def throughput_rows(setting: Setting) -> Iterator[Row]:
    """What keeping every layer's vectors costs each network, and how many images a second go through it."""
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
    """The analyses of attention together, and each alone: all look at the same batch."""
    size = "ViT-S/16" if setting.quick else "ViT-B/16"
    backbone, batch = random_network(size, setting), 2 if setting.quick else setting.batch
    pixels, every = noise(batch, setting), problems(batch)
    shown = [Layer(index, "probabilities") for index in range(1, backbone.spec.depth + 1)]

    def analyse(*asked: Measurable) -> None:
        show(backbone, pixels, [_measured(task, backbone) for task in asked], shown)

    together = partial(analyse, *every.values())
    alone = {name: partial(analyse, task) for name, task in every.items()}
    # seconds of the processor are hardly changed by other work on the machine
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
    """Most bytes of tensors that were alive at once, as a card's allocator tells or operations show.

    What the allocator of a processor keeps beside them varies by more than the maps from process to process.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return int(torch.cuda.max_memory_allocated(device))
    with Census() as held:
        work()
    return int(held.peak)


def problems(batch: int) -> dict[str, Measurable]:
    """The analyses of attention, of a batch of images."""
    where, samples = one_batch(batch), nothings(batch)
    quarter = CocoRegion("", 0, (SIDE, SIDE), [[0, 0, SIDE / 2, 0, SIDE / 2, SIDE / 2, 0, SIDE / 2]])
    masks = tuple(RegionImage(sample, (SIDE, SIDE), (quarter,)) for sample in samples)
    return {
        "attention-maps": AttentionMapsTask(where, config_of(STANDARD, "attention-maps")),
        "attention-distance": AttentionDistance(where),
        "attention-shares": AttentionShares(where),
        "saliency": SaliencyTask(Regions("masks", masks, {}, Coverage(())), config_of(STANDARD, "saliency")),
    }
