"""Leave-one-out neighbours: the nearest neighbours of each item among the items outside its group."""

import numpy as np
import torch

from layerboard.tasks.metrics.arrays import Integers
from layerboard.tasks.metrics.neighbours import Neighbours, Vectors, chunks, concatenate_neighbours, nearest


def room_for(groups: Integers, k: int) -> tuple[int, int]:
    """Number of neighbours, at most k, that every item has outside its group, and the number to search.

    Groups are [n], from 0. The search must return that many plus the size of the largest group.
    """
    largest = int(np.bincount(groups).max())
    k = min(k, len(groups) - largest)
    return k, k + largest


def outside(neighbours: Neighbours, asked: Integers, groups: Integers, k: int) -> Neighbours:
    """The first k neighbours of each item that are outside its group, in order.

    ``asked`` [queries] are the groups of the items, ``groups`` those of the bank. `room_for` gives the number
    of neighbours that is needed.
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
    """The k vectors of highest cosine to each vector [n dim] that are outside its group: leave-one-out.

    Groups are [n], from 0; a vector without a group has one of its own. If some vector has fewer than k
    outside its group, all get that smaller number. Otherwise as `nearest`.
    """
    k, wide = room_for(groups, k)
    parts = (
        outside(nearest(vectors, vectors[rows], wide, device=device), groups[rows], groups, k)
        for rows in chunks(len(vectors), wide)
    )
    return concatenate_neighbours([*parts], k)
