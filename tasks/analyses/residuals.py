"""Residual sums: norms of a block's skip and branch, and the angles between them.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section 6,
figure 7 and appendix E. The paper does not state the order of means; here it is over tokens, then over
images. Frobenius norms are those of the released code of Walmer et al., Teaching Matters, CVPR 2023.

If the output is not the sum of skip and branch (a norm after the sum, a block without a skip), there is no
ratio, no cosine and no CKA of the two, and a reason is reported. Measures never wait for the device:
undefined values are NaN, and `sum_gap` shows whether features were finite.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.analyses.base import Array, ImageAnalysis, KeptImages, LayerArrays, Tally, first
from layerboard.tasks.framework.base import Findings, LayerOutcome, Outcome, Score
from layerboard.tasks.framework.feeds import ResidualFeed, Sum, sums_of
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import WHOLE_BACKBONE, Layer, Tap

COSINES = ("cosine-skip-output", "cosine-skip-branch", "cosine-branch-output")
MEASURES = ("norm-ratio", *COSINES, "norm-ratio-frobenius")
"""Metrics that are means over the images, in the order of the last axis of what is measured."""

TRANSITION = "phase-transition"

KINDS = ("cls", "patch", "all")
"""Kinds of tokens, as the third axis of what is measured has them; without a class token patches alone."""

TOLERANCE = 1e-4  # largest difference of an output from the sum, as a share of its largest entry
ROUNDINGS = 4  # of a low precision, whose own is coarser than `TOLERANCE`, that are allowed instead

Taps = Mapping[Tap, LayerFeatures]


class Residuals(ImageAnalysis[Taps]):
    """Norm of the skip over that of the branch, and the angles between them, in every block.

    ``norm-ratio`` is the mean over the tokens of a kind (``cls``, ``patch``, ``all``), then over the images;
    ``norm-ratio-frobenius`` that of all patch tokens together. Cosines are those of skip, branch and output
    (for a ConvNet before it is rectified). A token whose branch is zero has no ratio and no cosine with it;
    ``zero-branches`` counts such tokens. ``phase-transition`` is the first block in which the ratio of the
    patches is above that of the class token. Records have the tap of the branch: ``attention`` and ``mlp``,
    or ``branch`` of a ConvNet.
    """

    feed = ResidualFeed()

    joins: ClassVar = {
        "precision": first,
        "means": lambda kept, more: torch.cat([kept, more], dim=1),
        "zeros": torch.add,
        "gap": torch.maximum,
        "ratio": torch.add,
        "there": torch.add,
    }

    def reduce(self, layer: Layer, positions: Sequence[int], taps: Taps) -> dict[str, Tensor]:
        halves = [_half(taps, terms) for terms in sums_of(layer)]
        measures = {name: torch.stack([half[name] for half in halves]) for name in halves[0]}
        return measures | sum_gaps(taps, layer)

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        total, count, zeros = (images.total(name) for name in ("ratio", "there", "zeros"))
        ratio, means = np.where(count > 0, total / np.maximum(count, 1), np.nan), images.each("means", axis=1)
        if reason := unsound(images):
            ratio, means = np.full_like(ratio, np.nan), np.full_like(means, np.nan)
        every, kinds, outcomes = ratio.shape[1], _kinds(means), []
        tokens = {"cls": 1, "patch": every - int("cls" in kinds), "all": every}
        for half, (_, branch, _) in enumerate(sums_of(layer)):
            for kind, pooling in enumerate(kinds):
                outcome = Outcome((), empty=reason)
                if not reason:
                    zero = float(zeros[half, kind]), len(images.keys) * tokens[pooling]
                    outcome = _outcome(images.keys, means[half, :, kind], *zero)
                outcomes.append(LayerOutcome(Layer(layer.index, branch), pooling, outcome))
        return Findings(tuple(outcomes), {"ratio": ratio, "means": means})

    def report(self, outcomes: Sequence[LayerOutcome], layers: LayerArrays) -> Findings:
        """Findings of each block, and the phase transition of each half."""
        transitions = (
            LayerOutcome(replace(WHOLE_BACKBONE, tap=tap), "patch", _transition(layers, half))
            for half, tap in enumerate(branches(layers))
        )
        return super().report((*outcomes, *transitions), layers)

    def arrays(self, layers: LayerArrays) -> dict[str, Array]:
        return {"ratio": layers.stacked("ratio"), "block": layers.blocks, "half": np.array(branches(layers))}


def token_kinds(features: LayerFeatures) -> list[Tensor]:
    """Tokens [images tokens dim] by kind: the class token if there is one, then the patches; views."""
    patches = features.grid.flatten(1, 2)
    return [patches] if features.cls is None else [features.cls[:, None], patches]


def sum_gaps(taps: Taps, layer: Layer) -> dict[str, Tensor]:
    """Arrays for `unsound`: the gaps of a block's sums, and the precision of its features.

    The first is `sum_gap` over all tokens of a batch, [sums 2]; a ConvNet may rectify its sum. The second is
    the relative rounding error of the features, [1].
    """
    gaps = []
    for terms in sums_of(layer):
        by_kind = []
        for skip, branch, output in zip(*(token_kinds(taps[tap]) for tap in terms), strict=True):
            summed = skip + branch
            gap = sum_gap(summed, output)
            if layer.tap == "branch":
                gap = torch.minimum(gap, sum_gap(summed.relu(), output))
            by_kind.append(gap)
        gaps.append(torch.stack(by_kind).amax(dim=0))
    rounding = torch.finfo(next(iter(taps.values())).grid.dtype).eps
    return {"gap": torch.stack(gaps), "precision": torch.tensor([rounding])}


def unsound(images: KeptImages) -> str:
    """Reason why a block has no values; "" if all its sums hold, by `sum_gaps`."""
    gaps = np.max(np.asarray(images.every("gap"), np.float64), axis=0)
    if not np.isfinite(gaps).all():
        return "features are not finite"
    allowed = max(TOLERANCE, ROUNDINGS * float(images.first["precision"][0]))
    for gap, size in gaps:
        if gap > allowed * size:
            return (
                "its output is not the sum of what skips and what is added: entries of up to "
                f"{size:.4g} differ by up to {gap:.4g}"
            )
    return ""


def _half(taps: Taps, terms: Sum) -> dict[str, Tensor]:
    """Measures of one sum: means over the tokens of each kind [images kinds measures], sums over images."""
    skips, branches = (token_kinds(taps[tap]) for tap in terms[:2])
    kinds = []
    for skip, branch in zip(skips, branches, strict=True):
        total = skip + branch
        angles = token_cosines(skip, total), token_cosines(skip, branch), token_cosines(branch, total)
        kinds.append(torch.stack((norm_ratio(skip, branch), *angles), dim=-1))
    if len(kinds) > 1:
        kinds.append(torch.cat(kinds, dim=1))
    means = torch.stack([kind.nanmean(dim=1) for kind in kinds], dim=1)
    # measured of the patches alone, which stand second where there is a class token
    others = torch.full_like(means[..., :1], torch.nan)
    others[:, min(1, len(kinds) - 1), 0] = frobenius_ratio(skips[-1], branches[-1])
    ratios = kinds[-1][..., 0]
    return {
        "means": torch.cat([means, others], dim=-1),
        "zeros": torch.stack([kind[..., 0].isnan().sum() for kind in kinds]),
        "ratio": ratios.nan_to_num(0.0).double().sum(dim=0),
        "there": (~ratios.isnan()).sum(dim=0),
    }


def _outcome(keys: Sequence[str], means: Floats, zeros: float, tokens: int) -> Outcome:
    """Scores of one half and kind of token: of means [images measures], and how many branches are zero."""
    tally, columns = Tally(keys), dict(zip(MEASURES, means.T, strict=True))
    for name, column in columns.items():
        if np.isfinite(column).any():
            tally.images(name, column)
    tally.number("zero-branches", zeros, tokens, "tokens")
    return tally.outcome(empty="" if np.isfinite(columns[MEASURES[0]]).any() else "every branch is zero")


def _kinds(means: Array) -> tuple[str, ...]:
    """Kinds of tokens of measures [halves images kinds measures]."""
    return KINDS if means.shape[2] > 1 else ("patch",)


def branches(layers: LayerArrays) -> list[Tap]:
    """Taps of the branches of a block, by which its halves are named."""
    return [branch for _, branch, _ in sums_of(next(iter(layers)))]


def _transition(layers: LayerArrays, half: int) -> Outcome:
    """The first block in which the mean ratio of patches exceeds the class token's, or why there is none."""
    means = dict(zip(layers.blocks.tolist(), layers.every("means"), strict=True))
    both_kinds = {block: each for block, each in means.items() if "cls" in _kinds(each)}
    ratios = {block: each[half, :, :2, 0].astype(np.float64) for block, each in both_kinds.items()}
    both = [block for block, pair in ratios.items() if np.isfinite(pair).any(axis=0).all()]
    for block in both:
        of_class, of_patches = np.nanmean(ratios[block], axis=0)
        if of_patches > of_class:
            return Outcome((Score(TRANSITION, float(block), len(ratios[block]), "images"),))
    reason = "in no block is the ratio of the patches above the class token's"
    if not ratios:
        reason = "there is no class token"
    elif not both:
        reason = "no block has ratios of both class token and patches"
    return Outcome((), missing={TRANSITION: reason})


def norm_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """Norm of each token's skip [... tokens dim] over its branch's: [... tokens], float32; NaN over 0."""
    return _ratio(_length(skip), _length(branch))


def frobenius_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """Frobenius norm of the skip [... tokens dim] over that of the branch: [...]; NaN over 0."""
    return _ratio(_length(skip.flatten(-2)), _length(branch.flatten(-2)))


def token_cosines(one: Tensor, other: Tensor) -> Tensor:
    """Cosine of two vectors [... tokens dim] per token: [... tokens], float32; NaN if one is zero."""
    return _ratio((one.float() * other.float()).sum(dim=-1), _length(one) * _length(other))


def sum_gap(summed: Tensor, output: Tensor) -> Tensor:
    """Deviation of a block's output from the sum of skip and branch: [2], float32.

    The first is the largest absolute difference of two entries, the second the largest absolute entry of the
    output. NaN if either tensor contains NaN.
    """
    return torch.stack([(output.float() - summed.float()).abs().amax(), output.float().abs().amax()])


def _length(vectors: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vectors.float(), dim=-1)
    return length


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    """Quotient; NaN for a division by 0."""
    return torch.where(below > 0, above / below, torch.nan)
