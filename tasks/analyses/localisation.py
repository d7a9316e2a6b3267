"""Localisation of tokens: whether a token is most similar (CKA) to the image patch at its own position.

Source: Raghu et al., NeurIPS 2021, section 7 and appendix D, figures 9, 10 and D.1 to D.3: CKA over images of
every token with every patch of the image. Patches are raw pixels, so they are the same for all backbones.
Finer maps of a ConvNet are averaged to its last grid, as suggested by the axes of those figures. Unbiased
minibatch CKA as in `tasks.similarity.metric`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.base import Array, ImageAnalysis, KeptImages, LayerArrays
from layerboard.tasks.analyses.metrics.attention import Cells, cell_distances
from layerboard.tasks.framework.base import Findings, Group, LayerOutcome, Outcome, Score
from layerboard.tasks.framework.feeds import GridsOfPixels, PixelFeed
from layerboard.tasks.framework.measurers import BatchMeasurer, Measurer
from layerboard.tasks.framework.sources import batch_slices
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.similarity.metric import SMALLEST_BATCH, gather, gram_matrix, u_centred
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

SUMS = ("cross", "tokens", "patches")  # sums of HSIC: of tokens with patches, and of each with itself


@dataclass(frozen=True, slots=True)
class LocalisationConfig:
    """The numbers of localisation."""

    batch: int  # images per HSIC batch, in the order of the probe subset
    cells: int  # largest number of cells of a grid; finer grids are averaged


class LocalisationTask(ImageAnalysis[GridsOfPixels]):
    """Unbiased minibatch CKA of every token with every image patch, over the probe images.

    Metrics are those of `localisation`: means over all tokens (``patch``), those inside the grid
    (``interior``) and those on its border (``border``).
    """

    config: LocalisationConfig
    configs: ClassVar = {"standard": LocalisationConfig(batch=256, cells=256)}
    feed = PixelFeed(whole=True)

    def measure(self, group: Group, view: View) -> Measurer[GridsOfPixels]:
        grams: list[Tensor] = []  # of the patches of each batch, computed once for all layers

        def reduce(layer: Layer, positions: Sequence[int], portion: GridsOfPixels) -> dict[str, Tensor]:
            """Sums of HSIC over the batches of a group, which comes as a whole, since its source is joint."""
            batches = batch_slices(positions, self.config.batch, SMALLEST_BATCH)
            if not batches:
                return {}
            cells = pooled_cells(portion.coarsest, self.config.cells)
            if not grams:
                device = portion.grids.device
                pixels = (portion.pixels[rows].to(device, non_blocking=True) for rows in batches)
                patches = (image_patches(some, portion.coarsest) for some in pixels)
                grams.extend(cell_grams(pool_to_cells(raw, cells)) for raw in patches)
            tokens = pool_to_cells(portion.grids, cells)
            pairs = zip(batches, grams, strict=True)
            batched = zip(*(token_hsic(tokens[rows], gram) for rows, gram in pairs), strict=True)
            sums = {name: torch.stack(hsic).sum(0) for name, hsic in zip(SUMS, batched, strict=True)}
            return sums | {"cells": torch.tensor(cells)}

        return BatchMeasurer(reduce)

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        count, compared = len(images.keys), images.having("cross")
        if not compared.groups:
            few = f"{count} images are fewer than {SMALLEST_BATCH}, which a batch needs"
            return Findings((LayerOutcome(layer, "patch", Outcome((), empty=few)),))
        cross, tokens, patches = (compared.total(name) for name in SUMS)
        cka, cells = token_patch_cka(cross, tokens, patches), compared.first["cells"]
        reason = "" if np.isfinite(cka).any() else "tokens or patches do not vary over the images"
        reason = reason if np.isfinite(tokens).all() else "features are not finite"
        outcomes = [LayerOutcome(layer, "patch", Outcome((), empty=reason))]
        if not reason:
            outcomes = [*_outcomes(layer, cka, (int(cells[0]), int(cells[1])), count)]
        return Findings(tuple(outcomes), {"token_patch": cka, "cells": cells})

    def arrays(self, layers: LayerArrays) -> dict[str, Array]:
        cells = layers.first["cells"].astype(np.int64)
        return {"token_patch": layers.stacked("token_patch"), "cells": cells, "block": layers.blocks}


def _outcomes(layer: Layer, cka: Floats, cells: Cells, images: int) -> Iterator[LayerOutcome]:
    """Scores over all, interior and border tokens; tokens without values are left out."""
    measures, edge = localisation(cka, cells), border(cells)
    known = np.isfinite(measures["localisation"])
    for pooling, chosen in (("patch", known), ("interior", known & ~edge), ("border", known & edge)):
        means = {metric: float(values[chosen].mean()) for metric, values in measures.items() if chosen.any()}
        scores = tuple(Score(metric, mean, images, "images") for metric, mean in means.items())
        empty = f"no tokens of this kind vary over the images on a grid of {cells[0]} x {cells[1]} cells"
        yield LayerOutcome(layer, pooling, Outcome(scores, empty="" if scores else empty))


AT_A_TIME = 16  # tokens whose Gram matrices are in memory at a time, together with those of the patches
TIE = 1e-6  # similarities closer than this count as equal: float32 products have that rounding error


def pooled_cells(cells: Cells, most: int) -> Cells:
    """The finest grid of at most ``most`` cells, from both sides divided by one integer, rounded up."""
    factor = 1
    while -(-cells[0] // factor) * -(-cells[1] // factor) > most:
        factor += 1
    return -(-cells[0] // factor), -(-cells[1] // factor)


def pool_to_cells(grids: Tensor, cells: Cells) -> Tensor:
    """Grids [n rows columns dim] averaged to that many cells, as vectors [n cells dim], at least float32."""
    if grids.shape[1:3] != cells:
        grids = torch.nn.functional.adaptive_avg_pool2d(grids.permute(0, 3, 1, 2), cells).permute(0, 2, 3, 1)
    vectors = grids.flatten(1, 2)
    return vectors if vectors.dtype == torch.float64 else vectors.float()


def image_patches(pixels: Tensor, cells: Cells) -> Tensor:
    """Pixel values in [0, 1] of the patches of uint8 RGB images [n 3 height width]: [n rows columns dim]."""
    count, height, width = len(pixels), pixels.shape[2] // cells[0], pixels.shape[3] // cells[1]
    parts = pixels.float().div(255).view(count, 3, cells[0], height, cells[1], width)
    return parts.permute(0, 2, 4, 1, 3, 5).reshape(count, *cells, 3 * height * width)


def cell_grams(vectors: Tensor) -> Tensor:
    """U-centred Gram matrix over the images for each cell of vectors [n cells dim]: [cells n n] float32.

    It is zero for a cell that is the same in all images, and not finite for a cell with a non-finite value.
    """
    return torch.cat([_grams(some) for some in torch.split(vectors, AT_A_TIME, dim=1)])


def token_hsic(tokens: Tensor, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Unbiased HSIC of tokens [n cells dim] and patches in a batch, float64; its sums over batches give CKA.

    Returns HSIC of every token with every patch [cells cells], of every token with itself [cells], and of
    every patch with itself [cells]. ``patches`` are the Gram matrices [cells n n] of `cell_grams`, of the
    same images. A few tokens are in memory at a time.
    """

    def alone(grams: Tensor) -> Tensor:
        return grams.flatten(1).square().sum(1, dtype=torch.float64) / (len(tokens) * (len(tokens) - 3))

    cross, own = [], []
    for some in torch.split(tokens, AT_A_TIME, dim=1):
        grams = _grams(some)
        cross.append(gather(grams, patches))
        own.append(alone(grams))
    return torch.cat(cross), torch.cat(own), alone(patches)


