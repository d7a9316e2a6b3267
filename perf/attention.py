"""The analyses of attention beside a bare forward with eager attention.

Average maps, distances, shares and saliency look at the same batches, as if they had the same images.
"""

import time
from collections.abc import Iterator
from typing import Any

from benchmark.extraction.collectors import Collector, MeasuredCollector
from perf.networks import SIDE, noise, nothings, one_batch, random_vit, show
from perf.rounds import Setting, take_turns
from perf.rows import Row
from tasks.analyses.attention_distance import AttentionDistance
from tasks.analyses.attention_maps import AttentionMapsProblem
from tasks.analyses.attention_shares import AttentionShares
from tasks.analyses.saliency import SaliencyProblem
from tasks.base import MeasuredProblem
from tasks.datasets.base import Coverage, RegionImage, Regions
from tasks.protocols import STANDARD
from zoo.features import Backbone
from zoo.spec import Layer


def attention_rows(setting: Setting) -> Iterator[Row]:
    """All of them together, and each alone."""
    size = "ViT-S/16" if setting.quick else "ViT-B/16"
    backbone, batch = random_vit(size, setting), 2 if setting.quick else setting.batch
    pixels, every = noise(batch, setting), problems(batch)
    shown = [Layer(index, "probabilities") for index in range(1, backbone.spec.depth + 1)]

    def analyse(asked: list[MeasuredProblem[Any]]) -> None:
        show(backbone, pixels, [_collector(one, backbone) for one in asked], shown)

    bare, together = "bare", "together"
    alone = {name: (lambda one=one: analyse([one])) for name, one in every.items()}
    # seconds of the processor are hardly changed by other work on the machine
    clock = time.perf_counter if setting.device.type == "cuda" else time.process_time
    rounds = take_turns(
        {bare: lambda: analyse([]), **alone, together: lambda: analyse([*every.values()])},
        setting.rounds,
        setting.device,
        clock,
    )
    over = f"over the bare forward with eager attention ({size}, batch {batch})"
    yield Row(
        f"analyses of attention together, {over}",
        rounds.ratio(together, bare),
        figures=rounds.figures(bare, together),
    )
    for name in alone:
        yield Row(f"{name} alone", rounds.ratio(name, bare), figures=rounds.figures(name))


def problems(batch: int) -> dict[str, MeasuredProblem[Any]]:
    """The analyses, of a batch of images."""
    where, samples = one_batch(batch), nothings(batch)
    masks = tuple(RegionImage(sample, (SIDE, SIDE), (sample,)) for sample in samples)
    return {
        "attention-maps": AttentionMapsProblem(where, STANDARD.maps),
        "attention-distance": AttentionDistance(where),
        "attention-shares": AttentionShares(where),
        "saliency": SaliencyProblem(Regions("masks", masks, {}, Coverage(())), STANDARD.saliency),
    }


def _collector(problem: MeasuredProblem[Any], backbone: Backbone) -> Collector:
    blocks = [Layer(index) for index in range(1, backbone.spec.depth + 1)]
    view = STANDARD.images.scaled(SIDE, backbone.spec.patch_size)
    return MeasuredCollector(problem, view, problem.feed.layers(blocks, backbone.spec))
