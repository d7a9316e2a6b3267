"""Removes from tokens what they say of their position, as an image without content shows it.

Source: INSID3 (visinf/INSID3, commit f1c9622), positional debiasing.
"""

import torch
from torch import Tensor
from torch.nn import functional

RANK = 1e-6  # share of the largest singular value below which a direction is rounding


def position_basis(blank: Tensor, components: int) -> Tensor:
    """Directions of the position in tokens of an image without content: [dim components], orthonormal.

    They are the leading directions of the unit tokens around their mean; fewer come back where there are
    fewer: what is beyond the numerical rank is arbitrary.

    Args:
        blank: [tokens dim] of one layer and view.
        components: How many are wanted, from 0.

    Raises:
        ValueError: Another shape, a negative number, or a value that is NaN or infinite.
    """
    if blank.ndim != 2 or not blank.numel() or components < 0:
        shapes = f"{tuple(blank.shape)}, {components}"
        raise ValueError(f"expected tokens [tokens dim] and a number from 0, found {shapes}")
    if not bool(blank.isfinite().all()):
        raise ValueError("tokens must not hold NaN or infinite values")
    tokens = functional.normalize(blank.to(torch.float64), dim=-1)
    left, values, _ = torch.linalg.svd((tokens - tokens.mean(0)).T, full_matrices=False)
    # the spread of unit vectors that are all equal is rounding, whatever its directions
    rank = int((values > RANK * max(float(values[0]), len(tokens) ** 0.5)).sum())
    most = min(components, rank, blank.shape[1], max(0, len(tokens) - 1))
    basis: Tensor = left[:, :most].to(blank.dtype)
    return basis


def debiased(tokens: Tensor, basis: Tensor) -> Tensor:
    """Unit tokens [... dim] without what a basis spans, scaled to length 1 again.

    An empty basis leaves tokens as they are, bit for bit; their lengths, too.

    Args:
        tokens: [... dim], any length of vector.
        basis: [dim components] of ``position_basis``.
    """
    if not basis.shape[1]:
        return tokens
    unit = functional.normalize(tokens, dim=-1)
    basis = basis.to(unit)
    return functional.normalize(unit - (unit @ basis) @ basis.T, dim=-1)
