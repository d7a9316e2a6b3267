"""Leave-one-out neighbours: those of each item among all others that are not of its group."""

import numpy as np
import torch

from layerboard.tasks.metrics.arrays import Integers
from layerboard.tasks.metrics.neighbours import Neighbours, Vectors, chunks, joined, nearest


def room_for(groups: Integers, k: int) -> tuple[int, int]:
    """Neighbours that every item has outside its group, at most k, and how many to search to find them.

    Groups are [n], from 0; what is searched has the items of the largest group, too.
    """
    largest = int(np.bincount(groups).max())
    k = min(k, len(groups) - largest)
    return k, k + largest


def outside(neighbours: Neighbours, asked: Integers, groups: Integers, k: int) -> Neighbours:
    """The first k neighbours of each item that are not of its group, in their order.

    ``asked`` are the groups of the items, [queries], and ``groups`` those of the bank; neighbours are as many
    as `room_for` says.
    """
    own = groups[neighbours.index] == asked[:, None]
    first = np.argsort(own, axis=1, kind="stable")[:, :k]
    return Neighbours(
        np.take_along_axis(neighbours.similarity, first, axis=1),
        np.take_along_axis(neighbours.index, first, axis=1),
    )


def nearest_outside(
    vectors: Vectors, groups: Integers, k: int, *, device: torch.device | None = None
) -> Neighbours:
    """The k vectors of highest cosine to each vector [n dim] that are not of its group: leave-one-out.

    Groups are [n], from 0; a vector that stands alone has one of its own. Where some vector has fewer outside
    its group, all get as few. Otherwise as `nearest`.
    """
    k, wide = room_for(groups, k)
    parts = (
        outside(nearest(vectors, vectors[rows], wide, device=device), groups[rows], groups, k)
        for rows in chunks(len(vectors), wide)
    )
    return joined([*parts], k)
