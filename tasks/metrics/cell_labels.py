"""Labels of the cells of a grid from a mask, the area that a mask covers, and masks from labels of cells.

Source of labels and scores of cells: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS
2023, and its public evaluation (open-hummingbird-eval, commit 5e79da2).
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.metrics.arrays import VOID, Floats, Integers, Labels, Mask
from layerboard.tasks.metrics.bilinear import image_places


def cell_counts(mask: Labels, grid: tuple[int, int], classes: int) -> Integers:
    """Pixels of each class in each cell: [height width classes + 1], the last entry for unlabelled ones.

    A pixel belongs to the cell that contains its centre. The mask [height width] has classes from 0, and 255
    for no class.
    """
    label = np.where(mask != VOID, mask, classes).astype(np.int64)
    row, column = (_cells(length, cells) for length, cells in zip(mask.shape, grid, strict=True))
    cell = (row[:, None] * grid[1] + column) * (classes + 1) + label
    return np.bincount(cell.ravel(), minlength=grid[0] * grid[1] * (classes + 1)).reshape(*grid, classes + 1)


def shares(counts: Integers) -> Floats:
    """Share of each class among the labelled pixels of a cell: [... classes]; 0 if the cell has none."""
    valid = counts[..., :-1].sum(-1, keepdims=True)
    return np.asarray(counts[..., :-1] / np.maximum(valid, 1), dtype=np.float64)


def usable_cells(counts: Integers, least: float) -> Mask:
    """Whether cells [...] have at least one labelled pixel, and a labelled share of at least ``least``."""
    valid = counts[..., :-1].sum(-1)
    return np.asarray((valid > 0) & (valid >= least * counts.sum(-1)))


def chosen_cells(counts: Integers, usable: Mask, draws: Floats, most: int) -> Integers:
    """Ascending indices of at most ``most`` cells of an image, preferring cells with few or rare classes.

    The score of a cell is a sum over its classes: for each, the number of usable cells of the image with that
    class. It is multiplied by the cell's random number in ``draws`` [cells], in [0, 1). The cells with the
    smallest products are kept; ties go to the lower index. ``counts`` is [cells classes + 1] from
    `cell_counts`, with cells in row-major order.
    """
    there = (counts[:, :-1] > 0) & usable[:, None]
    score = (there @ there.sum(0)) * draws
    cells = np.flatnonzero(usable)
    return np.sort(cells[np.argsort(score[cells], kind="stable")[:most]])


def generator_of(*facts: object) -> np.random.Generator:
    """Random generator seeded by the given facts alone, such as an image's name and a seed."""
    state = blake2b(repr(facts).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(state, "little")))


def cell_draws(key: str, grid: tuple[int, int], seed: int) -> Floats:
    """Uniform random numbers [cells], which depend only on the image's name, the grid and the seed."""
    return generator_of(key, *grid, seed).random(grid[0] * grid[1])


def evenly_spaced(count: int, most: int) -> Sequence[int]:
    """At most ``most`` indices below ``count``, ascending and evenly spaced."""
    if count <= most:
        return range(count)
    return [(2 * number + 1) * count // (2 * most) for number in range(most)]


def resized_labels(mask: Labels, size: tuple[int, int], *, centres: bool) -> Labels:
    """Labels resized to another (width, height) by nearest neighbour: [height width].

    With ``centres``, a pixel takes the label under its centre (floor((i + 1/2) in / out)), otherwise the one
    under its first corner (floor(i in / out)), as PyTorch's "nearest" interpolation does.
    """
    rows, columns = (
        _cells(length, given) if centres else np.arange(length) * given // length
        for length, given in zip(size[::-1], mask.shape, strict=True)
    )
    return np.asarray(mask[rows[:, None], columns])


def _cells(length: int, cells: int) -> Integers:
    """Cell of each pixel along one axis: the cell that contains the pixel's centre."""
    return (2 * np.arange(length, dtype=np.int64) + 1) * cells // (2 * length)


def cell_areas(mask: Mask, grid: tuple[int, int]) -> Integers:
    """Area of each cell that a mask covers, [height width]: integers, in pixels / number of cells."""
    sides = zip(mask.shape, grid, strict=True)
    rows, columns = (overlaps(length * np.arange(cells + 1), length, cells) for length, cells in sides)
    return np.asarray(rows @ mask.astype(np.float64) @ columns.T, dtype=np.int64)  # whole below 2^53


def cell_shares(mask: Mask, grid: tuple[int, int]) -> Floats:
    """Share of each cell that a mask covers, 0 to 1: [height width] float64."""
    return np.asarray(cell_areas(mask, grid) / mask.size, dtype=np.float64)


def area_labels(mask: Labels, grid: tuple[int, int], channels: int) -> Tensor:
    """Share of each cell that each object of a mask covers: [height width channels] float32.

    Channel 0 is the background (0 and 255).
    """
    objects = [cell_shares(mask == number, grid) for number in range(1, channels)]
    background = cell_shares((mask == 0) | (mask == VOID), grid)
    return torch.from_numpy(np.stack([background, *objects], axis=-1).astype(np.float32))


def overlaps(edges: Integers | Floats, pixels: int, size: int = 1) -> Floats:
    """Overlap of pixels of side ``size`` with the intervals between edges along an axis: [cells pixels]."""
    starts = size * np.arange(pixels)
    overlap = np.minimum(edges[1:, None], starts + size) - np.maximum(edges[:-1, None], starts)
    return np.asarray(np.maximum(overlap, 0), dtype=np.float64)


BAND = 1 << 22  # label values of pixels in memory at a time


def label_map(vectors: Tensor, size: tuple[int, int]) -> Labels:
    """The class with the largest value at each pixel of an image (width, height): [height width] uint8.

    Label vectors are [height width classes], finite, not negative, on the CPU, with at most 255 classes. They
    are upsampled bilinearly between cell centres, and are constant beyond the outermost ones. Ties go to the
    lowest class. Bands of rows bound the memory.
    """
    # a class without any vote wins only if no class has a vote: then the lowest class is taken
    there = torch.unique(torch.cat([vectors.flatten(0, 1).amax(0).nonzero()[:, 0], torch.tensor([0])]))
    grid = vectors[:, :, there].permute(2, 0, 1).contiguous()
    places = image_places(size, (grid.shape[1], grid.shape[2]))
    bands = [
        first_largest((band.to(grid) @ grid) @ places.columns.to(grid).T)
        for band in torch.split(places.rows, max(1, BAND // (len(there) * size[0])))
    ]
    return np.asarray(there.to(torch.uint8)[torch.cat(bands).long()].numpy())


def first_largest(channels: Tensor) -> Tensor:
    """Index of the largest channel of each pixel, the lowest of equal ones: uint8 [height width].

    It compares whole channels, at most 255; an arg-max across channels is many times slower on a CPU.
    """
    best = channels[0]
    ids = torch.zeros_like(best, dtype=torch.uint8)
    for number in range(1, len(channels)):
        ids.masked_fill_(channels[number] > best, number)
        best = torch.maximum(best, channels[number])
    return ids
