"""Effective receptive fields of a network: which pixels affect the centre cell of a layer, by gradients.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section 5
and appendix C.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.autograd import grad

from layerboard.zoo.features import Channels, LayerFeatures, ReceptiveField, Shown, Visitor
from layerboard.zoo.spec import Layer

# Runs a network on its normalised input [batch 3 height width] and shows layers with their graph attached.
Forward = Callable[[Tensor, Visitor], None]
EQUAL = 1e-4  # tolerance of a sum against its parts, relative to the largest value


def receptive_fields(
    forward: Forward,
    images: Tensor,
    channels: Channels,
    advance: Callable[[float], None] = lambda share: None,
) -> tuple[ReceptiveField, ...]:
    """Fields of the layers that a forward pass shows of normalised images [batch 3 height width], float32.

    They take one forward pass, and one backward pass per layer and channel. A place in the residual stream
    that is found to be the sum of two others needs no backward pass: its gradient is the sum of theirs.
    ``advance`` is called with the share of the work that each channel is, once all its layers are done.
    Memory grows with the number of layers, since the graph is kept until all are done.
    """
    images = images.detach().requires_grad_()
    centres: dict[Layer, Tensor] = {}  # [batch channels], with their graph
    cells: dict[Layer, tuple[int, int]] = {}

    def visitor(shown: Shown) -> None:
        assert isinstance(shown, LayerFeatures)
        rows, columns, width = shown.grid.shape[1:]
        cells[shown.layer] = rows, columns
        # a copy: a network may write the sum of a block into what it shows here
        chosen = torch.tensor(channels(width), device=images.device)
        centres[shown.layer] = shown.grid[:, rows // 2, columns // 2].index_select(1, chosen)

    forward(images, visitor)
    strength = _strength(centres, images, advance)
    return tuple(ReceptiveField(layer, strength[layer], cells[layer]) for layer in centres)


def _strength(
    centres: Mapping[Layer, Tensor], images: Tensor, advance: Callable[[float], None]
) -> dict[Layer, Tensor]:
    """Absolute derivatives of each centre, mean over channels: [height width], float32."""
    parts = {layer: summands for layer in centres if (summands := _parts(layer, centres))}
    strength = {layer: torch.zeros(images.shape[2:], device=images.device) for layer in centres}
    most = max((centre.shape[1] for centre in centres.values()), default=0)
    for channel in range(most):
        gradients: dict[Layer, Tensor] = {}
        for layer, centre in centres.items():
            if channel >= centre.shape[1]:
                continue
            if layer in parts:
                gradients[layer] = gradients[parts[layer][0]] + gradients[parts[layer][1]]
            elif centre.requires_grad:
                # images of a batch are independent: each gets the derivative of its own centre
                whole = centre[:, channel].sum()
                (gradients[layer],) = grad(whole, images, retain_graph=True, materialize_grads=True)
            else:
                gradients[layer] = torch.zeros_like(images)
            strength[layer] += gradients[layer].abs().sum(dim=(0, 1)) / centre.shape[1]
            for gone in [old for old in gradients if old.index < layer.index - 1]:
                del gradients[gone]
        advance(1 / most)
    return strength


def _parts(layer: Layer, centres: Mapping[Layer, Tensor]) -> tuple[Layer, Layer] | None:
    """The two places in the stream of a transformer whose sum this one is; None if that is not found."""
    parts = {
        "mid": (Layer(layer.index - 1), Layer(layer.index, "attention")),
        "block": (Layer(layer.index, "mid"), Layer(layer.index, "mlp")),
    }.get(layer.tap)
    if parts is None or not all(part in centres for part in parts):
        return None
    first, second, whole = (centres[summand].detach() for summand in (*parts, layer))
    if not first.shape == second.shape == whole.shape:
        return None
    far = (first + second - whole).abs().max() > EQUAL * whole.abs().max()
    return None if far else parts
