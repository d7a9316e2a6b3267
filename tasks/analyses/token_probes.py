"""Few-shot probes of single tokens: whether one patch tells the class of the image.

Source: Raghu et al., NeurIPS 2021, section 7, figures 11a and D.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import (
    Findings,
    Group,
    Items,
    LayerOutcome,
    Measurements,
    Measurer,
    Outcome,
    Score,
    Source,
    Statistic,
    digest,
)
from tasks.checks import nothing_read, unlearnable
from tasks.feeds import GRIDS, GridFeed
from tasks.fewshot import too_few
from tasks.metrics.few_shot import FewShotRule, as_tensor, draw_shots, fit_few_shot
from tasks.sources import ClassificationSources
from zoo.spec import Layer
from zoo.view.views import View

MOST = 64
"""Tokens of a grid up to which all of them are probed."""

SIDE = 7
"""Rows and columns of a larger grid that are probed; the first and the last are among them."""

SHOTS = 10
"""Images of each class that a probe learns from."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TokenProbes:
    """Few-shot probes of the probe images' patch tokens, each token of each layer alone.

    Training and test images are of one source, so one pass serves both: a probe learns from drawn images of
    each class and is tested on all others of the probe subset. An image's value is the share of the draws
    that did not train on it whose probe is right.

    Attributes:
        where: The sources, of which the probe subset is looked at.
        labels: Class of each probe image, in the order of its source.
        rule: Draws and penalties.
    """

    where: ClassificationSources
    labels: NDArray[np.int64]
    rule: FewShotRule

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset."""
        return self.where.probe

    @property
    def feed(self) -> GridFeed:
        """Measurers are fed grids."""
        return GRIDS

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule, of the tokens that are kept, and of the labels."""
        return digest("token-probes", 1, MOST, SIDE, SHOTS, self.rule, self.labels)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """A measurer of some images."""
        return _TokenMeasurer()

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """Accuracy in percent of each layer, mean over tokens and of the first; raises UnreadableImageError.

        Arrays: ``token_accuracy`` [layers tokens] in percent, NaN beyond a layer's tokens; ``token`` [layers
        tokens 2] row and column of each in its layer's grid, -1 beyond; ``grid`` [layers 2] rows and columns;
        ``layer`` [layers] names.
        """
        outcomes, found = [], {}
        for layer in measured:
            tokens = _Tokens.read(self.source, self.labels, measured[layer])
            if tokens is None:
                raise nothing_read(self.source)
            outcome, shares = self._probe(tokens)
            outcomes.append(LayerOutcome(layer, "token", outcome))
            if shares is not None:
                found[layer] = 100 * np.nanmean(shares, axis=0), tokens.grid
        return Findings(tuple(outcomes), _arrays(found) if found else {})

    def _probe(self, tokens: "_Tokens") -> tuple[Outcome, Floats | None]:
        """The outcome of one layer, and for each image and token the share of right draws, NaN untested."""
        if reason := unlearnable(tokens.vectors.reshape(len(tokens.labels), -1), tokens.labels):
            return Outcome((), empty=reason), None
        classes, labels = np.unique(tokens.labels, return_inverse=True)
        fewest = int(np.bincount(labels).min())
        if fewest <= SHOTS:
            return Outcome((), empty=too_few(SHOTS + 1, fewest)), None
        right, times = np.zeros((len(labels), tokens.vectors.shape[1])), np.zeros(len(labels))
        for seed in self.rule.seeds:
            drawn = draw_shots(labels, len(classes), SHOTS, seed)
            tested = np.setdiff1d(np.arange(len(labels)), drawn)
            times[tested] += 1
            truth = as_tensor(labels[tested])
            for token in range(tokens.vectors.shape[1]):
                vectors = as_tensor(tokens.vectors[:, token].astype(np.float32))
                fitted = fit_few_shot(vectors[drawn], self.rule)
                right[tested, token] += fitted.correct(vectors[tested], truth)
        shares = np.divide(right, times[:, None], out=np.full_like(right, np.nan), where=times[:, None] > 0)
        return tokens.outcome(shares), shares


