"""A class for every pixel of an image, from label vectors of the cells of a grid."""

import numpy as np
import torch
from torch import Tensor

from tasks.metrics.arrays import Labels
from tasks.metrics.bilinear import image_places

BAND = 1 << 22  # label values of pixels held at a time


def label_map(vectors: Tensor, size: tuple[int, int]) -> Labels:
    """The class with the largest value at each pixel: [image height, image width] uint8.

    Label vectors are upsampled bilinearly between the centres of cells, constant beyond the outermost ones;
    of equal classes the lowest counts. Memory is bounded by bands of rows.

    Args:
        vectors: [height width classes] finite label vectors, not negative, on the CPU; at most 255 classes.
        size: Image width and height.

    Raises:
        ValueError: A wrong shape, or values that are negative, NaN or infinite.
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
    step = max(1, BAND // (len(there) * size[0]))
    bands = [
        first_largest((band.to(grid) @ grid) @ places.columns.to(grid).T)
        for band in torch.split(places.rows, step)
    ]
    return np.asarray(there.to(torch.uint8)[torch.cat(bands).long()].numpy())


def first_largest(channels: Tensor) -> Tensor:
    """Number of the largest channel of each pixel, the lowest of equal ones: uint8 [height width].

    A few comparisons of whole channels; an arg-max across them is many times slower on a CPU.

    Args:
        channels: [channels height width], at most 255 of them.
    """
    best = channels[0]
    ids = torch.zeros_like(best, dtype=torch.uint8)
    for number in range(1, len(channels)):
        ids.masked_fill_(channels[number] > best, number)
        best = torch.maximum(best, channels[number])
    return ids
