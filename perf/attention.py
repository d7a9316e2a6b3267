"""The analyses of attention beside a bare forward with eager attention.

Average maps, distances, shares and saliency look at the same batches, as if they had the same images.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import torch

from benchmark.extraction.collectors import Collector, MeasuredCollector
from perf.measuring import Budget, Row, Setting, take_turns
from perf.networks import SIDE, noise, nothings, one_batch, random_network, show
from tasks.analyses.attention import AttentionDistance, AttentionShares
from tasks.analyses.attention_maps import AttentionMapsTask
from tasks.analyses.saliency import SaliencyTask
from tasks.datasets.base import Coverage
from tasks.datasets.coco import RegionImage, Regions
from tasks.protocols import STANDARD
from tasks.registry import config_of
from tasks.sources import IMAGES
from tasks.task import Measurable
from zoo.features.backbone import Backbone
from zoo.features.census import Census
from zoo.spec import Layer


def attention_rows(setting: Setting) -> Iterator[Row]:
    """All of them together, and each alone."""
    size = "ViT-S/16" if setting.quick else "ViT-B/16"
    backbone, batch = random_network(size, setting), 2 if setting.quick else setting.batch
    pixels, every = noise(batch, setting), problems(batch)
    shown = [Layer(index, "probabilities") for index in range(1, backbone.spec.depth + 1)]

    def analyse(*asked: Measurable) -> None:
        show(backbone, pixels, [_collector(task, backbone) for task in asked], shown)

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
    masks = tuple(RegionImage(sample, (SIDE, SIDE), (sample,)) for sample in samples)
    return {
        "attention-maps": AttentionMapsTask(where, config_of(STANDARD, "attention-maps")),
        "attention-distance": AttentionDistance(where),
        "attention-shares": AttentionShares(where),
        "saliency": SaliencyTask(Regions("masks", masks, {}, Coverage(())), config_of(STANDARD, "saliency")),
    }


def _collector(problem: Measurable, backbone: Backbone) -> Collector:
    blocks = [Layer(index) for index in range(1, backbone.spec.depth + 1)]
    view = STANDARD.choice(IMAGES).view.scaled(SIDE, backbone.spec.patch_size)
    return MeasuredCollector(problem, view, problem.feed.layers(blocks, backbone.spec))
