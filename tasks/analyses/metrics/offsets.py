"""Attention by offset from the query: average aligned maps, and heads that attend to a fixed offset.

Source: Walmer et al., CVPR 2023, section 4.2, and its released code; the classes of heads are this package's.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.metrics.attention import Cells
from layerboard.tasks.metrics.arrays import Floats

HeadClass = Literal["strict", "offset", "axial", "soft", "global"]

ROUNDING = 1e-6  # numbers with a smaller relative difference count as equal: they are sums in float32
LOCAL_CELLS = 7  # a local window extends to each side by the grid's shorter side divided by this


def offset_index(cells: Cells, device: torch.device | None = None) -> Tensor:
    """Index in a flattened aligned map of each (query, key) pair of cells, int64 [cells * cells]."""
    (height, width) = cells
    rows = torch.arange(height, device=device).repeat_interleave(width)
    columns = torch.arange(width, device=device).repeat(height)
    down = rows[None] - rows[:, None] + height - 1
    right = columns[None] - columns[:, None] + width - 1
    return (down * (2 * width - 1) + right).flatten()


def aligned_map(attention: Tensor, index: Tensor, cells: Cells) -> Tensor:
    """Attention [heads patches patches] by offset from the query, averaged over the queries, float64.

    Each row of the attention sums to 1 or 0, or is a sum of such rows over images; ``index`` is that of
    `offset_index`. The map is [heads, 2 * rows - 1, 2 * columns - 1]; the offset ``dy`` down and ``dx`` to
    the right is at ``[dy + rows - 1, dx + columns - 1]``. It sums to 1, or less if some queries do not attend
    to patches.
    """
    shape = (2 * cells[0] - 1, 2 * cells[1] - 1)
    flat = attention.flatten(1).double()
    sums = flat.new_zeros(len(flat), shape[0] * shape[1]).index_add_(1, index, flat)
    return (sums / (cells[0] * cells[1])).view(-1, *shape)


def average_offset(aligned: Floats, *, normalised: bool) -> Floats:
    """Mean offset in cells (down, right), [... 2], of aligned maps [... rows columns].

    It equals the centre of mass of the attention that patches receive, minus the grid's centre, whatever
    single queries do: for a head that attends one step to the right with wrapping it is 0. With
    ``normalised``, maps are first divided by their sums, as in the released code; this matters if some
    queries do not attend to patches. NaN for an empty map.
    """
    down, right = _offsets(aligned.shape[-2:])
    mean = np.stack([(aligned * down).sum(axis=(-2, -1)), (aligned * right).sum(axis=(-2, -1))], axis=-1)
    total = aligned.sum(axis=(-2, -1))[..., None]
    if not normalised:
        return np.asarray(mean)
    return np.asarray(np.divide(mean, total, out=np.full_like(mean, np.nan), where=total > 0))


@dataclass(frozen=True, slots=True)
class HeadOffset:
    """Where a head attends, relative to the query.

    The peak is the offset (down, right) in cells with the most attention among the near ones; ties go to the
    nearest, then the upper, then the left one. The name is the first that applies. ``strict``: half of the
    attention stays at the query. ``offset``: half is in the window around a peak elsewhere, and a query that
    can reach both the peak and the opposite offset attends to the peak at least twice as much. ``axial``:
    half is in the row or the column of the query, and at least twice as much as in the other. ``soft``: half
    is in the window. ``global``: none of these.
    """

    peak: tuple[int, int]
    local_mass: float  # share of the attention in a window around the peak
    name: HeadClass

    @property
    def peak_offset(self) -> float:
        """Length of the peak's offset in cells."""
        return float(np.hypot(*self.peak))


def head_offset(aligned: Floats) -> HeadOffset:
    """Where a head attends, from its aligned map [2 * rows - 1, 2 * columns - 1] averaged over images.

    The window extends from the peak to each side by a seventh of the grid's shorter side (rounded, at least
    one cell); the peak is searched up to twice that far from the query. Uniform attention has a local mass of
    0.107 on a 14 x 14 grid.
    """
    rows, columns = ((side + 1) // 2 for side in aligned.shape)
    reach = max(1, round(min(rows, columns) / LOCAL_CELLS))
    down, right = _offsets(aligned.shape)
    peak = _peak(aligned, np.maximum(abs(down), abs(right)) <= 2 * reach)
    window = np.maximum(abs(down - peak[0]), abs(right - peak[1])) <= reach
    local = float(aligned[window].sum())
    return HeadOffset(peak, local, _name(aligned, peak, local))


def reachable(aligned: Floats) -> Floats:
    """Aligned maps averaged only over the queries for which an offset is inside the grid; same shape."""
    rows, columns = ((side + 1) // 2 for side in aligned.shape[-2:])
    down, right = _offsets(aligned.shape[-2:])
    return np.asarray(aligned * (rows * columns) / ((rows - abs(down)) * (columns - abs(right))))


def _peak(aligned: Floats, near: NDArray[np.bool_]) -> tuple[int, int]:
    best = aligned[near].max()
    places = np.argwhere(near & (aligned >= best - ROUNDING * abs(best)))
    offsets = ((int(down), int(right)) for down, right in places - np.array(aligned.shape) // 2)
    return min(offsets, key=lambda offset: (offset[0] ** 2 + offset[1] ** 2, *offset))


def _name(aligned: Floats, peak: tuple[int, int], local: float) -> HeadClass:
    middle = (aligned.shape[0] // 2, aligned.shape[1] // 2)
    row, column = float(aligned[middle[0]].sum()), float(aligned[:, middle[1]].sum())
    fair = reachable(aligned)
    here, opposite = (fair[middle[0] + sign * peak[0], middle[1] + sign * peak[1]] for sign in (1, -1))
    if _reaches(aligned[middle], 0.5):
        return "strict"
    if peak != (0, 0) and _reaches(local, 0.5) and _reaches(here, 2 * opposite):
        return "offset"
    lines = ((row, column), (column, row))
    if any(_reaches(line, 0.5) and _reaches(line, 2 * other) for line, other in lines):
        return "axial"
    return "soft" if _reaches(local, 0.5) else "global"


def _reaches(value: float, least: float) -> bool:
    return bool(value >= least - ROUNDING * abs(least))


def _offsets(shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets down [rows 1] and to the right [1 columns] of an aligned map."""
    down, right = (np.arange(side, dtype=np.int64) - side // 2 for side in shape)
    return down[:, None], right[None]
