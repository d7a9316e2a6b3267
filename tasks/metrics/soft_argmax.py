"""Where a map of similarities is highest, as an expected place; and how far that is pulled to the centre.

Sources: INSID3 (visinf/INSID3, commit f1c9622), a Gaussian kernel; GeoAware-SC (commit 99fd6b6), a window.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SoftArgmax:
    """How similarities become a place: the mean of all places, weighted by softmax(similarity / beta).

    Attributes:
        beta: Temperature.
        sigma: Of a Gaussian around the best place that similarities are multiplied by, in tokens; None for no
            kernel.
        window: Tokens around the best place, to each side, beyond which similarities are 0; None for all.
    """

    beta: float
    sigma: float | None = None
    window: int | None = None

    def found(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Expected column and row of maps [... height width], [... 2], and their pull, [...].

        What the kernel or the window hides counts as a similarity of 0, not as none: where the best one is
        low, places are pulled to the centre of the grid. The pull is the share of the weight that lies where
        similarities count as next to 0. Values are not looked at.
        """
        kernel = self._kernel(maps)
        weight = (maps * kernel / self.beta).flatten(-2).softmax(-1).view_as(maps)
        down, across = (
            torch.arange(length, device=maps.device, dtype=maps.dtype) for length in maps.shape[-2:]
        )
        places = [(weight.sum(-2) * across).sum(-1), (weight.sum(-1) * down).sum(-1)]
        return torch.stack(places, dim=-1), (weight * (kernel < 1e-3)).sum((-2, -1))

    def places(self, maps: Tensor) -> Tensor:
        """Expected column and row of maps [... height width]: [... 2], as of `found`."""
        return self.found(maps)[0]

    def pull(self, maps: Tensor) -> Tensor:
        """Share of the weight [...] that lies where similarities count as next to 0, as of `found`."""
        return self.found(maps)[1]

    def _kernel(self, maps: Tensor) -> Tensor:
        """What similarities are multiplied by: [... height width]."""
        height, width = maps.shape[-2:]
        best = maps.flatten(-2).argmax(-1)[..., None, None]
        down = (torch.arange(height, device=maps.device)[:, None] - best // width).to(maps)
        across = (torch.arange(width, device=maps.device) - best % width).to(maps)
        kernel = torch.ones_like(maps)
        if self.sigma is not None:
            kernel = kernel * torch.exp(-(across.square() + down.square()) / (2 * self.sigma**2))
        if self.window is not None:
            kernel = kernel * ((across.abs() <= self.window) & (down.abs() <= self.window))
        return kernel
