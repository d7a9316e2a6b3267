"""A network, and where to look into it."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from zoo.features import LayerFeatures
from zoo.look.split import Cells
from zoo.look.sublayers import Parts
from zoo.spec import BackboneSpec, Layer

Split = Callable[[BackboneSpec, Layer, Tensor, int, Cells], LayerFeatures]
"""Makes features of a layer of what leaves its block: spec, layer, that, images and the coarsest grid."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network and where to look into it.

    Attributes:
        body: Module whose forward runs all blocks.
        blocks: Its residual blocks, first to last.
        final_norm: Norm after the last block; None where there is none.
        interpolates: Whether the forward must be asked to fit position embeddings to the image.
        convolutional: Whether blocks give feature maps instead of tokens.
        parts: Where the parts of a block are; None where they are not known.
        split: How its layers become features; None where they are tokens row by row, or feature maps.
    """

    body: nn.Module
    blocks: tuple[nn.Module, ...]
    final_norm: nn.Module | None
    interpolates: bool
    convolutional: bool
    parts: Parts
    split: Split | None = None
