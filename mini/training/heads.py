"""Parts that are trained beside a backbone and dropped afterwards."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


def perceptron(widths: Sequence[int], *, last_norm: bool) -> nn.Sequential:
    """Linear layers without bias, batch norm and ReLU between them (the MLPs of MoCo-v3).

    Args:
        widths: From input to output.
        last_norm: Whether a batch norm without weights follows the last layer.
    """
    layers: list[nn.Module] = []
    for index, (before, after) in enumerate(pairwise(widths)):
        layers.append(nn.Linear(before, after, bias=False))
        if index < len(widths) - 2:
            layers += [nn.BatchNorm1d(after), nn.ReLU()]
        elif last_norm:
            layers.append(nn.BatchNorm1d(after, affine=False))
    return nn.Sequential(*layers)


class Prototypes(nn.Module):
    """DINO's head: an MLP to a bottleneck of unit length, then cosines with weight-normalised prototypes."""

    def __init__(self, width: int, hidden: int, bottleneck: int, outputs: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, bottleneck),
        )
        self.directions = nn.Linear(bottleneck, outputs, bias=False)

    def forward(self, features: Tensor) -> Tensor:
        """Cosines in [-1, 1], [batch outputs], from [batch width]."""
        return cosines(self.mlp(features), self.directions.weight)


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """Cosines of all rows of one matrix with all rows of another, [first second], float32 even in autocast.

    A soft-max of small temperature follows, which would show bfloat16's rounding.
    """
    with torch.autocast(first.device.type, enabled=False):
        one, other = (nn.functional.normalize(rows.float(), dim=-1) for rows in (first, second))
        return one @ other.T


def transformer(width: int, depth: int, heads: int) -> nn.TransformerEncoder:
    """Pre-norm blocks with an MLP of four times the width, for text towers and decoders."""
    block = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(block, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)


def right(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of the rows whose largest logit is the label's."""
    return (logits.detach().argmax(-1) == labels).float().mean()
