"""Weights of a network that say something by themselves: first filters, position embeddings and biases."""

from collections.abc import Callable, Iterator
from math import isqrt

import torch
from torch import Tensor, nn

from zoo.features import Weights
from zoo.look.network import Network
from zoo.spec import BackboneSpec

CHANNELS = 3
"""Of an image."""

OUTSIDE_GRID = 3
"""Last rows of a table of relative positions: class token to patch, patch to it, and to itself (BEiT)."""


def weights_of(spec: BackboneSpec, network: Network) -> Weights:
    """First filters, position embeddings and relative position biases of a network; see `Weights`."""
    found = {
        "filters": _filters(network.body),
        "positions": _positions(spec, network.body),
        "position_bias": _position_bias(network.body),
    }
    reason = {name: _REASONS[name](spec) for name, weights in found.items() if weights is None}
    return Weights(**found, reason=reason)


def without_weights(reason: str) -> Weights:
    """No weights at all, for one reason."""
    return Weights(None, None, None, {"filters": reason, "positions": reason, "position_bias": reason})


def position_table(embeddings: nn.Module) -> nn.Parameter | None:
    """Position embeddings of the training, [1 tokens dim] or [tokens dim]; None where there are none."""
    found = getattr(embeddings, "position_embeddings", None)
    holder = getattr(embeddings, "position_embedding", None)
    if isinstance(holder, nn.Embedding):
        found = holder.weight
    return found if isinstance(found, nn.Parameter) else None


_REASONS: dict[str, Callable[[BackboneSpec], str]] = {
    "filters": lambda spec: f"{spec.name} has no convolution over the image.",
    "positions": lambda spec: f"{spec.name} adds no trained embeddings of a square grid to its patches.",
    "position_bias": lambda spec: f"{spec.name} has no biases for the relative positions of its whole grid.",
}


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
    weight = first.weight.detach().float()
    if type(first).__name__ != "WeightStandardizedConv2d":
        return weight
    # BiT convolves with its weights standardised, Kolesnikov et al., arXiv:1912.11370, section 3.2
    variance, mean = torch.var_mean(weight, dim=(1, 2, 3), keepdim=True, correction=0)
    constant: float = vars(first)["eps"]
    return (weight - mean) / (variance + constant).sqrt()


def _positions(spec: BackboneSpec, body: nn.Module) -> Tensor | None:
    embeddings = getattr(body, "embeddings", None)
    table = None if embeddings is None else position_table(embeddings)
    if table is None:
        return _free_positions(embeddings)
    rows = table.detach().float().view(-1, table.shape[-1])
    side = isqrt(len(rows))
    prefix = len(rows) - side**2
    is_square = int(spec.has_cls) <= prefix <= spec.prefix_tokens
    return rows[prefix:].view(side, side, -1) if is_square else None


def _free_positions(embeddings: nn.Module | None) -> Tensor | None:
    """RADIO's table, of the patches of the largest image and of no other token."""
    table = getattr(embeddings, "position_embedding", None)
    if not isinstance(table, nn.Parameter):
        return None
    side = isqrt(table.shape[1])
    return table.detach().float().view(side, side, -1)


def _position_bias(body: nn.Module) -> Tensor | None:
    tables = [_bias(table) for table in _bias_tables(body)]
    return torch.stack(tables) if tables else None


def _bias_tables(body: nn.Module) -> Iterator[Tensor]:
    """Tables of relative positions [offsets + 3, heads]; those of windows (Swin) have no such last rows."""
    for module in body.modules():
        table = getattr(module, "relative_position_bias_table", None)
        if (
            isinstance(table, nn.Parameter)
            and isqrt(len(table) - OUTSIDE_GRID) ** 2 == len(table) - OUTSIDE_GRID
        ):
            yield table.detach().float()


def _bias(table: Tensor) -> Tensor:
    """[heads 2g-1 2g-1] from a table [offsets + 3, heads], offsets in row-major order."""
    side = isqrt(len(table) - OUTSIDE_GRID)
    return table[: side**2].T.reshape(-1, side, side)
