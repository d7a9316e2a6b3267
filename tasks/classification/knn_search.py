"""Searches of k-NN: outside the group of each item (leave-one-out), and for several layers at once."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from layerboard.tasks.metrics.arrays import Integers
from layerboard.tasks.metrics.neighbours import (
    BANK_ROWS,
    EXTRA,
    Cosines,
    Key,
    Neighbours,
    Vectors,
    chunks,
    concatenate_neighbours,
    nearest,
    products_of_layers,
    settled,
    unit_vectors,
)


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


def nearest_of_layers(
    banks: Mapping[Key, Vectors],
    queries: Mapping[Key, Vectors],
    layers: Mapping[Key, Sequence[Key]],
    k: int,
    *,
    device: torch.device | None = None,
) -> Iterator[dict[Key, Neighbours]]:
    """Exact search of the k bank vectors with the highest cosine to each query, for each layer.

    ``layers`` lists the members of each. The cosine of a layer is the mean of its members' cosines; ties are
    ordered by bank index. The products of a member are computed once, however many layers have it. They are
    in float64, so that the cosines, rounded to float32, depend neither on the blocks nor on the device. The
    unit vectors of all members are in memory in float32, together with as many similarities as a search of
    one layer needs and the neighbours of a chunk of queries.

    Each member has a bank [n dim] and queries [m dim], finite and of any length. A zero vector has cosine 0
    with every vector. If n < k, n neighbours are returned. Yields the neighbours of each layer for
    consecutive chunks of queries.
    """
    if not layers:
        return
    units = {member: (unit_vectors(bank), unit_vectors(queries[member])) for member, bank in banks.items()}
    stored, asked = (len(part) for part in next(iter(units.values())))
    k = min(k, stored)
    product_device = None if device is None or device.type == "mps" else device  # MPS has no float64
    cosines = {name: Cosines([units[member] for member in members]) for name, members in layers.items()}
    wanted = min(k + EXTRA, stored)
    for rows in chunks(asked, min(stored, BANK_ROWS)):
        nearest = products_of_layers(units, layers, rows, wanted, product_device, torch.float64)
        yield {name: settled(cosines[name].of(rows), candidates, k) for name, candidates in nearest.items()}
