"""Which examples show what changes over depth."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["lost", "found", "failed", "held"]

WORDS: dict[Kind, str] = {
    "lost": "lost with depth",
    "found": "found with depth",
    "failed": "failed at every layer",
    "held": "right at every layer",
}

WANTED: dict[Kind, int] = {"lost": 2, "found": 2, "failed": 2, "held": 1}
"""How many of each kind are shown at most, in this order."""

CHANGE = 25.0
"""Points by which an example changes that is said to be lost or found."""

GOOD, BAD = 75.0, 40.0
"""Points from which on an example is held, and up to which it has failed."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Story:
    """An example and why it is shown."""

    place: int
    kind: Kind


def stories(quality: Floats) -> list[Story]:
    """The examples to show, kind by kind; of each kind those that show it most, then in their order.

    Args:
        quality: How good each layer is on each example, 0 to 100: [layers examples].
    """
    lost = quality.max(axis=0) - quality[-1]
    found = quality[-1] - quality.min(axis=0)
    ranks: dict[Kind, Floats] = {
        "lost": np.where(lost >= CHANGE, lost, np.nan),
        "found": np.where((found >= CHANGE) & (lost < CHANGE), found, np.nan),
        "failed": np.where(quality.max(axis=0) <= BAD, -quality.max(axis=0), np.nan),
        "held": np.where(quality.min(axis=0) >= GOOD, quality.min(axis=0), np.nan),
    }
    told: list[Story] = []
    for kind, most in WANTED.items():
        rank = ranks[kind]
        order = [place for place in np.argsort(-rank, kind="stable").tolist() if not np.isnan(rank[place])]
        told += [Story(place, kind) for place in order[:most]]
    return told