def token_patch_cka(cross: Floats, tokens: Floats, patches: Floats) -> Floats:
    """CKA of every token (row) with every patch, from sums of HSIC; NaN if one of the two does not vary."""
    scale = np.sqrt(np.clip(tokens, 0, None))[:, None] * np.sqrt(np.clip(patches, 0, None))[None]
    return np.where(scale > 0, cross / np.where(scale > 0, scale, 1), np.nan)


def localisation(cka: Floats, cells: Cells) -> dict[str, Floats]:
    """Localisation metrics of each token [tokens], from the CKA [tokens patches] with the patches of a grid.

    A token's own patch is the one at its position. ``localisation`` is the share of the other patches with a
    lower CKA than the own one, ties counted half (chance 0.5). ``localisation-top1`` is 1 if the own patch
    has the highest CKA, 1 / k if it ties with k - 1 others, else 0 (chance 1 / cells).
    ``localisation-distance`` is the distance from the own patch to the most similar one (mean over ties), on
    the unit square, corner to corner. ``localisation-contrast`` is the CKA with the own patch minus the mean
    CKA with the others. NaN if the token or its patch does not vary.
    """
    own = cka.diagonal()[:, None]
    there = np.isfinite(cka)
    others = there & ~np.eye(len(cka), dtype=bool)
    valued = there.diagonal() & others.any(axis=1)
    lower, tied = cka < own - TIE, np.abs(cka - own) <= TIE
    count = np.maximum(others.sum(axis=1), 1)
    rank = ((lower + 0.5 * tied) * others).sum(axis=1) / count
    best = there & (cka >= np.where(there, cka, -np.inf).max(axis=1, keepdims=True) - TIE)
    share = best / np.maximum(best.sum(axis=1, keepdims=True), 1)
    values = {
        "localisation": rank,
        "localisation-top1": share.diagonal(),
        "localisation-distance": (share * cell_distances(cells, unit=True).double().numpy()).sum(axis=1),
        "localisation-contrast": own[:, 0] - np.where(others, cka, 0).sum(axis=1) / count,
    }
    return {metric: np.where(valued, value, np.nan) for metric, value in values.items()}


def border(cells: Cells) -> NDArray[np.bool_]:
    """Whether each cell of a grid lies on its border, in row-major order: [cells]."""
    inside = np.zeros(cells, dtype=bool)
    inside[1:-1, 1:-1] = True
    return ~inside.ravel()


def _grams(vectors: Tensor) -> Tensor:
    """U-centred Gram matrices [cells n n], float32, of [n cells dim]."""
    return u_centred(gram_matrix(vectors.transpose(0, 1))).float()
