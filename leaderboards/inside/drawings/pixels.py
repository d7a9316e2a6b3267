"""Drawings of the input side: effective receptive fields, patch filters and position embeddings.

Sources: Raghu et al., NeurIPS 2021, figure 6; Dosovitskiy et al., ICLR 2021, figure 7, left and centre.
"""

import numpy as np

from layerboard.leaderboards.blocks.blocks import Block, Maps, Rgb, SmallMap
from layerboard.leaderboards.inside.evidence import Evidence, evenly
from layerboard.tasks.metrics.arrays import Floats

FIELDS = """\
Effective receptive field of the central token: gradient magnitude by pixel (after Raghu et al., NeurIPS
2021, figures 6 and C.1 to C.4); colours follow the root of the gradient, so that what is faint can be
seen. A place is one in a block: the output of its attention or MLP, or of a ConvNet's `branch`, before it is
added; `mid` and `block` are after. {order}"""

MOST_FILTERS, IN_ROW, MOST_POSITIONS = 28, 7, 5

FILTERS = """\
Principal components of the patch embedding filters, the strongest first, row by row, each from its
lowest number to its highest (after Dosovitskiy et al., ICLR 2021, figure 7, left)."""

POSITIONS = """\
Cosine similarity of the position embedding of one patch with those of all patches; each map is titled by
the row and column of its patch (after Dosovitskiy et al., ICLR 2021, figure 7 in the centre)."""


def draw_fields(evidence: Evidence) -> list[Block]:
    """Receptive fields of all sublayers, a panel per backbone, and half radius over depth."""
    fields = evidence.numbers("erf", 4)
    roots = {backbone: np.sqrt(np.maximum(values, 0)) for backbone, values in fields.items()}
    picture = Maps((), "Receptive fields", "root of the gradient")
    blocks = evidence.walls(FIELDS, roots, picture, "fields", "places in a block")
    title = "Radius with half of the gradient, as a share of the image side"
    blocks += evidence.depth_panels(evidence.views("erf-half-radius"), title, "erf-half-radius", "radius")
    return [*blocks, evidence.lacking("Receptive fields", fields)]


def draw_weights(evidence: Evidence) -> list[Block]:
    """Filters and position embeddings of the backbones that have them, a panel per backbone."""
    filters = evidence.numbers("filters", 4)
    components = [
        SmallMap(backbone.label, f"{rank // IN_ROW * IN_ROW + 1}", f"{rank % IN_ROW + 1}", image)
        for backbone, values in filters.items()
        for rank, image in enumerate(_colours(values[:MOST_FILTERS]))
    ]
    cosines = [
        SmallMap(backbone.label, f"row {row + 1}", f"{column + 1}", values[row, column])
        for backbone, values in evidence.numbers("position_cosine", 4).items()
        for row in evenly(values.shape[0], MOST_POSITIONS)
        for column in evenly(values.shape[1], MOST_POSITIONS)
    ]
    principal = Maps(tuple(components), "Patch embedding filters", "")
    alike = Maps(tuple(cosines), "Similarity of position embeddings", "cosine", (-1.0, 1.0))
    return [
        *evidence.explained(FILTERS, components, principal, "filters"),
        *evidence.explained(POSITIONS, cosines, alike, "positions"),
        evidence.lacking("Filters", filters),
    ]


def _colours(images: Floats) -> Rgb:
    """Images from 0 to 1 as colours; NaN is black."""
    colours: Rgb = np.rint(255 * np.clip(np.nan_to_num(images), 0, 1)).astype(np.uint8)
    return colours
