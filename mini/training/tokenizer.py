"""Visual tokens for BEiT: the nearest of a set of patches found by k-means.

The paper's tokenizer is a dVAE that was trained on 250 million images. At this scale k-means is the better
choice: it takes seconds, its codes are all used by construction, and it is the same in every run. Patches are
compared by their principal components, each divided by the square root of its standard deviation: half-way to
white, so that codes tell edges and textures apart as well as colours, of which raw pixels speak almost alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from zoo.errors import InputError

_AT_ONCE = 16384
"""Points that are compared with all centres at once, which bounds the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizing:
    """Numbers of the tokenizer.

    Attributes:
        codes: Visual tokens.
        components: Principal components by which patches are compared.
        images: Training images whose patches are clustered.
        rounds: Iterations of k-means.
    """

    codes: int
    components: int
    images: int
    rounds: int


class Tokenizer(nn.Module):
    """Gives each patch the number of the nearest centre."""

    def __init__(self, mean: Tensor, projection: Tensor, centres: Tensor) -> None:
        super().__init__()
        self.mean: Tensor
        self.projection: Tensor
        self.centres: Tensor
        for name, tensor in (("mean", mean), ("projection", projection), ("centres", centres)):
            self.register_buffer(name, tensor)

    def forward(self, patches: Tensor) -> Tensor:
        """Visual tokens, int64 [...], of patches [... pixels]."""
        with torch.autocast(patches.device.type, enabled=False):
            return _nearest((patches.float() - self.mean) @ self.projection, self.centres)


def fit(patches: Tensor, how: Tokenizing, generator: torch.Generator) -> Tokenizer:
    """A tokenizer from patches [patches pixels].

    Raises:
        InputError: There are fewer patches than visual tokens.
    """
    if len(patches) < how.codes:
        raise InputError(
            f"{how.codes} visual tokens need as many patches; found {len(patches)}: give more images"
        )
    mean = patches.mean(0)
    values, directions = torch.linalg.eigh((patches - mean).T @ (patches - mean) / len(patches))
    values, directions = values.flip(0)[: how.components], directions.flip(1)[:, : how.components]
    projection = directions / values.clamp(min=1e-8) ** 0.25
    points = (patches - mean) @ projection
    centres = points[torch.randperm(len(points), generator=generator)[: how.codes]]
    for _ in range(how.rounds):
        centres = _moved(points, centres, generator)
    return Tokenizer(mean, projection, centres)


def _nearest(points: Tensor, centres: Tensor) -> Tensor:
    """Number of the nearest centre of each point."""
    offset = centres.square().sum(1) / 2
    parts = [(part @ centres.T - offset).argmax(-1) for part in torch.split(points, _AT_ONCE)]
    return torch.cat(parts)


def _moved(points: Tensor, centres: Tensor, generator: torch.Generator) -> Tensor:
    """The mean of each centre's points; a centre without points goes to a random one."""
    nearest = _nearest(points, centres)
    sums = torch.zeros_like(centres).index_add_(0, nearest, points)
    counts = torch.bincount(nearest, minlength=len(centres))[:, None]
    strays = points[torch.randint(len(points), (len(centres),), generator=generator)]
    return torch.where(counts > 0, sums / counts.clamp(min=1), strays)
