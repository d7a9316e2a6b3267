"""What attention gives to special tokens, to itself, and how spread it is.

The attention to the class token is an auxiliary number of the released code of Walmer et al., CVPR 2023,
which reads the first patch in its place; that is not copied. The other numbers are this package's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from tasks.analyses.base import NOT_FINITE, KeptImages, LayerSummary, ProbeAnalysis, Tally
from tasks.base import LayerOutcome, Outcome
from tasks.feeds import ATTENTION
from tasks.metrics.attention_maps import entropy
from zoo.features import AttentionMaps
from zoo.spec import Layer

POOLINGS = ("patch", "cls")
"""Tokens that ask."""

METRICS = ("entropy", "attention-to-cls", "attention-to-registers", "attention-to-self")


@dataclass(frozen=True, eq=False)
class AttentionShares(ProbeAnalysis[AttentionMaps]):
    """How much attention goes to the class token, to all registers and to the asking token, and its entropy.

    Patches ask (pooling ``patch``), and the class token (``cls``). The entropy is that over all tokens, as a
    share of the largest. There are no numbers of a class token or of registers where there are none.
    """

    feed = ATTENTION

    def reduce(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> dict[str, Tensor]:
        """Numbers of images and heads, [images heads] float32, by who asks and metric (``cls/entropy``)."""
        every, prefix = maps.probabilities, maps.prefix_tokens
        spread, patches = entropy(every), every[:, :, prefix:]
        shares = {
            "patch/entropy": spread[..., prefix:].mean(dim=-1),
            "patch/attention-to-self": every.diagonal(dim1=-2, dim2=-1)[..., prefix:].float().mean(dim=-1),
        }
        if prefix:
            shares["patch/attention-to-cls"] = patches[..., 0].float().mean(dim=-1)
            shares["cls/entropy"] = spread[..., 0].clone()
            shares["cls/attention-to-cls"] = every[:, :, 0, 0].clone().float()
        if prefix > 1:
            shares["patch/attention-to-registers"] = patches[..., 1:prefix].float().sum(dim=-1).mean(dim=-1)
            shares["cls/attention-to-registers"] = every[:, :, 0, 1:prefix].float().sum(dim=-1)
        return shares

    def summarise(self, layer: Layer, images: KeptImages) -> LayerSummary:
        asking = (pooling for pooling in POOLINGS if f"{pooling}/entropy" in images.first)
        return LayerSummary([LayerOutcome(layer, pooling, _outcome(images, pooling)) for pooling in asking])


def _outcome(images: KeptImages, pooling: str) -> Outcome:
    """Scores of one block by one kind of asking tokens."""
    names = {metric: f"{pooling}/{metric}" for metric in METRICS}
    tables = {metric: images.each(name) for metric, name in names.items() if name in images.first}
    if not all(np.isfinite(table).all() for table in tables.values()):
        return Outcome((), empty=NOT_FINITE)
    tally = Tally(images.keys)
    for metric, table in tables.items():
        tally.heads(metric, table)
    return tally.outcome()
