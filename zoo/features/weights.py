"""Weights of a network that can be analysed by themselves: first filters, position embeddings and biases."""

from collections.abc import Iterable
from math import isqrt

import torch
from torch import Tensor, nn

from layerboard.zoo.features import Weights
from layerboard.zoo.features.taps import Watched
from layerboard.zoo.spec import BackboneSpec

CHANNELS = 3  # of an image
# Last rows of BEiT's tables of relative positions: class token to patch, patch to class token, and to itself.
OUTSIDE_GRID = 3


def weights_of(spec: BackboneSpec, body: nn.Module) -> Weights:
    """First filters, position embeddings and relative position biases of a network; see `Weights`."""
    filters, positions, biases = _filters(body), _positions(spec, body), _position_bias(body)
    lacks = (
        ("filters", filters, "has no convolution over the image."),
        ("positions", positions, "adds no trained embeddings of a square grid to its patches."),
        ("position_bias", biases, "has no biases for the relative positions of its whole grid."),
    )
    reason = {name: f"{spec.name} {lack}" for name, weight, lack in lacks if weight is None}
    return Weights(filters, positions, biases, reason)


def without_weights(reason: str) -> Weights:
    """No weights at all, for one reason."""
    return Weights(None, None, None, {"filters": reason, "positions": reason, "position_bias": reason})


def are_zero(weights: Iterable[Tensor]) -> bool:
    """Whether all matrices of a network are zero, so that no image changes what it shows."""
    matrices = [weight for weight in weights if weight.ndim > 1 and not weight.is_meta]
    return bool(matrices) and not any(bool(weight.any()) for weight in matrices)


def position_table(embeddings: object) -> nn.Parameter | None:
    """Trained position embeddings, [1 tokens dim] or [tokens dim]; None if there are none."""
    table = getattr(embeddings, "position_embeddings", None)
    holder = getattr(embeddings, "position_embedding", None)
    if isinstance(holder, nn.Embedding):
        table = holder.weight
    return table if isinstance(table, nn.Parameter) else None


def _filters(body: nn.Module) -> Tensor | None:
    clips = next((module for module in body.modules() if isinstance(module, nn.Conv3d)), None)
    if clips is not None:  # An image is shown as equal frames, whose filters add up.
        return clips.weight.detach().float().sum(2)
    matrix = getattr(getattr(body, "embeddings", None), "patch_projection", None)
    if isinstance(matrix, nn.Linear):  # RADIO's patches, channel by channel
        side = isqrt(matrix.in_features // CHANNELS)
        return matrix.weight.detach().float().view(-1, CHANNELS, side, side)
    convolutions = (module for module in body.modules() if isinstance(module, nn.Conv2d))
    first = next((module for module in convolutions if module.in_channels == CHANNELS), None)
    if first is None:
        return None
    used: list[Tensor] = []  # BiT standardises its weights, Kolesnikov et al., arXiv:1912.11370, section 3.2
    with Watched(nn.functional.conv2d, lambda given, *_: used.append(given[1])):
        first(first.weight.new_zeros(1, CHANNELS, *first.kernel_size))
    return used[-1].detach().float()


def _positions(spec: BackboneSpec, body: nn.Module) -> Tensor | None:
    table, least = position_table(getattr(body, "embeddings", None)), int(spec.has_cls)
    tables: list[Tensor] = [] if table is None else [table]
    if table is None:  # of another form: more rows of the width of the stream than prefix tokens
        linear = {id(module.weight) for module in body.modules() if isinstance(module, nn.Linear)}
        wide = (each for each in body.parameters() if each.ndim > 1 and each.shape[-1] == spec.width)
        large = (each for each in wide if each.numel() > spec.prefix_tokens * spec.width)
        tables, least = [each for each in large if id(each) not in linear], 0
    grids = []
    for rows in (weight.detach().float().flatten(0, -2) for weight in tables):
        side = isqrt(len(rows))
        prefix = len(rows) - side**2
        if least <= prefix <= spec.prefix_tokens and side > 1:
            grids.append(rows[prefix:].view(side, side, -1))
    return max(grids, key=len, default=None)


def _position_bias(body: nn.Module) -> Tensor | None:
    biases = []
    for module in body.modules():
        table = getattr(module, "relative_position_bias_table", None)
        if not isinstance(table, nn.Parameter):
            continue
        offsets = len(table) - OUTSIDE_GRID
        side = isqrt(offsets)
        if side**2 == offsets:  # tables of windows (Swin) have no rows outside the grid
            biases.append(table.detach().float()[:offsets].T.reshape(-1, side, side))
    return torch.stack(biases) if biases else None
