"""What is drawn of residual sums: which term leads, token by token, and how far a branch turns the stream.

Sources: Raghu et al., NeurIPS 2021, figures 7 and E.2; Walmer et al., CVPR 2023, figure 23.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.inside.depth import depth_facets
from leaderboards.pages.inside.evidence import Evidence, Floats
from leaderboards.pages.notation import said
from tasks.blocks import Block, HeatMap, Matrix, own_span

RATIO = "norm-ratio"
HIGHEST = 10.0
"""Ratio above which all look alike, as on the source's axis."""

COSINE = "cosine-skip-output"
TOKENS = {"cls": "class token", "patch": "patches"}

PAIR = "skip-branch"
SIDES = ("block of what is added", "block of what skips")
WITHIN = ("cka-skip-branch",)

SIMILAR = """\
How alike what skips a half of a block (rows) and what a half adds (columns) are, of each block with each, by
patch tokens (after Walmer et al., CVPR 2023, figure 23)."""

TERMS = """\
How many times longer what skips a half of a block is than what the half adds, for each token: light columns
are blocks that change that token little. The class token is token 0, where there is one (after Raghu et al.,
NeurIPS 2021, figure 7). """


def draw_residuals(evidence: Evidence) -> list[Block]:
    """Norm ratios by token and block, the same over depth, and cosines over depth."""
    ratios = evidence.numbers("ratio", 3)
    blocks: list[Block] = [said(TERMS), ratio_maps(evidence, ratios)] if ratios else []
    panels = _panels(evidence, RATIO)
    if panels:
        title = "What skips a half of a block against what the half adds"
        blocks.append(depth_facets(evidence, panels, title, RATIO, "ratio-depth"))
    cosines = _panels(evidence, COSINE)
    if cosines:
        blocks.append(depth_facets(evidence, cosines, "How far a half turns the stream", COSINE, "cosines"))
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


def _panels(evidence: Evidence, metric: str) -> dict[str, pd.DataFrame]:
    """Rows of a metric by half of a block and kind of token, where there are some."""
    found: dict[str, pd.DataFrame] = {}
    for tap in dict.fromkeys(str(tap) for tap in evidence.rows["tap"]):
        for pooling, tokens in TOKENS.items():
            rows = evidence.select(metric, pooling=pooling, tap=tap)
            found |= {f"{tap}, {tokens}": rows} if len(rows) else {}
    return found


def draw_similarity(evidence: Evidence) -> list[Block]:
    """CKA of what skips and what is added, of all blocks with all, a panel a backbone and half."""
    found = evidence.numbers("cka", 5)
    panels = []
    for one, values in found.items():
        named = {axis: _axis(evidence, one, axis) for axis in ("pooling", "half", "pair")}
        pooling, pair = (_place(named[axis], name) for axis, name in (("pooling", "patch"), ("pair", PAIR)))
        block = evidence.blocks(one, values.shape[3])[0]
        for place, half in enumerate(named["half"][: values.shape[1]]):
            panels.append(Matrix(f"{one.label}, {half}", values[pooling, place, pair], (block, block)))
    blocks: list[Block] = []
    if panels:
        title = evidence.title("How alike what skips and what is added are")
        blocks = [
            said(SIMILAR),
            HeatMap(tuple(panels), title, *SIDES, "CKA", (0.0, 1.0), evidence.name("cka")),
        ]
    within = {name: rows for name in WITHIN if len(rows := evidence.select(name, pooling="patch"))}
    for name, rows in within.items():
        taps = {str(tap): rows[rows["tap"] == tap] for tap in dict.fromkeys(rows["tap"])}
        title = f"{name} within each block, patches"
        blocks.append(depth_facets(evidence, taps, title, "CKA", name))
    return [*blocks, evidence.lacking("CKA of all blocks", found)]


def _axis(evidence: Evidence, one: BoardBackbone, name: str) -> list[str]:
    """The names along an axis."""
    found = evidence.array(one, name, 1)
    return [] if found is None else [str(each) for each in found]


def _place(names: Sequence[str], name: str) -> int:
    """Where a name is; the first place where it is not."""
    return names.index(name) if name in names else 0
