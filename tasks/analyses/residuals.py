"""Residual sums: whether a block's skip or its branch carries more, and whether the branch turns the stream.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section 6,
figure 7 and appendix E. The order of means is not stated there: here over tokens, then over images. Frobenius
norms are those of the released code of Walmer et al., Teaching Matters, CVPR 2023.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tasks.analyses.residual_findings import MEASURES, Blocks, phase_transitions
from tasks.analyses.sums import Taps, gap_of, parts_of, rounding
from tasks.base import Findings, Group, Measurements, Measurer, Source, digest
from tasks.checks import nothing_read
from tasks.feeds import ResidualFeed, Sum, sums_of
from tasks.metrics.residual import cosine, frobenius_ratio, norm_ratio
from tasks.sources import ProbeSources
from zoo.spec import Layer
from zoo.view.views import View


@dataclass(frozen=True)
class Residuals:
    """Length of the skip over that of the branch, and the angles between them, in every block.

    ``norm-ratio`` is the mean over the tokens of a kind (``cls``, ``patch``, ``all``), then over the images;
    ``norm-ratio-frobenius`` that of all patch tokens together. Cosines are those of skip, branch and output
    (for a ConvNet before it is rectified). A token whose branch is zero has no ratio and no cosine with it;
    ``zero-branches`` counts such tokens. ``phase-transition`` is the first block in which the ratio of the
    patches is above that of the class token.
    """

    where: ProbeSources

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset."""
        return self.where.probe

    @property
    def feed(self) -> ResidualFeed:
        """Measurers are fed the terms of each block's sums."""
        return ResidualFeed()

    @cached_property
    def fingerprint(self) -> str:
        """Digest of what it is: it has no numbers of its own and no ground truth."""
        return digest("residuals", 1)

    def measure(self, group: Group, view: View) -> Measurer[Taps]:
        """A measurer of some images."""
        return _Measurer()

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """Means over the images for each half of each block; raises UnreadableImageError.

        Records have the tap of the branch: ``attention`` and ``mlp``, or ``branch`` of a ConvNet.

        Arrays: ``ratio`` [blocks halves tokens] mean over the images of the norm ratio, the class token first
        where there is one, NaN where a block has none and beyond the tokens of a smaller grid; ``block``
        [blocks]; ``half`` [halves] taps of the branches.
        """
        found = Blocks.read(self.source, measured)
        if not found.blocks:
            raise nothing_read(self.source)
        outcomes = [outcome for one in found.blocks for outcome in one.outcomes()]
        return Findings((*outcomes, *phase_transitions(found)), found.arrays())


class _Measurer:
    """Keeps a few numbers for each image and block, and sums over the images for each token."""

    def __init__(self) -> None:
        self._kept: dict[Layer, list[dict[str, Tensor]]] = {}

    def update(self, layer: Layer, positions: Sequence[int], taps: Taps) -> None:
        halves = [_half(taps, one, layer) for one in sums_of(layer)]
        found = {name: torch.stack([half[name] for half in halves]) for name in halves[0]}
        found["position"] = torch.tensor(positions)
        found["precision"] = rounding(taps)
        self._kept.setdefault(layer, []).append(found)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        parts = self._kept.pop(layer, [])
        if not parts:
            return {}
        together = {name: [part[name] for part in parts] for name in parts[0]}
        return {
            "position": torch.cat(together["position"]),
            "precision": together["precision"][0],
            "means": torch.cat(together["means"], dim=1),
            "zeros": torch.stack(together["zeros"]).sum(dim=0),
            "gap": torch.stack(together["gap"]).amax(dim=0),
            "ratio": torch.stack(together["ratio"]).sum(dim=0),
            "there": torch.stack(together["there"]).sum(dim=0),
        }


def _half(taps: Taps, one: Sum, layer: Layer) -> dict[str, Tensor]:
    """Measures of one sum: means over the tokens of each kind [images kinds measures], sums over images."""
    skips, branches = (parts_of(taps[tap]) for tap in one[:2])
    kinds = [_by_token(skip, branch) for skip, branch in zip(skips, branches, strict=True)]
    frobenius = frobenius_ratio(skips[-1], branches[-1])
    if len(kinds) > 1:
        kinds.append(torch.cat(kinds, dim=1))
    means = torch.stack([kind.nanmean(dim=1) for kind in kinds], dim=1)
    # measured of the patches alone, which stand second where there is a class token
    others = torch.full_like(means[..., :1], torch.nan)
    others[:, min(1, len(kinds) - 1), 0] = frobenius
    ratios = kinds[-1][..., 0]
    return {
        "means": torch.cat([means, others], dim=-1),
        "zeros": torch.stack([kind[..., 0].isnan().sum() for kind in kinds]),
        "gap": gap_of(taps, one, layer),
        "ratio": ratios.nan_to_num(0.0).double().sum(dim=0),
        "there": (~ratios.isnan()).sum(dim=0),
    }


def _by_token(skip: Tensor, branch: Tensor) -> Tensor:
    """The measures of `MEASURES` but the last for each token, [images tokens measures]."""
    output = skip + branch
    found = (norm_ratio(skip, branch), cosine(skip, output), cosine(skip, branch), cosine(branch, output))
    assert len(found) + 1 == len(MEASURES)
    return torch.stack(found, dim=-1)
