"""Backbones with seeded random weights, of common sizes, and their input."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from layerboard.benchmark.passes.collectors import Collector
from layerboard.benchmark.passes.loading import Batch, Member
from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.classes import Unlabelled
from layerboard.tasks.framework.base import Group, Source
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.sources import IMAGES, Batches, ProbedImages
from layerboard.zoo.features import Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from workshop.perf.measuring import Setting

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SIDE = 224

SIZES: dict[str, dict[str, Any]] = {
    "ViT-S/16": {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536},
    "ViT-B/16": {},
    "ViT-L/16": {
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
    },
}  # deviations of a size from the defaults of `transformers.ViTConfig`


def write_random_network(folder: Path, name: str) -> None:
    """Save a ViT of a size, or a ResNet-50, with random weights of seed 0, in Hugging Face format."""
    from transformers import ResNetConfig, ResNetModel, ViTConfig, ViTModel

    from layerboard.zoo.load.hub import quiet

    torch.manual_seed(0)
    if name == "ResNet-50":
        network: PreTrainedModel = ResNetModel(ResNetConfig(downsample_in_bottleneck=False))
    else:
        network = ViTModel(ViTConfig(**SIZES[name]), add_pooling_layer=False)
    with quiet():
        network.save_pretrained(folder)
    words = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(words))


def random_network(name: str, setting: Setting) -> Backbone:
    """A network that `write_random_network` knows, loaded as any other backbone is."""
    with tempfile.TemporaryDirectory() as folder:
        write_random_network(Path(folder), name)
        (spec,) = find([folder])
        return load_backbone(
            replace(spec, dtype=setting.dtype), device=setting.device, cache_dir=Path(folder) / "cache"
        )


def noise(count: int, setting: Setting, side: int = SIDE) -> Tensor:
    """Images of noise on the device, uint8 [count 3 side side]."""
    seeded = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=seeded)
    return pixels.to(setting.device)


def nothings(count: int) -> tuple[FileSample, ...]:
    """A number of images that are never opened."""
    return tuple(FileSample(f"image {number}", "") for number in range(count))


def one_batch(count: int) -> ProbedImages:
    """A classification dataset whose images are one batch of CKA."""
    source = Source("images", (Group("batch", nothings(count)),), STANDARD.config_for(IMAGES).view)
    images, complete = Unlabelled("images", (), Coverage(())), Coverage(())
    return ProbedImages(images, complete, source, np.zeros(0, np.int64), Batches(count, None))


def show_batch(
    backbone: Backbone, pixels: Tensor, collectors: Sequence[Collector] = (), layers: Sequence[Layer] = ()
) -> None:
    """Show a batch of one group to the listeners of a pass, and copy what they keep to the host.

    Pixels are uint8 [images 3 height width]; ``layers`` are shown, too, whoever listens.
    """
    batch = Batch(pixels, tuple(Member(0, position, 1, (SIDE, SIDE)) for position in range(len(pixels))))
    heard = (collector.layers for collector in collectors)
    wanted = sorted({*layers}.union(*heard), key=lambda layer: layer.place)

    def visitor(shown: Shown) -> None:
        for collector in collectors:
            if shown.layer in collector.layers:
                collector.see(batch, shown)

    backbone.visit(pixels, visitor, wanted)
    for collector in collectors:
        collector.finish(range(1))
