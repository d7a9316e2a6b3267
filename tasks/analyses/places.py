"""Position in tokens: localisation (similarity to the patch at their position), and position audit.

Localisation: Raghu et al., NeurIPS 2021, section 7 and appendix D, figures 9, 10 and D.1 to D.3: CKA over
images of every token with every patch of the image. Patches are raw pixels, so they are the same for all
backbones. Finer maps of a ConvNet are averaged to its last grid, as suggested by the axes of those figures.

Position audit: ridge regression predicts row and column from the tokens of held-out images, and tokens of one
image are matched with those of another, unrelated one, where matches at the same position are due to position
information. Sources: see `tasks.analyses.metrics.position`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.analyses.base import Array, BatchMeasurer, ImageAnalysis, KeptImages, LayerArrays, Tally
from layerboard.tasks.analyses.metrics import localisation as local
from layerboard.tasks.analyses.metrics.attention import Cells
from layerboard.tasks.analyses.metrics.position import LEAST, matches, place_errors
from layerboard.tasks.framework.base import FINITE, Findings, Group, LayerOutcome, Measurer, Outcome, Score
from layerboard.tasks.framework.checks import ALIKE, varies
from layerboard.tasks.framework.feeds import WHOLE_GRIDS, GridsOfPixels, PixelFeed
from layerboard.tasks.framework.sources import batch_slices
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.similarity.metric import SMALLEST_BATCH
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

    ``localisation``: share of the other patches that are less similar to a token than the patch at its
    position (chance 0.5). ``localisation-top1``: share of tokens whose own patch is the most similar (chance
    1 / cells). ``localisation-distance``: distance from the own patch to the most similar one, on the unit
    square. ``localisation-contrast``: CKA with the own patch minus the mean with the others. Means are over
    all tokens (``patch``), those inside the grid (``interior``) and those on its border (``border``).
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
            cells = local.pooled_cells(portion.coarsest, self.config.cells)
            if not grams:
                device = portion.grids.device
                pixels = (portion.pixels[rows].to(device, non_blocking=True) for rows in batches)
                patches = (local.image_patches(some, portion.coarsest) for some in pixels)
                grams.extend(local.cell_grams(local.pool_to_cells(raw, cells)) for raw in patches)
            tokens = local.pool_to_cells(portion.grids, cells)
            pairs = zip(batches, grams, strict=True)
            batched = zip(*(local.token_hsic(tokens[rows], gram) for rows, gram in pairs), strict=True)
            sums = {name: torch.stack(hsic).sum(0) for name, hsic in zip(SUMS, batched, strict=True)}
            return sums | {"cells": torch.tensor(cells)}

        return BatchMeasurer(reduce)

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        count, compared = len(images.keys), images.having("cross")
        if not compared.groups:
            few = f"{count} images are fewer than {SMALLEST_BATCH}, which a batch needs"
            return Findings((LayerOutcome(layer, "patch", Outcome((), empty=few)),))
        cross, tokens, patches = (compared.total(name) for name in SUMS)
        cka, cells = local.token_patch_cka(cross, tokens, patches), compared.first["cells"]
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
    measures, edge = local.localisation(cka, cells), local.border(cells)
    known = np.isfinite(measures["localisation"])
    for pooling, chosen in (("patch", known), ("interior", known & ~edge), ("border", known & edge)):
        means = {metric: float(values[chosen].mean()) for metric, values in measures.items() if chosen.any()}
        scores = tuple(Score(metric, mean, images, "images") for metric, mean in means.items())
        empty = f"no tokens of this kind vary over the images on a grid of {cells[0]} x {cells[1]} cells"
        yield LayerOutcome(layer, pooling, Outcome(scores, empty="" if scores else empty))


@dataclass(frozen=True, slots=True)
class PositionConfig:
    """Settings of the position audit."""

    images: int  # largest number of images of each group of the probe subset, the first ones
    penalties: tuple[float, ...]  # of ridge regression, relative to the tokens' mean variance


class PositionAudit(ImageAnalysis[Tensor]):
    """Position in the patch tokens of the probe images.

    ``position-r2``: share of the variance of row and column that a linear map predicts from unit tokens,
    trained on half of the images and tested on the others; at most 1, about 0 without position information.
    ``same-place``: share of tokens whose most similar token in another image is at the same position; by
    chance ``same-place-chance``, 1 / cells. ``match-distance``: distance from a token to its match, on the
    unit square. Photographs of a dataset are alike at the same position (sky above, ground below), so
    slightly increased values are no fault of a network.
    """

    config: PositionConfig
    configs: ClassVar = {
        "standard": PositionConfig(images=64, penalties=tuple(10.0**power for power in range(-3, 4)))
    }
    transforms = True
    feed = WHOLE_GRIDS

    def reduce(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> dict[str, Tensor]:
        grids = grids[: self.config.images]
        seen = torch.tensor(positions[: len(grids)])
        if len(grids) < LEAST:
            return {"seen": seen}
        errors, variance = place_errors(grids, self.config.penalties)
        same, distance = matches(grids)
        return {
            "seen": seen,
            "errors": errors,
            "variance": variance,
            "same": same,
            "distance": distance,
            "cells": torch.tensor([grids.shape[1] * grids.shape[2]]),
            "varies": varies(grids)[None],
            FINITE: grids.isfinite().all(),
        }

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        return Findings((LayerOutcome(layer, "patch", _outcome(images.having("same"))),))


def _outcome(images: KeptImages) -> Outcome:
    if not images.groups:
        return Outcome((), empty=f"fewer than {LEAST} images of each batch could be read")
    if not any(bool(varied[0]) for varied in images.every("varies")):
        return Outcome((), empty=ALIKE)
    tally = Tally(images.keys_at("seen"))
    variance, errors = np.asarray(images.first["variance"], np.float64), images.each("errors")
    if variance.sum() > 0:
        tally.images("position-r2", 1 - errors.sum(1) / variance.sum())
    else:
        tally.missing["position-r2"] = "a grid of one cell has a single position"
    tally.images("same-place", images.each("same"))
    tally.images("match-distance", images.each("distance"))
    for side, name in enumerate(("position-r2-row", "position-r2-column")):
        if variance[side] > 0:
            tally.images(name, 1 - errors[:, side] / variance[side])
    tally.number("same-place-chance", 1 / int(images.first["cells"][0]))
    return tally.outcome()
