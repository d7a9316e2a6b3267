"""What is drawn of receptive fields: what pixels move a token; and of heads beside a ConvNet's first blocks.

Source: Raghu et al., NeurIPS 2021, figures 5 and 6.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.inside.depth import PANELS, depth_facets, views
from leaderboards.pages.inside.evidence import Evidence, Floats, deep
from leaderboards.pages.inside.wording import DEPTHS
from leaderboards.pages.notation import said
from tasks.blocks import Block, Maps, Plot, SmallMap

FIELDS = """\
Which pixels move the middle token's features, by the size of their gradients (after Raghu et al., NeurIPS
2021, figure 6); colours follow the root of the gradient, so that what is faint can be seen.
{depths}"""

WINDOWS = """\
Groups of the first block's heads, from those that look near to those that look far: how alike what they
give is to the first blocks of a ConvNet (after Raghu et al., NeurIPS 2021, figure 5)."""

LACKING = "Groups of heads of {names} cannot be drawn: their arrays are not beside the records."


def draw_fields(evidence: Evidence) -> list[Block]:
    """Receptive fields of layers, and their half radius over depth."""
    fields = evidence.numbers("erf", 4)
    blocks: list[Block] = [said(FIELDS, depths=DEPTHS), *field_maps(evidence, fields)] if fields else []
    panels = views(evidence, "erf-half-radius")
    if panels:
        title = "Radius that holds half of what moves the middle token, as a share of the image's side"
        blocks.append(depth_facets(evidence, panels, title, "erf-half-radius", "radius"))
    return [*blocks, evidence.lacking("Receptive fields", fields)]


def field_maps(evidence: Evidence, fields: Mapping[BoardBackbone, Floats]) -> list[Block]:
    """Receptive fields [blocks taps height width] of some blocks, a figure a tap and a row a backbone."""
    drawn: dict[str, list[SmallMap]] = {}
    for one, values in fields.items():
        named = evidence.array(one, "tap", 1)
        for place in range(values.shape[1]):
            tap = str(named[place]) if named is not None and place < len(named) else str(place + 1)
            for name, block in deep(len(values)).items():
                field = np.sqrt(np.maximum(values[block, place], 0))
                if np.isfinite(field).any():
                    drawn.setdefault(tap, []).append(SmallMap("", one.label, name, field))
    return [
        Maps(
            tuple(maps),
            evidence.title(f"Receptive fields, {tap}"),
            "root of the gradient",
            name=evidence.name(f"fields-{tap}"),
        )
        for tap, maps in drawn.items()
    ]


def draw_locality(evidence: Evidence) -> list[Block]:
    """CKA with a ConvNet's first blocks over how far heads look, a panel for each two backbones."""
    points, lacking = [], []
    for pair in dict.fromkeys(zip(evidence.pairs["backbone"], evidence.pairs["other"], strict=True)):
        cka, distance = _of_pair(evidence, pair, "head_cka", 2), _of_pair(evidence, pair, "distance", 1)
        if cka is None or distance is None or len(cka) != len(distance):
            lacking.append(" and ".join(pair))
        else:
            points += _windows(", ".join(pair), distance, cka)
    blocks: list[Block] = []
    if points:
        frame = pd.DataFrame(points, columns=PANELS)
        title = evidence.title("Heads that look near, and a ConvNet's blocks")
        axes = ("attention distance, pixels", "CKA")
        blocks = [said(WINDOWS), Plot(frame, "lines", title, *axes, name=evidence.name("windows"))]
    if lacking:
        blocks.append(said(LACKING, names="; ".join(lacking)))
    return blocks


def _of_pair(evidence: Evidence, pair: tuple[str, str], name: str, axes: int) -> Floats | None:
    """An array of two backbones, whichever of them its file names first."""
    for names in (pair, pair[::-1]):
        if (found := evidence.array_of(names, name, axes)) is not None:
            return np.asarray(found, np.float64)
    return None


def _windows(panel: str, distance: Floats, cka: Floats) -> list[tuple[str, str, float, float]]:
    """Points of CKA [groups blocks] over the distance [groups] of groups of heads, from near to far."""
    order = np.argsort(distance, kind="stable")
    return [
        (panel, f"block {block + 1} of the ConvNet", float(distance[group]), float(cka[group, block]))
        for block in range(cka.shape[1])
        for group in order
    ]
