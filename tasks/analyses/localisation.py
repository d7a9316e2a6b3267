"""Localisation: whether a token in the depth of a network still holds its place in the image.

Source: Raghu et al., NeurIPS 2021, section 7 and appendix D, figures 9, 10 and D.1 to D.3: CKA over images of
every token with every patch of the image. Patches are raw pixels, so that they are the same for all
backbones; finer maps of a ConvNet are averaged to its last grid, as the axes of those figures are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import (
    Findings,
    Group,
    LayerOutcome,
    Measurements,
    Measurer,
    Outcome,
    Score,
    Source,
    digest,
)
from tasks.checks import nothing_read
from tasks.feeds import GridsOfPixels, PixelFeed
from tasks.metrics.arrays import Floats
from tasks.metrics.localisation import (
    Localisation,
    border,
    cell_grams,
    image_patches,
    localisation,
    pooled,
    pooled_cells,
    token_hsic,
    token_patch_cka,
)
from tasks.metrics.similarity import SMALLEST_BATCH
from tasks.sources import ProbeSources, batch_slices
from zoo.spec import Layer
from zoo.view.views import View

METRICS = {
    "rank": "localisation",
    "top1": "localisation-top1",
    "distance": "localisation-distance",
    "contrast": "localisation-contrast",
}
"""By field of `Localisation`."""


@dataclass(frozen=True, slots=True)
class LocalisationRule:
    """The numbers of localisation.

    Attributes:
        batch: Images over which an HSIC is taken, in the order of the probe subset.
        cells: Cells of the finest grid that is compared; grids of more are averaged.
    """

    batch: int
    cells: int


@dataclass(frozen=True)
class LocalisationProblem:
    """Unbiased minibatch CKA of every token with every image patch, over the probe images.

    ``localisation``: share of the other patches that are less similar to a token than that of its own place
    (chance 0.5); ``-top1``: tokens to which their own is the most similar (chance one over the cells);
    ``-distance``: from the own place to that of the most similar patch, on the unit square;
    ``-contrast``: CKA with the own patch less the mean with the others. Means over all tokens (``patch``),
    those off the grid's border (``interior``) and those on it (``border``).
    """

    where: ProbeSources
    rule: LocalisationRule

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset."""
        return self.where.probe

    @property
    def feed(self) -> PixelFeed:
        """Measurers are fed grids and their pixels, whole batches of them at once."""
        return PixelFeed(whole=True)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of its numbers; it has no ground truth but the pixels."""
        return digest("localisation", 1, self.rule)

    def measure(self, group: Group, view: View) -> Measurer[GridsOfPixels]:
        """A measurer of some images."""
        return _TokenMeasurer(self.rule)

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """How well the tokens of each layer hold their places; raises UnreadableImageError.

        Arrays: ``token_patch`` [layers tokens patches] CKA, tokens and patches in row-major order, NaN where
        one does not vary; ``cells`` [2] rows and columns of both; ``block`` [layers].
        """
        found = {layer: _Sums.read(measured[layer]) for layer in measured}
        if found and not any(one.images for one in found.values()):
            raise nothing_read(self.source)
        outcomes = [outcome for layer, one in found.items() for outcome in one.outcomes(layer)]
        there = {layer: one for layer, one in found.items() if one.cells}
        if not there:
            return Findings(tuple(outcomes))
        arrays: dict[str, NDArray[np.generic]] = {
            "token_patch": np.stack([one.cka for one in there.values()]).astype(np.float32),
            "cells": np.array(next(iter(there.values())).cells, np.int64),
            "block": np.array([layer.index for layer in there], np.int64),
        }
        return Findings(tuple(outcomes), arrays)


class _TokenMeasurer:
    """Keeps sums of HSIC over the batches of a group; Gram matrices of the patches while it is in memory."""

    def __init__(self, rule: LocalisationRule) -> None:
        self._rule = rule
        self._patches: list[Tensor] = []
        self._kept: dict[Layer, dict[str, Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], portion: GridsOfPixels) -> None:
        # a group comes whole: its source is joint
        kept = self._kept[layer] = {"images": torch.tensor([len(positions)])}
        batches = batch_slices(positions, self._rule.batch, SMALLEST_BATCH)
        if not batches:
            return
        cells = pooled_cells(portion.coarsest, self._rule.cells)
        if not self._patches:
            self._patches = [_patch_grams(portion, rows, cells) for rows in batches]
        tokens = pooled(portion.grids, cells)
        found = [token_hsic(tokens[rows], grams) for rows, grams in zip(batches, self._patches, strict=True)]
        for name in ("cross", "tokens", "patches"):
            kept[name] = torch.stack([getattr(one, name) for one in found]).sum(0)
        kept["cells"] = torch.tensor(cells)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        return self._kept.pop(layer, {})


def _patch_grams(portion: GridsOfPixels, rows: slice, cells: tuple[int, int]) -> Tensor:
    """Gram matrices of the raw patches of a batch, on the device of its grids."""
    pixels = portion.pixels[rows].to(portion.grids.device, non_blocking=True)
    return cell_grams(pooled(image_patches(pixels, portion.coarsest), cells))


@dataclass(frozen=True)
class _Sums:
    """Sums of HSIC of one layer over all batches; no cells where no batch had images enough."""

    images: int
    cells: tuple[int, int] | tuple[()]
    cross: Floats
    tokens: Floats
    patches: Floats

    @classmethod
    def read(cls, measurements: Sequence[Measurements]) -> "_Sums":
        """From what the groups left behind."""
        images = sum(int(one["images"][0]) for one in measurements if "images" in one)
        there = [one for one in measurements if "cross" in one]
        none = np.zeros(0)
        if not there:
            return cls(images, (), none, none, none)
        rows, columns = (int(count) for count in there[0]["cells"])
        sums = (np.sum([one[name] for one in there], axis=0) for name in ("cross", "tokens", "patches"))
        return cls(images, (rows, columns), *(np.asarray(one, np.float64) for one in sums))

    @cached_property
    def cka(self) -> Floats:
        """CKA of every token with every patch."""
        return token_patch_cka(self.cross, self.tokens, self.patches)

    def outcomes(self, layer: Layer) -> Iterator[LayerOutcome]:
        """Scores over all tokens, those off the border and those on it."""
        reason = self._reason()
        if reason or not self.cells:
            yield LayerOutcome(layer, "patch", Outcome((), empty=reason))
            return
        found, edge = localisation(self.cka, self.cells), border(self.cells)
        rows, columns = self.cells
        for pooling, chosen in (("patch", edge | ~edge), ("interior", ~edge), ("border", edge)):
            scores = tuple(self._scores(found, chosen))
            empty = f"no tokens of {rows} x {columns} cells lie there and vary, with others beside them"
            yield LayerOutcome(layer, pooling, Outcome(scores, empty="" if scores else empty))

    def _scores(self, found: Localisation, chosen: NDArray[np.bool_]) -> Iterator[Score]:
        """Means over some tokens that have values; none where none has."""
        chosen = chosen & np.isfinite(found.rank)
        if chosen.any():
            for field in fields(found):
                value = float(getattr(found, field.name)[chosen].mean())
                yield Score(METRICS[field.name], value, self.images, "images")

    def _reason(self) -> str:
        """Why there is no score; "" where there are some."""
        if not self.cells:
            return f"{self.images} images are fewer than {SMALLEST_BATCH}, which a batch needs"
        if not np.isfinite(self.tokens).all():
            return "features are not finite"
        return "" if np.isfinite(self.cka).any() else "tokens or patches do not vary over the images"
