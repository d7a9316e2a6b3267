"""Rotary positions in two dimensions: where tokens are, and how queries and keys turn with it."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

Rotary = tuple[Tensor, Tensor]
"""Cosines and sines of the angles, [tokens channels] each, for all channels of one head."""


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where tokens are.

    Attributes:
        kind: As ``coordinates`` of the configuration.
        class_token: Whether there is one.
        registers: Registers after it.
    """

    kind: Literal["unit", "cells"]
    class_token: bool
    registers: int

    def __call__(self, rows: int, columns: int, device: torch.device) -> Tensor:
        """Row and column of every token of a grid of patches, float32 [tokens 2]."""
        if self.kind == "unit":
            sides = [torch.linspace(0, 1, count, device=device) for count in (rows, columns)]
        else:
            first = int(self.class_token)
            sides = [torch.arange(first, first + count, device=device).float() for count in (rows, columns)]
        patches = torch.cartesian_prod(*sides)
        prefix = [torch.zeros(int(self.class_token), 2, device=device)]
        if self.registers:
            # A grid of one row or column has its edge where that is, at 0.
            extent = torch.tensor([float(rows > 1), float(columns > 1)], device=device)
            prefix.append(edge(self.registers, device) * extent)
        return torch.cat([*prefix, patches])


def edge(count: int, device: torch.device) -> Tensor:
    """Points at equal distances along the edge of the unit square, float32 [count 2]; ``count`` is 4 x n.

    They begin at (0, 0) and go round by (1, 0), (1, 1) and (0, 1): ``get_edge_coordinates`` in CAPI's
    ``model.py``.
    """
    way = torch.arange(count // 4, device=device) / (count // 4)
    zero, one = torch.zeros_like(way), torch.ones_like(way)
    sides = [(way, zero), (one, way), (1 - way, one), (zero, 1 - way)]
    return torch.cat([torch.stack(side, dim=1) for side in sides])


class RotaryEmbedding(nn.Module):
    """Angles of tokens from their coordinates; frequencies stay float32 in networks of any type."""

    frequencies: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.zeros(2, channels))

    def _apply(self, fn: Any, recurse: bool = True) -> "RotaryEmbedding":  # noqa: ANN401  # torch's
        exact = self.frequencies
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.frequencies = exact.to(self.frequencies.device)
        return self

    def forward(self, coordinates: Tensor) -> Rotary:
        """Cosines and sines [tokens channels] for coordinates [tokens 2]."""
        angles = coordinates @ self.frequencies
        return angles.cos(), angles.sin()


def rotated(heads: Tensor, rotary: Rotary) -> Tensor:
    """Queries or keys [batch heads tokens channels], rotated with the halves of a head as pairs.

    Su et al., RoFormer, arXiv:2104.09864, section 3.4.2.
    """
    cosine, sine = rotary
    left, right = heads.float().chunk(2, dim=-1)
    turned = torch.cat([-right, left], dim=-1)
    return (heads.float() * cosine + turned * sine).to(heads.dtype)
