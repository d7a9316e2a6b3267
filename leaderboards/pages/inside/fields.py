"""What is drawn of receptive fields: what pixels move a token; and of heads beside a ConvNet's first blocks.

Source: Raghu et al., NeurIPS 2021, figures 5 and 6.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.blocks import Block
from leaderboards.pages.inside.depth import depth_facets, views
from leaderboards.pages.inside.evidence import Evidence, Floats, deep
from leaderboards.pages.inside.wording import DEPTHS
from leaderboards.pages.notation import said
from leaderboards.pages.pictures import Figure, Maps, SmallMap

FIELDS = """\
Which pixels move the middle token's features, by the size of their gradients (after Raghu et al., NeurIPS
2021, figure 6); colours follow the root of the gradient, so that what is faint can be seen.
{depths}"""

WINDOWS = """\
Groups of the first block's heads, from those that look near to those that look far: how alike what they
give is to the first blocks of {other} (after Raghu et al., NeurIPS 2021, figure 5). """


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
    """CKA with a ConvNet's first blocks over how far heads look, for each backbone that has it."""
    blocks: list[Block] = []
    found = evidence.numbers("head_cka", 2)
    drawn = [one for one in found if evidence.array(one, "distance", 1) is not None]
    for one in drawn:
        distance = np.asarray(evidence.array(one, "distance", 1), np.float64)
        if len(distance) == len(found[one]):
            blocks.append(windows_figure(evidence, one, distance, found[one]))
    if blocks:
        blocks = [said(WINDOWS, other="a ConvNet"), *blocks]
    return [*blocks, evidence.lacking("Groups of heads", drawn)]


def windows_figure(evidence: Evidence, one: BoardBackbone, distance: Floats, cka: Floats) -> Figure:
    """CKA [groups blocks] of groups of heads with a ConvNet's blocks over their distance [groups], px."""
    order = np.argsort(distance, kind="stable")
    points = [
        (f"block {block + 1} of the ConvNet", float(distance[group]), float(cka[group, block]))
        for block in range(cka.shape[1])
        for group in order
    ]
    frame = pd.DataFrame(points, columns=["series", "x", "y"])
    title = f"{one.label}: {evidence.title('heads that look near and a ConvNet')}"
    name = evidence.name(f"windows-{one.name}")
    return Figure(frame, "lines", title, "attention distance, pixels", "CKA", name=name)
