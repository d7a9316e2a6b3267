"""What attention gives to special tokens, to itself, and how spread it is.

The attention to the class token is an auxiliary number of the released code of Walmer et al., CVPR 2023,
which reads the first patch in its place; that is not copied. The other numbers are this package's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from tasks.analyses.tally import NOT_FINITE, Tally, joined, keys_of, seen
from tasks.base import Findings, Group, LayerOutcome, Measurements, Measurer, Outcome, Source, digest
from tasks.checks import nothing_read
from tasks.feeds import ATTENTION, AttentionFeed
from tasks.metrics.attention_maps import entropy
from tasks.sources import ProbeSources
from zoo.features import AttentionMaps
from zoo.spec import Layer
from zoo.view.views import View

POOLINGS = ("patch", "cls")
"""Tokens that ask."""

METRICS = ("entropy", "attention-to-cls", "attention-to-registers", "attention-to-self")


@dataclass(frozen=True)
class AttentionShares:
    """How much attention goes to the class token, to all registers and to the asking token, and its entropy.

    Patches ask (pooling ``patch``), and the class token (``cls``). The entropy is that over all tokens, as a
    share of the largest. There are no numbers of a class token or of registers where there are none.
    """

    where: ProbeSources

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset."""
        return self.where.probe

    @property
    def feed(self) -> AttentionFeed:
        """Measurers are fed attention probabilities."""
        return ATTENTION

    @cached_property
    def fingerprint(self) -> str:
        """Digest of what it is: it has no numbers of its own and no ground truth."""
        return digest("attention-shares", 1)

    def measure(self, group: Group, view: View) -> Measurer[AttentionMaps]:
        """A measurer of some images."""
        return _ShareMeasurer()

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """Means over the images of each block, all heads together, and each; raises UnreadableImageError."""
        outcomes: list[LayerOutcome] = []
        for layer, groups in measured.items():
            found = seen(self.source, groups)
            if found:
                outcomes += [
                    LayerOutcome(layer, pooling, _outcome(found, pooling))
                    for pooling in POOLINGS
                    if f"{pooling}/entropy" in found[0][1]
                ]
        if not outcomes:
            raise nothing_read(self.source)
        return Findings(tuple(outcomes))


class _ShareMeasurer:
    """Keeps some numbers for each image, block and head; the maps are dropped."""

    def __init__(self) -> None:
        self._kept: dict[Layer, list[tuple[Sequence[int], dict[str, Tensor]]]] = {}

    def update(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> None:
        self._kept.setdefault(layer, []).append((positions, attention_shares(maps)))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        parts = self._kept.pop(layer, [])
        if not parts:
            return {}
        tables = {name: torch.cat([found[name] for _, found in parts]) for name in parts[0][1]}
        positions = torch.tensor([position for positions, _ in parts for position in positions])
        return {"position": positions, **tables}


def attention_shares(maps: AttentionMaps) -> dict[str, Tensor]:
    """Numbers of each image and head, [images heads] float32, by who asks and metric (``cls/entropy``)."""
    first, prefix = maps.probabilities, maps.prefix_tokens
    spread = entropy(first)
    patches = first[:, :, prefix:]
    found = {
        "patch/entropy": spread[..., prefix:].mean(dim=-1),
        "patch/attention-to-self": first.diagonal(dim1=-2, dim2=-1)[..., prefix:].float().mean(dim=-1),
    }
    if prefix:
        found["patch/attention-to-cls"] = patches[..., 0].float().mean(dim=-1)
        found["cls/entropy"] = spread[..., 0].clone()
        found["cls/attention-to-cls"] = first[:, :, 0, 0].clone().float()
    if prefix > 1:
        found["patch/attention-to-registers"] = patches[..., 1:prefix].float().sum(dim=-1).mean(dim=-1)
        found["cls/attention-to-registers"] = first[:, :, 0, 1:prefix].float().sum(dim=-1)
    return found


def _outcome(found: Sequence[tuple[Group, Measurements]], pooling: str) -> Outcome:
    """Scores of one block by one kind of asking tokens."""
    there = found[0][1]
    tables = {name: joined(found, f"{pooling}/{name}") for name in METRICS if f"{pooling}/{name}" in there}
    if not all(np.isfinite(table).all() for table in tables.values()):
        return Outcome((), empty=NOT_FINITE)
    tally = Tally(keys_of(found))
    for name, table in tables.items():
        tally.heads(name, table)
    return tally.outcome()
