"""Examples: a few items for which a task keeps the prediction of each layer, to draw them later.

The choice depends only on the names of the images, never on a backbone or a layer, so that all can be
compared on the same examples. Their size is limited. Predictions are stored here, pictures in
`leaderboards.records.thumbnails`. No score depends on examples.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.metrics.arrays import VOID

VERSION = 2  # changes if the examples of the same features would change; stored vectors stay valid
SEED = 14  # of the draw of examples
SIDE = 96  # longer side of a stored mask, and the longest side of a picture, in pixels
Predicted = Mapping[str, NDArray[np.generic]]
"""Predictions of one layer for a task's examples: named arrays, the same names and shapes for all layers."""


def drawn_indices(keys: Sequence[str], count: int, strata: Sequence[Any] | None = None) -> list[int]:
    """Ascending indices of ``count`` distinct names, or all; the draw depends only on the names.

    Names are drawn in the order of their hashes, so the draw hardly changes if names are added or removed.
    For a repeated name, the first index is taken. Strata take turns.
    """
    first = {key: row for row, key in reversed([*enumerate(keys)])}
    seen: dict[str, int] = {}
    ranked = []
    for key in sorted(first, key=_rank):
        stratum = "" if strata is None else str(strata[first[key]])
        turn = seen[stratum] = seen.get(stratum, 0) + 1
        ranked.append((turn, _rank(stratum), first[key]))
    return sorted(row for *_, row in sorted(ranked)[:count])


def shrunk(size: tuple[int, int], side: int = SIDE) -> tuple[int, int]:
    """Width and height of an image whose longer side is ``side``; a smaller one keeps its size."""
    longest = max(size)
    if longest <= side:
        return size
    return max(1, round(size[0] * side / longest)), max(1, round(size[1] * side / longest))


def small_mask(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Object ids [height width] at the size of `shrunk`, in the corner of a square padded with 255."""
    square = np.full((SIDE, SIDE), VOID, np.uint8)
    width, height = shrunk((mask.shape[1], mask.shape[0]))
    small = Image.fromarray(mask).resize((width, height), Image.Resampling.NEAREST)
    square[:height, :width] = np.asarray(small, np.uint8)
    return square


def by_key(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, Sample]:
    """The samples with these names, in the order of the names."""
    wanted = dict.fromkeys(name for name in names if name)
    by_name = {sample.key: sample for sample in samples if sample.key in wanted}
    return {name: by_name[name] for name in wanted if name in by_name}


def _rank(name: str) -> tuple[bytes, str]:
    return blake2b(f"{SEED}|{name}".encode(errors="surrogatepass"), digest_size=8).digest(), name
