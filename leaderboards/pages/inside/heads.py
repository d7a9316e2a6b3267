"""What is drawn of attention distance: how far heads look, sorted and over depth.

Sources: Raghu et al., NeurIPS 2021, figures 3 and 4; Dosovitskiy et al., ICLR 2021, figure 7 on the right.
"""

import pandas as pd

from leaderboards.pages.inside.depth import PANELS, depth_lines, head_facets
from leaderboards.pages.inside.evidence import Evidence
from leaderboards.pages.notation import said
from tasks.blocks import Block, Plot

DISTANCE = "attention-distance"
PIXELS = f"{DISTANCE}-px"

SORTED = """\
The heads of the two lowest and the two highest blocks, each block's sorted from near to far, in pixels: a
curve that rises from near to far is of a block that looks both near and far at once (after Raghu et al.,
NeurIPS 2021, figure 3). """


def draw_distance(evidence: Evidence) -> list[Block]:
    """Mean distance over depth, sorted heads, and every head over depth."""
    rows = evidence.select(DISTANCE)
    blocks: list[Block] = []
    if len(rows):
        blocks.append(depth_lines(evidence, rows, "How far heads look, on average", DISTANCE, "depth"))
    if len(evidence.of_heads(PIXELS)):
        blocks += [said(SORTED), sorted_heads(evidence)]
    heads = head_facets(evidence, DISTANCE, "heads")
    return [*blocks, heads] if heads else blocks


def sorted_heads(evidence: Evidence) -> Plot:
    """Distances in pixels of the heads of four blocks, a panel a backbone and a line a block."""
    heads = evidence.of_heads(PIXELS)
    points = []
    for one in evidence.backbones:
        own = heads[heads["backbone"] == one.name]
        for name, block in _ends(sorted({int(layer) for layer in own["layer"]})).items():
            distances = sorted(own.loc[own["layer"] == block, "value"].tolist())
            points += [(one.label, name, float(rank), value) for rank, value in enumerate(distances, 1)]
    frame = pd.DataFrame(points, columns=PANELS)
    title = evidence.title("Heads sorted by how far they look")
    return Plot(frame, "lines", title, "head, sorted", f"{DISTANCE}, pixels", name=evidence.name("sorted"))


def _ends(blocks: list[int]) -> dict[str, int]:
    """The two lowest and the two highest blocks by what they are called; none twice."""
    names = {"lowest block": 0, "highest block": -1, "second lowest": 1, "second highest": -2}
    found: dict[int, str] = {}
    for name, place in names.items():
        if -len(blocks) <= place < len(blocks):
            found.setdefault(blocks[place], name)
    ordered = {name: block for block, name in sorted(found.items())}
    order = ["lowest block", "second lowest", "second highest", "highest block"]
    return {name: ordered[name] for name in order if name in ordered}
