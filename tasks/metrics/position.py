"""How much tokens say of their place in the image: read off by a linear map, or taken for content by matches.

Sources: INSID3 (visinf/INSID3, commit f1c9622), whose debiasing takes such directions out; Islam et al., How
Much Position Information Do Convolutional Neural Networks Encode?, ICLR 2020 (places read off features).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

LEAST = 4  # images without which no regression can be learned, chosen and asked on different ones


def places(cells: tuple[int, int]) -> Tensor:
    """Row and column of the centres of a grid's cells on the unit square, [cells 2] float64, row by row."""
    rows, columns = ((torch.arange(count, dtype=torch.float64) + 0.5) / count for count in cells)
    return torch.cartesian_prod(rows, columns)


@dataclass(frozen=True, slots=True)
class PlaceErrors:
    """How far the place that is read off tokens is from their own, image by image.

    Attributes:
        squared: Mean squared error of row and column over the image's tokens, [images 2], float64.
        variance: The same of the mean place, which knows nothing: [2]; 0 along a side of one cell.
    """

    squared: Tensor
    variance: Tensor


def place_errors(grids: Tensor, penalties: Sequence[float]) -> PlaceErrors:
    """Errors of rows and columns that ridge regressions read off unit tokens of images not seen before.

    The images are halved, even and odd, and each half is read by what was learned from the other. The penalty
    is the one that, learned from half of those images, reads the rest of them best.

    Args:
        grids: [images height width dim], `LEAST` images at least.
        penalties: Shares of the tokens' mean variance that are added to each direction's, above 0; with a
            large one the mean place is read off everywhere.
    """
    truth = places((grids.shape[1], grids.shape[2])).to(grids.device)
    tokens = functional.normalize(grids.flatten(1, 2).float(), dim=-1)
    squared = torch.empty(len(grids), 2, dtype=torch.float64, device=grids.device)
    tried = torch.tensor(penalties, dtype=torch.float64).to(grids.device)
    for half in range(2):
        errors = _read_off(tokens[half::2], tokens[1 - half :: 2], truth, tried)
        squared[1 - half :: 2] = ((errors - truth) ** 2).mean(dim=1)
    return PlaceErrors(squared, ((truth - truth.mean(0)) ** 2).mean(0))


def _read_off(learned: Tensor, asked: Tensor, truth: Tensor, penalties: Tensor) -> Tensor:
    """Places of the tokens asked for, [images cells 2], by a ridge regression with an intercept."""
    mean, around = learned.mean(dim=(0, 1)), truth - truth.mean(0)
    centred = learned - mean
    first, second = (_moments(centred[part::2], around) for part in range(2))
    tried = _weights(first, penalties)
    rest = centred[1::2].double().flatten(0, 1)
    errors = (rest @ tried - around.repeat(len(centred[1::2]), 1)).square().mean(dim=(1, 2))
    best = penalties[errors.argmin(dim=0, keepdim=True)]  # an index without an axis is asked of the device
    weights = _weights((first[0] + second[0], first[1] + second[1]), best)
    return (asked - mean).double() @ weights[0] + truth.mean(0)


def _moments(tokens: Tensor, around: Tensor) -> tuple[Tensor, Tensor]:
    """Products of tokens [images cells dim] with each other, [dim dim], and with their places, [dim 2]."""
    rows = tokens.flatten(0, 1)
    return (rows.T @ rows).double(), tokens.sum(0).double().T @ around


def _weights(moments: tuple[Tensor, Tensor], penalties: Tensor) -> Tensor:
    """Weights of each penalty, [penalties dim 2]."""
    products, targets = moments
    # tokens that are all equal read off the mean place
    added = penalties * products.diagonal().mean() + torch.finfo(torch.float64).tiny
    identity = torch.eye(len(products), dtype=torch.float64, device=products.device)
    # not `solve`, which asks the device whether all went well
    every = targets.expand(len(penalties), *targets.shape)
    weights: Tensor = torch.linalg.solve_ex(products + added[:, None, None] * identity, every).result
    return weights


@dataclass(frozen=True, slots=True)
class Matches:
    """Where the most similar token of another image is, image by image.

    Attributes:
        same: Share of the image's tokens whose match is at their own place, [images].
        distance: Mean distance between place and match on the unit square, [images].
    """

    same: Tensor
    distance: Tensor


def matches(grids: Tensor) -> Matches:
    """Matches of each image's tokens in the next image, of the last one's in the first, by cosine.

    Of tokens that are equally similar the first counts.

    Args:
        grids: [images height width dim], two images at least.
    """
    cells = grids.shape[1] * grids.shape[2]
    tokens = functional.normalize(grids.flatten(1, 2).float(), dim=-1)
    own = torch.arange(cells, device=grids.device)
    where = places((grids.shape[1], grids.shape[2])).to(grids.device)
    agreement = torch.stack(
        [(first @ other.T).argmax(1) for first, other in zip(tokens, tokens.roll(-1, 0), strict=True)]
    )
    distance = torch.linalg.vector_norm(where[agreement] - where, dim=-1).mean(1)
    return Matches((agreement == own).double().mean(1), distance)
