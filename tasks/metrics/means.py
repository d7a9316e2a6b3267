"""Means of what several layers say."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

Key = TypeVar("Key", bound=Hashable)
"""What a layer is called, or a set of layers."""


def mean_of(similarities: Sequence[Tensor]) -> Tensor:
    """The mean of tensors of one shape; of one alone, it itself."""
    return similarities[0] if len(similarities) == 1 else torch.stack(list(similarities)).mean(0)
