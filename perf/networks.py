"""Backbones with seeded random weights, of the sizes that people use, and what they are shown."""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from benchmark.extraction.collectors import Collector
from benchmark.extraction.loading import Batch, Member
from perf.measuring import Setting
from tasks.base import Group, Source
from tasks.datasets.base import Coverage
from tasks.datasets.classes import Unlabelled
from tasks.protocols import STANDARD
from tasks.sources import IMAGES, Batches, ProbedImages
from zoo.features import Shown
from zoo.features.backbone import Backbone
from zoo.load.backbone import load
from zoo.registry import find
from zoo.spec import Layer

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
}
"""What a size has instead of the defaults of `transformers.ViTConfig`."""


def write_vit(folder: Path, size: str) -> None:
    """Save a network of a size, random weights of seed 0, in Hugging Face format."""
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    _write(folder, ViTModel(ViTConfig(**SIZES[size]), add_pooling_layer=False))


def write_resnet(folder: Path) -> None:
    """Save a ResNet-50, random weights of seed 0, in Hugging Face format."""
    from transformers import ResNetConfig, ResNetModel

    torch.manual_seed(0)
    _write(folder, ResNetModel(ResNetConfig(downsample_in_bottleneck=False)))


def _write(folder: Path, network: "PreTrainedModel") -> None:
    from zoo.load.network import quiet

    with quiet():
        network.save_pretrained(folder)
    words = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(words))


def random_vit(size: str, setting: Setting) -> Backbone:
    """A network of a size, loaded as any other backbone is."""
    return _loaded(partial(write_vit, size=size), setting)


def random_resnet(setting: Setting) -> Backbone:
    """A ResNet-50, loaded as any other backbone is."""
    return _loaded(write_resnet, setting)


def _loaded(write: Callable[[Path], None], setting: Setting) -> Backbone:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        (spec,) = find([folder])
        cache = Path(folder) / "cache"
        return load(spec, device=setting.device, dtype=setting.dtype, cache_dir=cache)


def noise(count: int, setting: Setting, side: int = SIDE) -> Tensor:
    """Images of noise on the device, uint8 [count 3 side side]."""
    seeded = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=seeded)
    return pixels.to(setting.device)


@dataclass(frozen=True)
class Nothing:
    """An image that is never opened, with a mask: its upper left quarter."""

    key: str
    label: int = 0
    box: None = None

    def open(self) -> Image.Image:
        """A black image."""
        return Image.new("RGB", (SIDE, SIDE))

    def signature(self) -> str:
        return self.key

    def mask(self) -> NDArray[np.uint8]:
        """[height width], 0 and 1."""
        mask = np.zeros((SIDE, SIDE), np.uint8)
        mask[: SIDE // 2, : SIDE // 2] = 1
        return mask


def nothings(count: int) -> tuple[Nothing, ...]:
    """So many of them."""
    return tuple(Nothing(f"image {number}") for number in range(count))


def one_batch(count: int) -> ProbedImages:
    """A classification dataset whose images are one batch of CKA's."""
    source = Source("images", (Group("batch", nothings(count)),), STANDARD.choice(IMAGES).view)
    images, complete = Unlabelled("images", (), Coverage(())), Coverage(())
    return ProbedImages(images, complete, source, np.zeros(0, np.int64), Batches(count, None))


def show(
    backbone: Backbone, pixels: Tensor, collectors: Sequence[Collector], layers: Sequence[Layer] = ()
) -> None:
    """Show a batch of one group to what listens to a pass, and bring what it keeps to the host.

    Args:
        backbone: The backbone.
        pixels: uint8 [images 3 height width].
        collectors: What listens.
        layers: Layers that are shown, too, whoever listens.
    """
    members = tuple(Member(0, position, 1, (SIDE, SIDE)) for position in range(len(pixels)))
    batch = Batch(pixels, members)
    wanted = sorted(
        {*layers}.union(*(listening.layers for listening in collectors)), key=lambda layer: layer.place
    )

    def visitor(shown: Shown) -> None:
        for collector in collectors:
            if shown.layer in collector.layers:
                collector.see(batch, shown)

    backbone.visit(pixels, visitor, wanted)
    for collector in collectors:
        collector.finish(range(1))
