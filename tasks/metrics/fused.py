"""Unit vectors of several layers side by side, whose cosine is the mean of the layers' cosines."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from layerboard.tasks.metrics.arrays import lengths
from layerboard.tasks.metrics.neighbours import (
    BANK_ROWS,
    EXTRA,
    Cosines,
    Key,
    Neighbours,
    Vectors,
    chunks,
    products_of_layers,
    settled,
    unit_vectors,
)


def side_by_side(layers: Sequence[Vectors]) -> Vectors:
    """Concatenated vectors [images dim] of layers: each unit (or zero) vector / sqrt(number of layers)."""
    units = []
    for vectors in layers:
        wide = vectors.astype(np.float64)
        units.append((wide / (lengths(wide) * math.sqrt(len(layers)))).astype(np.float32))
    return np.concatenate(units, axis=1)


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
