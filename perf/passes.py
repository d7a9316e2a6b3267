"""A pass that keeps every layer, beside the bare forward of the same model and batch; images a second."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from benchmark.extraction.collectors import Collector, MeasuredCollector, VectorCollector
from perf.measuring import Budget, Row, Setting, take_turns
from perf.networks import SIDE, noise, one_batch, random_resnet, random_vit, show
from tasks.cka import CkaTask
from tasks.protocols import STANDARD
from tasks.registry import config_of
from tasks.sources import IMAGES
from zoo.features import Shown
from zoo.features.backbone import Backbone
from zoo.spec import Layer

GRAM_BATCH = 256  # images of a batch of CKA


def pass_rows(setting: Setting) -> Iterator[Row]:
    """A pass that keeps all layers' vectors, and forwards an image."""
    size = "ViT-S/16" if setting.quick else "ViT-B/16"
    backbone, batch = random_vit(size, setting), 2 if setting.quick else setting.batch
    pixels = noise(batch, setting)
    rounds = take_turns(
        {
            "bare": lambda: show(backbone, pixels, []),
            "pass": lambda: show(backbone, pixels, [vectors(backbone, batch)]),
        },
        setting.rounds,
        setting.device,
    )
    what = f"pass that keeps every layer's vectors, over the bare forward ({size}, batch {batch})"
    yield Row(what, rounds.ratio("pass", "bare"), budget=Budget(1.05), figures=rounds.figures())
    layers = len(backbone.spec.layers)
    times = forwards(backbone, pixels)
    yield Row("forwards an image, for all layers", times, budget=Budget(1), note=f"{layers} layers")


def gram_rows(setting: Setting) -> Iterator[Row]:
    """The pass with CKA's Gram matrices of all patch tokens, too."""
    size = "ViT-S/16" if setting.quick else "ViT-B/16"
    backbone, batch = random_vit(size, setting), 4 if setting.quick else GRAM_BATCH
    pixels = noise(batch, setting)
    rounds = take_turns(
        {
            "bare": lambda: show(backbone, pixels, []),
            "pass": lambda: show(backbone, pixels, [vectors(backbone, batch), grams(backbone, batch)]),
        },
        max(1, setting.rounds // 2),
        setting.device,
    )
    what = f"the same with CKA's patch Grams, over the bare forward ({size}, batch {batch})"
    yield Row(what, rounds.ratio("pass", "bare"), budget=Budget(1.10), figures=rounds.figures())


def vectors(backbone: Backbone, count: int) -> Collector:
    """What keeps class token and mean of all layers, of a batch of so many images."""
    layers = frozenset(backbone.spec.layers)
    return VectorCollector(one_batch(count).probe, layers, ("cls", "mean"), torch.float32)


def grams(backbone: Backbone, count: int) -> Collector:
    """What keeps the Gram matrices of all blocks' patch tokens."""
    problem = CkaTask(one_batch(count), config_of(STANDARD, "cka"))
    view = STANDARD.choice(IMAGES).view.scaled(SIDE, backbone.spec.patch_size)
    layers = [layer for layer in backbone.spec.layers if layer.index]
    return MeasuredCollector(problem, view, problem.feed.layers(layers, backbone.spec))


def forwards(backbone: Backbone, pixels: torch.Tensor) -> int:
    """How often the last block runs while every layer of a batch is shown."""
    count = 0

    def visitor(features: Shown) -> None:
        nonlocal count
        count += features.layer == Layer(backbone.spec.depth)

    backbone.visit(pixels, visitor, None)
    return count


NETWORKS: dict[str, Callable[[Setting], Backbone]] = {
    "ViT-S/16": partial(random_vit, "ViT-S/16"),
    "ViT-B/16": partial(random_vit, "ViT-B/16"),
    "ViT-L/16": partial(random_vit, "ViT-L/16"),
    "ResNet-50": random_resnet,
}

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
"""On a graphics card; a processor is asked in the dtype of the setting alone."""


def throughput_rows(setting: Setting) -> Iterator[Row]:
    """What keeping every layer's vectors costs each network, and how many images a second go through it."""
    names = ["ViT-S/16"] if setting.quick else list(NETWORKS)
    for dtype in DTYPES if setting.device.type == "cuda" else (setting.dtype,):
        for name in names:
            yield _row(name, replace(setting, dtype=dtype))


def _row(name: str, setting: Setting) -> Row:
    backbone, batch = NETWORKS[name](setting), 2 if setting.quick else setting.batch
    pixels = noise(batch, setting)
    rounds = take_turns(
        {
            "bare": lambda: show(backbone, pixels, []),
            "all layers": lambda: show(backbone, pixels, [vectors(backbone, batch)]),
        },
        setting.rounds,
        setting.device,
    )
    speed = {candidate: 1000 * batch / rounds.milliseconds(candidate) for candidate in ("bare", "all layers")}
    dtype = str(setting.dtype).removeprefix("torch.")
    return Row(
        f"{name}, {dtype}, batch {batch}: every layer's vectors kept, over the bare forward",
        rounds.ratio("all layers", "bare"),
        budget=Budget(1.05),
        note="; ".join(f"{candidate} {value:,.0f} images/s" for candidate, value in speed.items()),
    )
