"""Sets of layers: concatenated unit vectors, whose cosine is the mean of the layers' cosines."""

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
    products_of_sets,
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


def nearest_of_sets(
    banks: Mapping[Key, Vectors],
    queries: Mapping[Key, Vectors],
    sets: Mapping[Key, Sequence[Key]],
    k: int,
    *,
    device: torch.device | None = None,
) -> Iterator[dict[Key, Neighbours]]:
    """Exact search of the k bank vectors with the highest cosine to each query, for each set of layers.

    The cosine of a set is the mean of its layers' cosines; ties are ordered by bank index. The products of a
    layer are computed once, however many sets contain it. They are in float64, so that the cosines, rounded
    to float32, depend neither on the blocks nor on the device. The unit vectors of all layers are in memory
    in float32, together with as many similarities as a search of one layer needs and the neighbours of a
    chunk of queries.

    Each layer has a bank [n dim] and queries [m dim], finite and of any length. A zero vector has cosine 0
    with every vector. If n < k, n neighbours are returned. Yields the neighbours of each set for consecutive
    chunks of queries.
    """
    if not sets:
        return
    units = {layer: (unit_vectors(bank), unit_vectors(queries[layer])) for layer, bank in banks.items()}
    stored, asked = (len(part) for part in next(iter(units.values())))
    k = min(k, stored)
    product_device = None if device is None or device.type == "mps" else device  # MPS has no float64
    cosines = {name: Cosines([units[member] for member in members]) for name, members in sets.items()}
    for rows in chunks(asked, min(stored, BANK_ROWS)):
        searched = products_of_sets(units, sets, rows, min(k + EXTRA, stored), product_device, torch.float64)
        yield {name: settled(cosines[name].of(rows), member, k) for name, member in searched.items()}