class _TokenMeasurer:
    """Keeps the tokens of some cells in half precision; layers of a group may come in pieces."""

    def __init__(self) -> None:
        self._kept: dict[Layer, list[tuple[Sequence[int], Tensor]]] = {}
        self._grids: dict[Layer, tuple[int, int]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        rows, columns = grids.shape[1:3]
        cells = torch.from_numpy(kept_cells(rows, columns)).to(grids.device)
        self._grids[layer] = rows, columns
        self._kept.setdefault(layer, []).append((positions, grids[:, cells[:, 0], cells[:, 1]].half()))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        parts = self._kept.pop(layer, [])
        if not parts:
            return {}
        return {
            "position": torch.tensor([position for positions, _ in parts for position in positions]),
            "tokens": torch.cat([tokens for _, tokens in parts]),
            "grid": torch.tensor(self._grids[layer]),
        }


def kept_cells(rows: int, columns: int) -> NDArray[np.int64]:
    """Rows and columns of the cells of a grid that are probed, [cells 2], in row-major order.

    All of a small grid; else an even sub-grid from the first row and column to the last.
    """
    small = rows * columns <= MOST
    sides = [
        np.arange(side) if small else np.unique(np.linspace(0, side - 1, SIDE).round().astype(np.int64))
        for side in (rows, columns)
    ]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.int64)


@dataclass(frozen=True)
class _Tokens:
    """Tokens of one layer: ``vectors`` [images tokens dim] float16, and what they are of."""

    keys: tuple[str, ...]
    labels: NDArray[np.int64]
    vectors: NDArray[np.float16]
    grid: tuple[int, int]

    @classmethod
    def read(
        cls, source: Source, labels: NDArray[np.int64], measurements: Sequence[Measurements]
    ) -> "_Tokens | None":
        """From what the groups left behind; None where no image could be read."""
        keys, places, vectors, grid, start = [], [], [], (0, 0), 0
        for group, one in zip(source.groups, measurements, strict=True):
            if "tokens" in one:
                positions = [int(position) for position in one["position"]]
                keys += [group.samples[position].key for position in positions]
                places += [start + position for position in positions]
                vectors.append(np.asarray(one["tokens"], np.float16))
                grid = int(one["grid"][0]), int(one["grid"][1])
            start += len(group.samples)
        return cls(tuple(keys), labels[places], np.concatenate(vectors), grid) if vectors else None

    def outcome(self, shares: Floats) -> Outcome:
        """Scores of all tokens together and of the first, over the images that a probe was tested on."""
        (tested,) = np.nonzero(~np.isnan(shares[:, 0]))
        keys = tuple(self.keys[place] for place in tested)
        values = {"fewshot-10": shares[tested].mean(axis=1), "fewshot-10-first": shares[tested, 0]}
        values = {metric: 100 * column for metric, column in values.items()}
        scores = (Score(metric, float(one.mean()), len(keys), "images") for metric, one in values.items())
        statistics = {metric: Statistic(metric) for metric in values}
        return Outcome(tuple(scores), Items("images", keys, keys, ("",) * len(keys), values, statistics))


def _arrays(found: Mapping[Layer, tuple[Floats, tuple[int, int]]]) -> dict[str, NDArray[np.generic]]:
    """The arrays of `TokenProbes.findings`."""
    most = max(len(accuracy) for accuracy, _ in found.values())
    accuracies = np.full((len(found), most), np.nan, np.float32)
    cells = np.full((len(found), most, 2), -1, np.int64)
    for row, (accuracy, grid) in enumerate(found.values()):
        accuracies[row, : len(accuracy)] = accuracy
        cells[row, : len(accuracy)] = kept_cells(*grid)
    return {
        "token_accuracy": accuracies,
        "token": cells,
        "grid": np.array([grid for _, grid in found.values()], np.int64),
        "layer": np.array([str(layer) for layer in found]),
    }
