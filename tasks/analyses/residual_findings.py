"""What the measurements of residual sums say: scores of blocks and of the whole backbone, and arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tasks.analyses.sums import unsound
from tasks.base import Items, LayerOutcome, Measurements, Outcome, Score, Source, Statistic
from tasks.feeds import sums_of
from zoo.spec import WHOLE_BACKBONE, Layer, Tap

MEASURES = (
    "norm-ratio",
    "cosine-skip-output",
    "cosine-skip-branch",
    "cosine-branch-output",
    "norm-ratio-frobenius",
)
"""Metrics that are means over the images, in the order of the last axis of what is measured."""

ZEROS = "zero-branches"
TRANSITION = "phase-transition"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """What was measured of one block.

    Attributes:
        layer: The measured layer.
        keys: The images.
        means: [halves images kinds measures]; NaN where an image has none.
        zeros: Tokens whose branch is zero, [halves kinds].
        tokens: Tokens of an image by kind, [kinds].
        ratio: Mean norm ratio of each token, [halves tokens]; NaN where it has none.
        unsound: Why the block has no values.
    """

    layer: Layer
    keys: tuple[str, ...]
    means: Floats
    zeros: NDArray[np.int64]
    tokens: tuple[int, ...]
    ratio: Floats
    unsound: str

    @classmethod
    def read(cls, layer: Layer, source: Source, measurements: Sequence[Measurements]) -> "Block | None":
        """From what the groups left behind; None where no image could be read."""
        pairs = zip(source.groups, measurements, strict=True)
        there = [(group, one) for group, one in pairs if "means" in one]
        if not there:
            return None
        keys = (group.samples[int(place)].key for group, one in there for place in one["position"].tolist())
        means = np.concatenate([np.asarray(one["means"], np.float64) for _, one in there], axis=1)
        total, count = (np.sum([one[name] for _, one in there], axis=0) for name in ("ratio", "there"))
        ratio = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        every = ratio.shape[1]
        tokens = (every,) if means.shape[2] == 1 else (1, every - 1, every)
        zeros = np.sum([one["zeros"] for _, one in there], axis=0)
        reason = unsound([one["gap"] for _, one in there], float(there[0][1]["precision"][0]))
        return cls(layer, tuple(keys), means, zeros, tokens, ratio, reason)

    @property
    def halves(self) -> tuple[Layer, ...]:
        """The branches of its sums."""
        return tuple(Layer(self.layer.index, branch) for _, branch, _ in sums_of(self.layer))

    @property
    def poolings(self) -> tuple[str, ...]:
        """Kinds of tokens, in the order of the third axis of ``means``."""
        return ("patch",) if len(self.tokens) == 1 else ("cls", "patch", "all")

    def outcomes(self) -> list[LayerOutcome]:
        """Scores of each half and kind of token."""
        return [
            LayerOutcome(layer, pooling, self._outcome(half, kind))
            for half, layer in enumerate(self.halves)
            for kind, pooling in enumerate(self.poolings)
        ]

    def ratios(self, half: int) -> dict[str, float]:
        """Mean norm ratio of each kind of token that has one."""
        if self.unsound:
            return {}
        values = {name: self.means[half, :, kind, 0] for kind, name in enumerate(self.poolings)}
        return {name: float(np.nanmean(one)) for name, one in values.items() if np.isfinite(one).any()}

    def _outcome(self, half: int, kind: int) -> Outcome:
        if self.unsound:
            return Outcome((), empty=self.unsound)
        table = self.means[half, :, kind]
        columns = {name: table[:, place] for place, name in enumerate(MEASURES)}
        columns = {name: column for name, column in columns.items() if np.isfinite(column).any()}
        scores = [
            Score(name, float(np.nanmean(column)), int(np.isfinite(column).sum()), "images")
            for name, column in columns.items()
        ]
        tokens = len(self.keys) * self.tokens[kind]
        scores.append(Score(ZEROS, float(self.zeros[half, kind]), tokens, "tokens"))
        statistics = {name: Statistic(name) for name in columns}
        items = Items("images", self.keys, self.keys, ("",) * len(self.keys), columns, statistics)
        return Outcome(tuple(scores), items, "" if MEASURES[0] in columns else "every branch is zero")


@dataclass(frozen=True)
class Blocks:
    """What was measured of all blocks of which an image could be read, in order."""

    blocks: tuple[Block, ...]

    @classmethod
    def read(cls, source: Source, measured: Mapping[Layer, Sequence[Measurements]]) -> "Blocks":
        """From what the groups left behind of each block."""
        found = (Block.read(layer, source, measured[layer]) for layer in measured)
        return cls(tuple(one for one in found if one is not None))

    @property
    def halves(self) -> tuple[Tap, ...]:
        """Taps of the branches of every block."""
        return tuple(layer.tap for layer in self.blocks[0].halves)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Norm ratios of every token, padded with NaN where blocks have fewer."""
        most = max(one.ratio.shape[1] for one in self.blocks)
        ratio = np.full((len(self.blocks), len(self.halves), most), np.nan, np.float32)
        for row, one in zip(ratio, self.blocks, strict=True):
            if not one.unsound:
                row[:, : one.ratio.shape[1]] = one.ratio
        return {
            "ratio": ratio,
            "block": np.array([one.layer.index for one in self.blocks], np.int64),
            "half": np.array(self.halves),
        }


def phase_transitions(found: Blocks) -> list[LayerOutcome]:
    """For each half the first block in which the ratio of the patches is above that of the class token."""
    outcomes = []
    for half, tap in enumerate(found.halves):
        ratios = {one.layer.index: one.ratios(half) for one in found.blocks}
        both = {block: one for block, one in ratios.items() if {"cls", "patch"} <= set(one)}
        later = [block for block, one in both.items() if one["patch"] > one["cls"]]
        if later:
            score = Score(TRANSITION, float(later[0]), len(found.blocks[0].keys), "images")
            outcome = Outcome((score,))
        elif both:
            outcome = _never("in no block is the ratio of the patches above the class token's")
        elif all(len(one.poolings) == 1 for one in found.blocks):
            outcome = _never("there is no class token")
        else:
            outcome = _never("no block has ratios of both class token and patches")
        layer = replace(WHOLE_BACKBONE, tap=tap)
        outcomes.append(LayerOutcome(layer, "patch", outcome))
    return outcomes


def _never(reason: str) -> Outcome:
    """No transition, and why."""
    return Outcome((), missing={TRANSITION: reason})
