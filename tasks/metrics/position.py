"""How much tokens say of their place in the image: read off by a linear map, or taken for content by matches.

Sources: INSID3 (visinf/INSID3, commit f1c9622), whose debiasing takes such directions out; Islam et al., How
Much Position Information Do Convolutional Neural Networks Encode?, ICLR 2020 (places read off features).
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

LEAST = 4  # images without which no regression can be learned, chosen and asked on different ones


def places(cells: tuple[int, int]) -> Tensor:
    """Row and column of the centres of a grid's cells on the unit square, [cells 2] float64, row by row."""
    rows, columns = ((torch.arange(count, dtype=torch.float64) + 0.5) / count for count in cells)
    return torch.cartesian_prod(rows, columns)


def place_errors(grids: Tensor, penalties: Sequence[float]) -> tuple[Tensor, Tensor]:
    """How far places that are read off unit tokens are from their own, in images not seen before; float64.

    The images [images height width dim], `LEAST` at least, are halved, even and odd, and each half is read by
    the ridge regression learned from the other. The penalty is the one of those given that, learned from half
    of those images, reads the rest of them best: shares, above 0, of the tokens' mean variance that are added
    to each direction's; with a large one the mean place is read off everywhere. It gives the mean squared
    error of row and column over each image's tokens, [images 2], and that of the mean place, which knows
    nothing: [2]; 0 along a side of one cell.
    """
    truth = places((grids.shape[1], grids.shape[2])).to(grids.device)
    tokens = functional.normalize(grids.flatten(1, 2).float(), dim=-1)
    squared = torch.empty(len(grids), 2, dtype=torch.float64, device=grids.device)
    tried = torch.tensor(penalties, dtype=torch.float64).to(grids.device)
    for half in range(2):
        errors = _read_off(tokens[half::2], tokens[1 - half :: 2], truth, tried)
        squared[1 - half :: 2] = ((errors - truth) ** 2).mean(dim=1)
    return squared, ((truth - truth.mean(0)) ** 2).mean(0)


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


def matches(grids: Tensor) -> tuple[Tensor, Tensor]:
    """Where the most similar token of the next image, of the last one's in the first, is, by cosine.

    Of tokens that are equally similar the first counts. Grids are [images height width dim], two at least. It
    gives the share of each image's tokens whose match is at their own place, and the mean distance between
    place and match on the unit square: [images] each.
    """
    cells = grids.shape[1] * grids.shape[2]
    tokens = functional.normalize(grids.flatten(1, 2).float(), dim=-1)
    own = torch.arange(cells, device=grids.device)
    where = places((grids.shape[1], grids.shape[2])).to(grids.device)
    pairs = zip(tokens, tokens.roll(-1, 0), strict=True)
    agreement = torch.stack([(first @ other.T).argmax(1) for first, other in pairs])
    distance = torch.linalg.vector_norm(where[agreement] - where, dim=-1).mean(1)
    return (agreement == own).double().mean(1), distance
