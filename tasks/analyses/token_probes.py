"""Few-shot probes of single tokens: whether one patch token predicts the class of the image.

Source: Raghu et al., NeurIPS 2021, section 7, figures 11a and D.4.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.base import Array, ImageAnalysis, KeptImages, LayerArrays, Tally, first
from layerboard.tasks.classification.few_shot import FewShotRule, as_tensor, draw_shots, fit_few_shot
from layerboard.tasks.classification.probes import FewShotTask, too_few
from layerboard.tasks.framework.base import Findings, LayerOutcome, Outcome, digest
from layerboard.tasks.framework.checks import unlearnable
from layerboard.tasks.framework.feeds import GRIDS
from layerboard.tasks.framework.sources import ProbedClasses
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.zoo.spec import Layer

MOST = 64  # all tokens of a grid are probed up to this number
SIDE = 7  # number of probed rows and columns of a larger grid, including the first and the last
SHOTS = 10  # training images of each class


class TokenProbes(ImageAnalysis[Tensor]):
    """Few-shot probes of the probe images' patch tokens, each token of each layer alone.

    Training and test images are in one source, so one pass serves both: a probe is trained on randomly drawn
    images of each class and tested on all others of the probe subset. The value of an image is the share of
    correct probes among the draws that did not train on it. The accuracy of each layer in percent is the mean
    over tokens, and that of the first token.
    """

    data: ProbedClasses
    config: FewShotRule
    configs = FewShotTask.configs
    pooling = "token"
    feed = GRIDS
    joins: ClassVar = {"grid": first}

    @cached_property
    def fingerprint(self) -> str:
        return digest("token-probes", 1, MOST, SIDE, SHOTS, self.config, self.data.labels)

    def reduce(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> dict[str, Tensor]:
        """The tokens of some cells in half precision."""
        cells = torch.from_numpy(kept_cells(*grids.shape[1:3])).to(grids.device)
        return {"tokens": grids[:, cells[:, 0], cells[:, 1]].half(), "grid": torch.tensor(grids.shape[1:3])}

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        vectors = np.concatenate([np.asarray(tokens, np.float16) for tokens in images.every("tokens")])
        classes_of = dict(zip((sample.key for sample in self.source.samples), self.data.labels, strict=True))
        labels = np.array([classes_of[key] for key in images.keys], np.int64)
        classes, labels = np.unique(labels, return_inverse=True)
        fewest = int(np.bincount(labels).min())
        reason = unlearnable(vectors.reshape(len(labels), -1), labels)
        if not reason and fewest <= SHOTS:
            reason = too_few(SHOTS + 1, fewest)
        if reason:
            return Findings((LayerOutcome(layer, "token", Outcome((), empty=reason)),))
        shares = self._right_shares(vectors, labels, len(classes))
        (tested,) = np.nonzero(~np.isnan(shares[:, 0]))
        tally = Tally(np.array(images.keys)[tested].tolist())
        tally.images("fewshot-10", 100 * shares[tested].mean(axis=1))
        tally.images("fewshot-10-first", 100 * shares[tested, 0])
        arrays = {"accuracy": 100 * np.nanmean(shares, axis=0), "grid": images.first["grid"]}
        return Findings((LayerOutcome(layer, "token", tally.outcome()),), arrays)

    def arrays(self, layers: LayerArrays) -> dict[str, Array]:
        accuracies, grids = layers.stacked("accuracy"), np.array(layers.every("grid"), np.int64)
        cells = np.full((*accuracies.shape, 2), -1, np.int64)
        for row, grid in zip(cells, grids.tolist(), strict=True):
            probed = kept_cells(*grid)
            row[: len(probed)] = probed
        names = np.array([str(layer) for layer in layers])
        return {"token_accuracy": accuracies, "token": cells, "grid": grids, "layer": names}

    def _right_shares(self, vectors: NDArray[np.float16], labels: Integers, classes: int) -> Floats:
        """Share of correct draws for each image and token, [images tokens]; NaN if no draw tested it."""
        right, times = np.zeros((len(labels), vectors.shape[1])), np.zeros(len(labels))
        for seed in self.config.seeds:
            drawn = draw_shots(labels, classes, SHOTS, seed)
            tested = np.setdiff1d(np.arange(len(labels)), drawn)
            times[tested] += 1
            for token in range(vectors.shape[1]):
                tokens = as_tensor(vectors[:, token].astype(np.float32))
                fitted = fit_few_shot(tokens[drawn], self.config)
                right[tested, token] += fitted.classified(tokens[tested])[0] == labels[tested]
        return np.divide(right, times[:, None], out=np.full_like(right, np.nan), where=times[:, None] > 0)


def kept_cells(rows: int, columns: int) -> NDArray[np.int64]:
    """Rows and columns of the cells of a grid that are probed, [cells 2], in row-major order.

    All cells of a small grid; otherwise an even sub-grid from the first row and column to the last.
    """
    small = rows * columns <= MOST
    sides = [
        np.arange(side) if small else np.unique(np.linspace(0, side - 1, SIDE).round().astype(np.int64))
        for side in (rows, columns)
    ]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.int64)
