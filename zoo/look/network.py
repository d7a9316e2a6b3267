"""A network, and where to look into it."""

from dataclasses import dataclass

from torch import nn

from zoo.look.layout import LayoutSplit
from zoo.look.sublayers import Parts


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
        split: How a network that is not of transformers lays out its layers; None for one that is.
    """

    body: nn.Module
    blocks: tuple[nn.Module, ...]
    final_norm: nn.Module | None
    interpolates: bool
    convolutional: bool
    parts: Parts
    split: LayoutSplit | None = None
