"""Whether a matrix of CKA falls into two parts at a block: what a missing skip connection does.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, figure 8,
which shows it as a picture; the number is ours.
"""

from dataclasses import dataclass

import numpy as np

from tasks.metrics.arrays import Floats, Integers


@dataclass(frozen=True, slots=True)
class Partition:
    """How alike layers are on one side of a block, and across it; NaN where there are no such pairs.

    Attributes:
        within: Mean CKA of two different layers that are both before the block's output, or both not.
        across: Mean CKA of a layer before the block's output and one that is not.
    """

    within: float
    across: float

    @property
    def score(self) -> float:
        """``within`` - ``across``: 1 for two parts that share nothing, 0 where the block parts nothing."""
        return self.within - self.across


def partition(cka: Floats, layers: Integers, block: int) -> Partition:
    """How a block parts the layers of a network.

    Args:
        cka: CKA of the blocks' outputs with each other, [layers layers]; NaN where there is none.
        layers: Index of each, distinct; 0 is what enters block 1.
        block: The block, from 1: layers below it stand on one side, it and those after it on the other.
    """
    before, _ = np.meshgrid(layers < block, layers, indexing="ij")
    after = before.T
    upper = (layers[:, None] < layers[None, :]) & np.isfinite(cka)
    return Partition(_mean(cka[upper & (before == after)]), _mean(cka[upper & before & ~after]))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
