"""Stand-ins for the real thing: samples in memory and a backbone that counts what it is shown."""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.classes import Unlabelled
from layerboard.tasks.framework.base import Group, Source
from layerboard.tasks.framework.sources import Batches, ProbedImages
from layerboard.zoo.errors import UnreadableImageError
from layerboard.zoo.features import Channels, LayerFeatures, ReceptiveField, Visitor, Weights
from layerboard.zoo.spec import BackboneSpec, Layer, Stage
from layerboard.zoo.spec.origin import GENERATED
from layerboard.zoo.view.views import ResizeCrop, View

SPEC = BackboneSpec(
    name="double",
    family="other",
    supervision="none",
    repository="generated",
    origin=GENERATED,
    stages=(Stage(3, 8, 8),),
    heads=None,
    prefix_tokens=1,
    has_cls=True,
    has_final=True,
    input_size=32,
)


@dataclass(frozen=True)
class MemorySample:
    """An image of one colour; unreadable if the colour is negative."""

    key: str
    colour: int
    size: tuple[int, int] = (32, 32)
    box: None = None

    def open(self) -> Image.Image:
        if self.colour < 0:
            raise UnreadableImageError(f"cannot decode image {self.key}: truncated")
        return Image.new("RGB", self.size, (self.colour, 255 - self.colour, self.colour // 2))

    def signature(self) -> str:
        return f"{self.key}|{self.colour}"


@dataclass
class CountingBackbone:
    """Features that are simple functions of the pixels, and a tally of the images and batches shown."""

    spec: BackboneSpec = SPEC
    revision: str = "double"
    fingerprint: str = "double"
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    dtype: torch.dtype = torch.float32
    compiled: tuple[()] = ()
    batches: list[int] = field(default_factory=list)

    def refusal(self, layers: Collection[Layer]) -> str:
        return ""

    def weights(self) -> Weights:
        return Weights(None, None, None, {})

    def fields_refusal(self) -> str:
        return "double gives no gradients"

    def receptive_fields(
        self, pixels: Tensor, layers: Collection[Layer], channels: Channels
    ) -> tuple[ReceptiveField, ...]:
        raise NotImplementedError

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        self.batches.append(len(pixels))
        cells = torch.nn.functional.avg_pool2d(pixels.float(), self.spec.patch_size)
        for layer in self.spec.layers:
            if layers is None or layer in layers:
                grid = (cells.permute(0, 2, 3, 1) + layer.index).contiguous()
                grid = torch.cat([grid, grid**2 / 100, torch.ones_like(grid[..., :2])], dim=-1)
                visitor(LayerFeatures(layer, grid.mean(dim=(1, 2)) * 2, grid))


def source(
    colours: list[list[int]],
    *,
    view: View | None = None,
    per_shard: int = 1,
    joint: bool = False,
    skip: bool = True,
    size: tuple[int, int] = (32, 32),
) -> Source:
    """A source whose groups hold images of those colours."""
    groups = tuple(
        Group(f"g{number}", tuple(MemorySample(f"{number}-{i}", c, size) for i, c in enumerate(group)))
        for number, group in enumerate(colours)
    )
    view = view or ResizeCrop(32, 32)
    return Source(
        "double/source", groups, view, groups_per_shard=per_shard, joint=joint, skip_unreadable=skip
    )


def probed(images: Source, batch: int) -> ProbedImages:
    """A source whose images are looked at in batches of so many."""
    nothing = Unlabelled("images", (), Coverage(()))
    return ProbedImages(nothing, Coverage(()), images, np.zeros(0, np.int64), Batches(batch, None))
