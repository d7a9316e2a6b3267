"""Which backbones are trainings of one network, and what CKA says of two of them layer by layer.

Sources: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, figures
8 and 12 and appendix G.
"""

from dataclasses import dataclass
from math import isnan

import numpy as np
import pandas as pd

from tasks.metrics.structure import Partition, partition


@dataclass(frozen=True, slots=True)
class Variant:
    """A training that differs from its reference.

    Attributes:
        name: The backbone.
        change: What is different, in a few words.
        without_skip: Block that it was trained without skip connections in, from 1; 0 where all have them.
    """

    name: str
    change: str
    without_skip: int = 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """Trainings of one network.

    Attributes:
        reference: The backbone that the others are compared with.
        seed: The same training from another seed: as alike as two trainings get; "" where there is none.
        untrained: The network with random weights: as alike as no training makes; "" where there is none.
        variants: Trainings that differ.
    """

    reference: str
    seed: str
    untrained: str
    variants: tuple[Variant, ...]

    @property
    def members(self) -> tuple[tuple[str, str], ...]:
        """Backbones beside the reference, and what is different about each."""
        ends = ((self.seed, "another seed"), (self.untrained, "untrained"))
        named = ((one.name, one.change) for one in self.variants)
        return (*ends[:1], *named, *ends[1:]) if self.seed else (*named, *ends[1:])


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        reference="mini-fs64",
        seed="mini-fs64-seed1",
        untrained="mini-fs64-untrained",
        variants=(
            Variant("mini-fs64-10pct", "a tenth of the data"),
            Variant("mini-fs64-mean", "class read from the mean of the patches"),
            Variant("mini-fs64-noskip6", "block 6 without skips", without_skip=6),
        ),
    ),
)
"""What pages compare where a suite has records of it."""


@dataclass(frozen=True, slots=True)
class LayerMatch:
    """A block of one backbone among the blocks of another; NaN where nothing was compared.

    Attributes:
        layer: The block.
        same: CKA with the same block of the other.
        spread: Half the width of its 95 % interval.
        best: Highest CKA with any block of the other, from 1 on; the lower block of equal ones.
        at: That block; 0 where there is none.
        depth: How deep it lies in the other, in (0, 1].
    """

    layer: int
    same: float
    spread: float
    best: float
    at: int
    depth: float


def matches(rows: pd.DataFrame, one: str, other: str) -> tuple[LayerMatch, ...]:
    """How alike the blocks of two backbones are, in the order of the first's.

    Args:
        rows: Records of CKA of one dataset, protocol, pooling and set of images.
        one: A backbone.
        other: Another, of the same number of blocks or not; or the same.
    """
    pairs = _pairs(rows, one, other)
    last = int(pairs["other_layer"].max()) if len(pairs) else 0
    found = []
    for layer, own in pairs.groupby("layer"):
        same = own[own["other_layer"] == layer]
        known = own[own["value"].notna()].sort_values(["value", "other_layer"], ascending=[False, True])
        at = int(known["other_layer"].iloc[0]) if len(known) else 0
        found.append(
            LayerMatch(
                int(str(layer)),
                float(same["value"].iloc[0]) if len(same) else float("nan"),
                float(same["spread"].iloc[0]) if len(same) else float("nan"),
                float(known["value"].iloc[0]) if len(known) else float("nan"),
                at,
                at / last if at else float("nan"),
            )
        )
    return tuple(found)


def partition_of(rows: pd.DataFrame, name: str, block: int) -> Partition:
    """How a block parts a backbone, by the CKA of its blocks with each other; NaN where that is not known.

    Args:
        rows: Records of CKA of one dataset, protocol, pooling and set of images.
        name: The backbone.
        block: From 1.
    """
    own = _pairs(rows, name, name, first=0)
    layers = np.array(sorted(set(own["layer"])), np.int64)
    places = {int(layer): place for place, layer in enumerate(layers)}
    cka = np.full((len(layers), len(layers)), np.nan)
    for row, column, value in zip(own["layer"], own["other_layer"], own["value"], strict=True):
        cka[places[int(row)], places[int(column)]] = value
    return partition(cka, layers, block)


def parting(rows: pd.DataFrame, recipe: Recipe) -> list[tuple[Variant, Partition, Partition]]:
    """Variants without the skips of a block, with how it parts them and how it parts the reference."""
    found = []
    for variant in recipe.variants:
        if variant.without_skip:
            both = [
                partition_of(rows, name, variant.without_skip) for name in (variant.name, recipe.reference)
            ]
            if not any(isnan(one.score) for one in both):
                found.append((variant, both[0], both[1]))
    return found


def _pairs(rows: pd.DataFrame, one: str, other: str, first: int = 1) -> pd.DataFrame:
    """Comparisons of blocks of two backbones from a layer on, turned so that the first stands first."""
    blocks = rows[(rows["tap"] == "block") & (rows["other_tap"] == "block") & (rows["metric"] == "CKA")]
    straight = blocks[(blocks["backbone"] == one) & (blocks["other"] == other)]
    turned = blocks[(blocks["backbone"] == other) & (blocks["other"] == one)]
    names = {"layer": "other_layer", "other_layer": "layer"}
    columns = ["layer", "other_layer", "value", "ci_low", "ci_high"]
    both = pd.concat([straight[columns], turned[columns].rename(columns=names)])
    both = both.drop_duplicates(["layer", "other_layer"])
    both = both[(both["layer"] >= first) & (both["other_layer"] >= first)]
    return both.assign(spread=(both["ci_high"] - both["ci_low"]) / 2)
