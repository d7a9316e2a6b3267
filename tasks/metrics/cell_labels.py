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
    """How many pixels of each class each cell holds: [height width classes + 1], the last ones of no class.

    A pixel belongs to the cell that its centre lies in; the mask holds classes from 0, and 255 for none.
    Raises ValueError where it is no uint8 image, the grid is empty, or a pixel has an unknown class.
    """
    if mask.ndim != 2 or not mask.size or mask.dtype != np.uint8:
        raise ValueError(f"expected a mask [height width] of uint8, found {mask.shape} {mask.dtype}")
    if min(grid) < 1 or not 1 <= classes <= VOID:
        raise ValueError(f"expected a grid of at least one cell and 1 to {VOID} classes: {grid}, {classes}")
    valid = mask != VOID
    if (largest := int(mask[valid].max(initial=0))) >= classes:
        raise ValueError(f"a pixel has the class {largest}, of {classes} classes from 0")
    label = np.where(valid, mask, classes).astype(np.int64)
    row, column = (_cells(length, cells) for length, cells in zip(mask.shape, grid, strict=True))
    cell = (row[:, None] * grid[1] + column) * (classes + 1) + label
    return np.bincount(cell.ravel(), minlength=grid[0] * grid[1] * (classes + 1)).reshape(*grid, classes + 1)


def shares(counts: Integers) -> Floats:
    """Share of each class among a cell's pixels that have one: [... classes]; 0 where none has."""
    valid = counts[..., :-1].sum(-1, keepdims=True)
    return np.asarray(counts[..., :-1] / np.maximum(valid, 1), dtype=np.float64)


def usable_cells(counts: Integers, least: float) -> Mask:
    """Cells [...] of which at least one pixel, and at least a share of all pixels, has a class."""
    valid = counts[..., :-1].sum(-1)
    return np.asarray((valid > 0) & (valid >= least * counts.sum(-1)))


def chosen_cells(counts: Integers, usable: Mask, draws: Floats, most: int) -> Integers:
    """At most so many cells of an image, rising: rare classes and cells of few classes are preferred.

    A cell's score is the sum, over the classes in it, of how many usable cells [cells] of the image hold the
    class; it is multiplied by the cell's draw [cells], in [0, 1), and the cells of the smallest products are
    kept, of equal ones the lower. Counts are [cells classes + 1] as of ``cell_counts``, cells in row-major
    order.
    """
    there = (counts[:, :-1] > 0) & usable[:, None]
    score = (there @ there.sum(0)) * draws
    cells = np.flatnonzero(usable)
    return np.sort(cells[np.argsort(score[cells], kind="stable")[:most]])


def generator_of(*facts: object) -> np.random.Generator:
    """A generator whose numbers follow from some facts alone, such as an image's name and a seed."""
    state = blake2b(repr(facts).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(state, "little")))


def cell_draws(key: str, grid: tuple[int, int], seed: int) -> Floats:
    """Uniform numbers [cells] of an image, which depend on nothing but its name, the grid and the seed."""
    return generator_of(key, *grid, seed).random(grid[0] * grid[1])


def evenly_spaced(count: int, most: int) -> Sequence[int]:
    """Places of at most so many of a number of things, rising and evenly spaced."""
    if count <= most:
        return range(count)
    return [(2 * number + 1) * count // (2 * most) for number in range(most)]


def resized_labels(mask: Labels, size: tuple[int, int], *, centres: bool) -> Labels:
    """Labels at another width and height, of the nearest pixel each: [height width].

    A pixel takes the label under its centre (floor((i + 1/2) in / out)) or else under its first corner
    (floor(i in / out)), as interpolation by "nearest" of PyTorch does.
    """
    rows, columns = (
        _cells(length, given) if centres else np.arange(length) * given // length
        for length, given in zip(size[::-1], mask.shape, strict=True)
    )
    return np.asarray(mask[rows[:, None], columns])


def _cells(length: int, cells: int) -> Integers:
    """Cell of each pixel along one axis: the one that its centre lies in."""
    return (2 * np.arange(length, dtype=np.int64) + 1) * cells // (2 * length)


def cell_areas(mask: Mask, grid: tuple[int, int]) -> Integers:
    """Area that a mask covers of each cell, [height width], in whole parts: a pixel's over how many cells."""
    sides = zip(mask.shape, grid, strict=True)
    rows, columns = (overlaps(length * np.arange(cells + 1), length, cells) for length, cells in sides)
    return np.asarray(rows @ mask.astype(np.float64) @ columns.T, dtype=np.int64)  # whole below 2^53


def cell_shares(mask: Mask, grid: tuple[int, int]) -> Floats:
    """Share of each cell that a mask covers, in [0, 1]: [height width] float64."""
    return np.asarray(cell_areas(mask, grid) / mask.size, dtype=np.float64)


def area_labels(mask: Labels, grid: tuple[int, int], channels: int) -> Tensor:
    """Share of each cell that is of each object of a mask, the background (0 and 255) first.

    [height width channels] float32.
    """
    objects = [cell_shares(mask == number, grid) for number in range(1, channels)]
    background = cell_shares((mask == 0) | (mask == VOID), grid)
    return torch.from_numpy(np.stack([background, *objects], axis=-1).astype(np.float32))


def overlaps(edges: Integers | Floats, pixels: int, size: int = 1) -> Floats:
    """How much of each pixel, of that size, is between each two edges along one axis: [cells pixels]."""
    starts = size * np.arange(pixels)
    overlap = np.minimum(edges[1:, None], starts + size) - np.maximum(edges[:-1, None], starts)
    return np.asarray(np.maximum(overlap, 0), dtype=np.float64)


BAND = 1 << 22  # label values of pixels held at a time


def label_map(vectors: Tensor, size: tuple[int, int]) -> Labels:
    """The class with the largest value at each pixel of an image (width, height): [height width] uint8.

    Label vectors [height width classes], finite, not negative, on the CPU and of at most 255 classes, are
    upsampled bilinearly between the centres of cells, constant beyond the outermost ones; of equal classes
    the lowest counts. Memory is bounded by bands of rows. Raises ValueError for anything else.
    """
    if vectors.ndim != 3 or not vectors.numel() or vectors.shape[-1] > 255 or min(size) < 1:
        shapes = f"{tuple(vectors.shape)} and {size}"
        raise ValueError(f"expected label vectors [height width classes <= 255] and a size, found {shapes}")
    if not bool((vectors.isfinite() & (vectors >= 0)).all()):
        raise ValueError("label vectors must be finite and not negative")
    # a class without a vote wins nowhere but where all have none: then the lowest class counts
    there = torch.unique(torch.cat([vectors.flatten(0, 1).amax(0).nonzero()[:, 0], torch.tensor([0])]))
    grid = vectors[:, :, there].permute(2, 0, 1).contiguous()
    places = image_places(size, (grid.shape[1], grid.shape[2]))
    bands = [
        first_largest((band.to(grid) @ grid) @ places.columns.to(grid).T)
        for band in torch.split(places.rows, max(1, BAND // (len(there) * size[0])))
    ]
    return np.asarray(there.to(torch.uint8)[torch.cat(bands).long()].numpy())


def first_largest(channels: Tensor) -> Tensor:
    """Number of the largest channel of each pixel, the lowest of equal ones: uint8 [height width].

    A few comparisons of whole channels, at most 255; an arg-max across them is many times slower on a CPU.
    """
    best = channels[0]
    ids = torch.zeros_like(best, dtype=torch.uint8)
    for number in range(1, len(channels)):
        ids.masked_fill_(channels[number] > best, number)
        best = torch.maximum(best, channels[number])
    return ids
