"""Position information in tokens: its decoding by a linear map, and its effect on matches between images.

Sources: INSID3 (visinf/INSID3, commit f1c9622), whose debiasing removes such directions; Islam et al., How
Much Position Information Do Convolutional Neural Networks Encode?, ICLR 2020 (positions decoded from
features).
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

LEAST = 4  # least number of images, so that training, choice of the penalty and test use different ones


def places(cells: tuple[int, int]) -> Tensor:
    """Row and column of the centres of a grid's cells on the unit square, [cells 2] float64, row by row."""
    rows, columns = ((torch.arange(count, dtype=torch.float64) + 0.5) / count for count in cells)
    return torch.cartesian_prod(rows, columns)


def place_errors(grids: Tensor, penalties: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Squared errors of the positions that ridge regression predicts from unit tokens of held-out images.

    The images [images height width dim], at least `LEAST`, are split into even and odd ones. Each half is
    predicted by the regression fitted to the other. Its penalty is the one that, fitted to half of the
    training images, predicts the rest of them best. ``penalties`` are added to the variance of each
    direction, in units of the tokens' mean variance, above 0; with a large one the mean position is predicted
    everywhere. Returns the mean squared error of row and column over each image's tokens [images 2], and that
    of the mean position, the baseline, [2], which is 0 along a side of one cell; both float64.
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
    """Positions of the tokens ``asked`` predicted by ridge regression with intercept: [images cells 2]."""
    mean, around = learned.mean(dim=(0, 1)), truth - truth.mean(0)
    centred = learned - mean
    first, second = (_moments(centred[part::2], around) for part in range(2))
    tried = _weights(first, penalties)
    rest = centred[1::2].double().flatten(0, 1)
    errors = (rest @ tried - around.repeat(len(centred[1::2]), 1)).square().mean(dim=(1, 2))
    best = penalties[errors.argmin(dim=0, keepdim=True)]  # an index without an axis would wait for the device
    weights = _weights((first[0] + second[0], first[1] + second[1]), best)
    return (asked - mean).double() @ weights[0] + truth.mean(0)


def _moments(tokens: Tensor, around: Tensor) -> tuple[Tensor, Tensor]:
    """Products of tokens [images cells dim] with each other [dim dim] and with their positions [dim 2]."""
    rows = tokens.flatten(0, 1)
    return (rows.T @ rows).double(), tokens.sum(0).double().T @ around


def _weights(moments: tuple[Tensor, Tensor], penalties: Tensor) -> Tensor:
    """Weights for each penalty, [penalties dim 2]."""
    products, targets = moments
    # tokens that are all equal predict the mean position
    added = penalties * products.diagonal().mean() + torch.finfo(torch.float64).tiny
    identity = torch.eye(len(products), dtype=torch.float64, device=products.device)
    # `solve` would wait for the device to check for errors
    every = targets.expand(len(penalties), *targets.shape)
    weights: Tensor = torch.linalg.solve_ex(products + added[:, None, None] * identity, every).result
    return weights


def matches(grids: Tensor) -> tuple[Tensor, Tensor]:
    """Position bias of matches: nearest tokens by cosine in the next image (for the last image, the first).

    Ties go to the first token. ``grids`` are [images height width dim], at least two images. Returns the
    share of each image's tokens whose match is at the same position, and the mean distance between the
    position and the match on the unit square: [images] each.
    """
    cells = grids.shape[1] * grids.shape[2]
    tokens = functional.normalize(grids.flatten(1, 2).float(), dim=-1)
    own = torch.arange(cells, device=grids.device)
    where = places((grids.shape[1], grids.shape[2])).to(grids.device)
    pairs = zip(tokens, tokens.roll(-1, 0), strict=True)
    agreement = torch.stack([(first @ other.T).argmax(1) for first, other in pairs])
    distance = torch.linalg.vector_norm(where[agreement] - where, dim=-1).mean(1)
    return (agreement == own).double().mean(1), distance
