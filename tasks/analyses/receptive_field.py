"""Effective receptive fields: influence of each pixel on the centre cell of each layer, and its extent.

Sources: Raghu et al., NeurIPS 2021, section 5 and appendix C, figures 6 and C.1 to C.4: magnitude of the
derivative of the centre cell with respect to the input, averaged over images and channels, after a residual
connection (``block``, ``mid``) and before it (``attention``, ``mlp``, and ``branch`` of a ConvNet);
Luo et al., Understanding the Effective Receptive Field, NeurIPS 2016.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.framework.base import Findings, Group, LayerOutcome, Outcome, Score, Source, digest
from layerboard.tasks.framework.sources import ProbedImages
from layerboard.tasks.framework.stored import Fields, MeasurableBackbone
from layerboard.tasks.framework.task import Task
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.spec import Layer, Tap

TAPS: tuple[Tap, ...] = ("attention", "mid", "mlp", "branch", "block")  # a network has some of these
HALF = 0.5 * (1 - 1e-9)  # half the mass, minus a margin for rounding errors of the sum

Pixel = tuple[float, float]  # row and column, where the centre of the first pixel is (0.5, 0.5)


@dataclass(frozen=True, slots=True)
class ReceptiveFieldConfig:
    """Settings of receptive fields."""

    images: int  # number of images of the probe subset, evenly spaced
    channels: int | None  # number of randomly drawn channels of a layer; None for all
    seed: int  # of the draw


class ReceptiveFieldTask(Task):
    """Extent of the effective receptive field of the centre cell of each layer.

    ``erf-half-radius``: smallest radius around the cell's centre that contains half of the field, divided by
    the side of the image (0.399 for a uniform field). ``erf-half-area``: smallest share of the pixels that
    contains half of the field. ``erf-centre-share``: share of the field inside the centre cell of the
    coarsest grid.
    """

    data: ProbedImages
    config: ReceptiveFieldConfig
    configs: ClassVar = {"standard": ReceptiveFieldConfig(images=32, channels=32, seed=0)}
    needs = "backbone"

    @cached_property
    def source(self) -> Source:
        probe = self.data.probe
        indices = np.linspace(0, len(probe.samples) - 1, min(self.config.images, len(probe.samples)))
        groups = (Group("drawn", tuple(probe.samples[index] for index in indices.round().astype(int))),)
        return replace(probe, name=f"{probe.name}-drawn", groups=groups, groups_per_shard=1, joint=False)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source,)

    @cached_property
    def fingerprint(self) -> str:
        return digest("receptive-field", 1, self.config, TAPS)

    def layers(self, scored: Sequence[Layer]) -> tuple[Layer, ...]:
        """All taps of the blocks that are scored; the input of the first block is kept as it is."""
        indices = sorted({layer.index for layer in scored})
        return tuple(Layer(index, tap) for index in indices for tap in TAPS if index or tap == "block")

    def channels(self, width: int) -> list[int]:
        """The channels that are used in a layer with ``width`` channels."""
        count = width if self.config.channels is None else min(width, self.config.channels)
        return sorted(np.random.default_rng(self.config.seed).permutation(width)[:count].tolist())

    def results(self, backbone: MeasurableBackbone) -> Findings:
        fields = backbone.fields(self.entry.name, self.source, self.layers, self.channels)
        by_layer = {layer: _outcome(fields, layer) for layer in fields.strength}
        by_layer |= {layer: Outcome((), empty=reason) for layer, reason in fields.refused.items()}
        order = sorted(by_layer, key=lambda layer: layer.place)
        outcomes = tuple(LayerOutcome(layer, "patch", by_layer[layer]) for layer in order)
        return Findings(outcomes, _arrays(fields.strength))


def _outcome(fields: Fields, layer: Layer) -> Outcome:
    strength = fields.strength[layer]
    if not np.isfinite(strength).all():
        return Outcome((), empty="gradients are not finite")
    if not strength.any():
        return Outcome((), empty="no pixel changes it: all gradients are zero")
    rows, columns = _cell(strength.shape, fields.cells[layer])
    centre = (rows.start + rows.stop) / 2, (columns.start + columns.stop) / 2
    values = {
        "erf-half-radius": half_radius(strength, centre),
        "erf-half-area": half_area(strength),
        "erf-centre-share": float(strength[_cell(strength.shape, fields.coarsest)].sum() / strength.sum()),
    }
    return Outcome(tuple(Score(name, value, fields.images, "images") for name, value in values.items()))


def _cell(size: tuple[int, ...], cells: tuple[int, int]) -> tuple[slice, slice]:
    """Rows and columns of pixels of the centre cell of a grid."""
    height, width = size[0] // cells[0], size[1] // cells[1]
    top, left = cells[0] // 2 * height, cells[1] // 2 * width
    return slice(top, top + height), slice(left, left + width)


def _arrays(strength: Mapping[Layer, Floats]) -> dict[str, NDArray[np.generic]]:
    """Fields of all blocks and taps, each divided by its sum."""
    if not strength:
        return {}
    blocks = sorted({layer.index for layer in strength})
    taps = [tap for tap in TAPS if any(layer.tap == tap for layer in strength)]
    size = next(iter(strength.values())).shape
    erf = np.full((len(blocks), len(taps), *size), np.nan, np.float32)
    for layer, field in strength.items():
        if np.isfinite(field).all() and field.any():
            erf[blocks.index(layer.index), taps.index(layer.tap)] = field / field.sum()
    return {"erf": erf, "block": np.array(blocks, np.int64), "tap": np.array(taps)}


def half_radius(field: Floats, centre: Pixel) -> float:
    """Smallest radius of a disc around a centre that contains half the mass of a field.

    The field [height width] is the weight of each pixel, not negative, with a sum above 0. The radius is the
    distance to the farthest pixel centre inside, divided by the side of the field (or by the square root of
    its number of pixels if it is not square). It is 0.399 for a uniform field in which the disc fits.
    """
    rows, columns = (np.arange(count) + 0.5 for count in field.shape)
    distance = np.hypot(rows[:, None] - centre[0], columns[None] - centre[1]).ravel()
    order = np.argsort(distance, kind="stable")
    inside = np.cumsum(field.ravel()[order])
    last = order[np.searchsorted(inside, HALF * inside[-1])]
    return float(distance[last] / np.sqrt(field.size))


def half_area(field: Floats) -> float:
    """Share of the pixels, strongest first, that contain half the mass of a field: 0.5 if it is uniform."""
    inside = np.cumsum(np.sort(field, axis=None)[::-1])
    return float((np.searchsorted(inside, HALF * inside[-1]) + 1) / field.size)
