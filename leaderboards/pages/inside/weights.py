"""What is drawn of weights: filters of the first layer, and how alike position embeddings are.

Source: Dosovitskiy et al., ICLR 2021, figure 7, left and centre.
"""

from collections.abc import Mapping

import numpy as np

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.inside.evidence import Evidence, Floats, evenly
from leaderboards.pages.notation import said
from tasks.blocks import Block, Maps, Rgb, SmallMap

MOST_FILTERS, IN_ROW, MOST_POSITIONS = 28, 7, 5

FILTERS = """\
The principal components of the filters that turn patches of pixels into tokens, the strongest first, row by
row, each from its lowest number to its highest (after Dosovitskiy et al., ICLR 2021, figure 7, left)."""

POSITIONS = """\
How alike the position embedding of one patch is to those of all patches (cosine): each map is of the patch
whose row and column it is named by (after Dosovitskiy et al., ICLR 2021, figure 7 in the centre)."""


def draw_weights(evidence: Evidence) -> list[Block]:
    """Filters and positions of the backbones that have them."""
    filters, positions = evidence.numbers("filters", 4), evidence.numbers("position_cosine", 4)
    blocks: list[Block] = [said(FILTERS), filter_maps(evidence, filters)] if filters else []
    blocks += [said(POSITIONS), position_maps(evidence, positions)] if positions else []
    return [*blocks, evidence.lacking("Filters", filters)]


def filter_maps(evidence: Evidence, filters: Mapping[BoardBackbone, Floats]) -> Maps:
    """Components [components height width 3] from 0 to 1, a panel a backbone."""
    maps = [
        SmallMap(one.label, str(place // IN_ROW * IN_ROW + 1), str(place % IN_ROW + 1), _seen(image))
        for one, values in filters.items()
        for place, image in enumerate(values[:MOST_FILTERS])
    ]
    return Maps(tuple(maps), evidence.title("Filters of patches"), "", name=evidence.name("filters"))


def position_maps(evidence: Evidence, positions: Mapping[BoardBackbone, Floats]) -> Maps:
    """Cosines [rows columns rows columns] of some positions with all, a panel a backbone."""
    maps = [
        SmallMap(one.label, f"row {row + 1}", f"{column + 1}", values[row, column])
        for one, values in positions.items()
        for row in evenly(values.shape[0], MOST_POSITIONS)
        for column in evenly(values.shape[1], MOST_POSITIONS)
    ]
    title = evidence.title("How alike positions are")
    return Maps(tuple(maps), title, "cosine", (-1.0, 1.0), evidence.name("positions"))


def _seen(image: Floats) -> Rgb:
    """An image from 0 to 1 as colours; holes are black."""
    colours: Rgb = np.rint(255 * np.clip(np.nan_to_num(image), 0, 1)).astype(np.uint8)
    return colours
