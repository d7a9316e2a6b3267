"""Planted attention of patches, whose measures are known, and reference cases of attention."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.reference import inputs_attention_maps as recipes
from tests.tasks.agreement import golden

CASES = golden.cases("attention_maps")


def built(name: str) -> dict[str, NDArray[Any]]:
    return golden.build(CASES[name], recipes)


def own(name: str, section: str) -> Mapping[str, Any]:
    """What an independent float64 computation gives in a reference case, or the released code."""
    expected: Mapping[str, Any] = CASES[name]["expected"]
    return expected["own"][section] if section in expected["own"] else expected[section]


def uniform(side: int) -> Tensor:
    return torch.full((side**2, side**2), 1 / side**2)


def to_places(targets: Tensor) -> Tensor:
    """Each patch looks at one: [patches patches]."""
    return torch.nn.functional.one_hot(targets, len(targets)).float()


def right(side: int) -> Tensor:
    """One step to the right; the last column looks at itself."""
    rows, columns = torch.arange(side**2) // side, torch.arange(side**2) % side
    return to_places(rows * side + (columns + 1).clamp(max=side - 1))


def cyclic(side: int) -> Tensor:
    """One step to the right; the last column looks at the first."""
    rows, columns = torch.arange(side**2) // side, torch.arange(side**2) % side
    return to_places(rows * side + (columns + 1) % side)


def corner(side: int) -> Tensor:
    return to_places(torch.zeros(side**2, dtype=torch.long))


def with_prefix(patches: Tensor, prefix: int = 1) -> Tensor:
    """Attention of patches to patches [... N N] with prefix tokens that look everywhere: [... T T]."""
    tokens = patches.shape[-1] + prefix
    whole = torch.zeros(*patches.shape[:-2], tokens, tokens)
    whole[..., :prefix, :] = 1 / tokens
    whole[..., prefix:, prefix:] = patches
    return whole
