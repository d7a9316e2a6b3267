"""What is drawn of residual sums: which term leads, token by token, and how far a branch turns the stream.

Sources: Raghu et al., NeurIPS 2021, figures 7 and E.2; Walmer et al., CVPR 2023, figure 23.
"""

from collections.abc import Mapping

import pandas as pd

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.blocks import Block
from leaderboards.pages.inside.depth import depth_facets
from leaderboards.pages.inside.evidence import Evidence, Floats
from leaderboards.pages.notation import said
from leaderboards.pages.pictures import HeatMap, Matrix
from leaderboards.pages.svg.raster import own_span

RATIO = "norm-ratio"
HIGHEST = 10.0
"""Ratio above which all look alike, as on the source's axis."""

COSINES = ("cosine-skip-output", "cosine-skip-branch", "cosine-branch-output")
TOKENS = {"cls": "class token", "patch": "patches"}

TERMS = """\
How many times longer what skips a half of a block is than what the half adds, for each token: light columns
are blocks that change that token little. The class token is token 0, where there is one (after Raghu et al.,
NeurIPS 2021, figure 7). """


def draw_residuals(evidence: Evidence) -> list[Block]:
    """Norm ratios by token and block, the same over depth, and cosines over depth."""
    ratios = evidence.numbers("ratio", 3)
    blocks: list[Block] = [said(TERMS), ratio_maps(evidence, ratios)] if ratios else []
    panels = _panels(evidence, (RATIO,))
    if panels:
        title = "What skips a half of a block against what the half adds"
        blocks.append(depth_facets(evidence, panels, title, RATIO, "ratio-depth"))
    cosines = _panels(evidence, COSINES)
    if cosines:
        blocks.append(depth_facets(evidence, cosines, "How far a half turns the stream", "cosine", "cosines"))
    return [*blocks, evidence.lacking("Ratios of single tokens", ratios)]


def ratio_maps(evidence: Evidence, ratios: Mapping[BoardBackbone, Floats]) -> HeatMap:
    """Norm ratios [blocks halves tokens] as tokens by blocks, a panel a backbone and half."""
    panels = []
    for one, values in ratios.items():
        halves = evidence.array(one, "half", 1)
        first = (0, evidence.blocks(one, len(values))[0])
        for place in range(values.shape[1]):
            half = str(halves[place]) if halves is not None and place < len(halves) else f"half {place + 1}"
            panels.append(Matrix(f"{one.label}, {half}", values[:, place].T, first))
    span = own_span([one.values for one in panels])
    return HeatMap(
        tuple(panels),
        evidence.title("What skips, against what is added"),
        "block",
        "token",
        RATIO,
        (0.0, min(span[1], HIGHEST)) if span else None,
        evidence.name("ratio"),
    )


def _panels(evidence: Evidence, metrics: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """Rows of each metric, half and kind of token that has some."""
    taps = dict.fromkeys(str(tap) for tap in evidence.rows["tap"])
    found: dict[str, pd.DataFrame] = {}
    for metric in metrics:
        for pooling, tokens in TOKENS.items():
            for tap in taps:
                rows = evidence.select(metric, pooling=pooling, tap=tap)
                name = f"{tap}, {tokens}" if len(metrics) == 1 else f"{metric}: {tap}, {tokens}"
                found |= {name: rows} if len(rows) else {}
    return found
