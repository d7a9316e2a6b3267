"""Images a second of backbones that people use, bare and with every layer kept."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from perf.networks import noise, random_resnet, random_vit, show
from perf.passes import vectors
from perf.rounds import Setting, take_turns
from perf.rows import Budget, Row
from zoo.features.backbone import Backbone

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
    speed = {one: 1000 * batch / rounds.milliseconds(one) for one in ("bare", "all layers")}
    dtype = str(setting.dtype).removeprefix("torch.")
    return Row(
        f"{name}, {dtype}, batch {batch}: every layer's vectors kept, over the bare forward",
        rounds.ratio("all layers", "bare"),
        budget=Budget(1.05),
        note="; ".join(f"{one} {value:,.0f} images/s" for one, value in speed.items()),
    )
