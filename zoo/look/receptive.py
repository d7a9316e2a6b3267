"""Effective receptive fields of a network: which pixels move the centre cell of a layer, by gradients.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section 5
and appendix C.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from zoo.features import Channels, LayerFeatures, ReceptiveField, Shown, Visitor
from zoo.look.precision import exact_float32
from zoo.spec import Layer

Forward = Callable[[Tensor, Visitor], None]
"""Runs a network on its normalised input [batch 3 height width] and shows layers, their graph attached."""


def receptive_fields(forward: Forward, images: Tensor, channels: Channels) -> tuple[ReceptiveField, ...]:
    """Fields of the layers that a forward shows, from one forward and a backward a layer and channel.

    Memory grows with the number of layers: the graph of the forward is there until all are done.

    Args:
        forward: The forward.
        images: The network's normalised input, [batch 3 height width], float32.
        channels: Which channels of a layer of so many are looked at.
    """
    images = images.detach().requires_grad_()
    centres: list[tuple[Layer, Tensor, tuple[int, int]]] = []

    def visitor(shown: Shown) -> None:
        assert isinstance(shown, LayerFeatures)
        rows, columns, width = shown.grid.shape[1:]
        # a copy: a network may write the sum of a block into what it shows here
        chosen = torch.tensor(channels(width), device=images.device)
        centre = shown.grid[:, rows // 2, columns // 2].index_select(1, chosen)
        centres.append((shown.layer, centre, (rows, columns)))

    with torch.enable_grad(), exact_float32():
        forward(images, visitor)
        return tuple(
            ReceptiveField(layer, _strength(centre, images), cells) for layer, centre, cells in centres
        )


def _strength(centre: Tensor, images: Tensor) -> Tensor:
    """Derivatives of the centre [batch channels], in size: [height width], float32."""
    total = torch.zeros(images.shape[2:], device=images.device)
    if centre.requires_grad:
        for channel in centre.unbind(1):
            # images of a batch do not see each other: each gets the derivative of its own centre
            (one,) = torch.autograd.grad(channel.sum(), images, retain_graph=True, materialize_grads=True)
            total += one.abs().sum(dim=(0, 1))
    return total / centre.shape[1]
