"""Examples: the few things of which a task keeps what each layer predicted, so that it can be drawn later.

Which these are depends on the names of the images alone, never on a backbone or a layer, so that all can be
compared on them. What is kept is small and capped: predictions here, pictures in
`leaderboards.records.thumbnails`. No score depends on any of it.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.metrics.arrays import VOID

VERSION = 2  # changes when what is kept would for the same features; stored vectors stay as they are then
SEED = 14  # of the draw of examples
SIDE = 96  # longer side in pixels of a mask that is kept, and the longest of a picture
Predicted = Mapping[str, NDArray[np.generic]]
"""What one layer said of a task's examples, by name; the same names and shapes for every layer."""


def drawn(keys: Sequence[str], count: int, strata: Sequence[Any] | None = None) -> list[int]:
    """Places of so many different names, or all, in rising order; which ones depends on the names alone.

    Names come in the order of their hashes, so that the draw hardly changes when others come or go. Of a name
    that is there several times the first place is taken. Strata take turns, so that none comes twice before
    all have come that can.
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
    """Object ids [height width] at the size of `shrunk`, in the corner of a square that is 255 elsewhere."""
    square = np.full((SIDE, SIDE), VOID, np.uint8)
    width, height = shrunk((mask.shape[1], mask.shape[0]))
    small = Image.fromarray(mask).resize((width, height), Image.Resampling.NEAREST)
    square[:height, :width] = np.asarray(small, np.uint8)
    return square


def by_key(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, Sample]:
    """The samples of those names, in the order of the names."""
    wanted = dict.fromkeys(name for name in names if name)
    by_name = {sample.key: sample for sample in samples if sample.key in wanted}
    return {name: by_name[name] for name in wanted if name in by_name}


def _rank(name: str) -> tuple[bytes, str]:
    return blake2b(f"{SEED}|{name}".encode(errors="surrogatepass"), digest_size=8).digest(), name
