"""Drawings of residual sums: norm ratios by token, cosines, and CKA of skips and branches.

Sources: Raghu et al., NeurIPS 2021, figures 7 and E.2; Walmer et al., CVPR 2023, figure 23.
"""

from layerboard.leaderboards.blocks.blocks import Block, HeatMap, Matrix, own_span
from layerboard.leaderboards.inside.evidence import Evidence

RATIO = "norm-ratio"
HIGHEST = 10.0  # ratios are clipped here, as on the source's axis

COSINE = "cosine-skip-output"

PAIR = "skip-branch"
SIDES = ("block of what is added", "block of what skips")

SIMILAR = """\
CKA of the skip connections (rows, block 1 at the bottom) with the branches (columns) of all blocks, on patch
tokens (after Walmer et al., CVPR 2023, figure 23)."""

TERMS = """\
Norm of the skip connection over the norm of the branch (attention or MLP), by token: in light columns
the block changes the token little. The class token is token 0, where there is one (after Raghu et al.,
NeurIPS 2021, figure 7)."""


def draw_residuals(evidence: Evidence) -> list[Block]:
    """Norm ratios by token and block, a panel per backbone and half; the same and cosines over depth."""
    ratios = evidence.numbers("ratio", 3)
    panels = [
        Matrix(
            f"{backbone.label}\n{half}", values[:, row].T, (0, evidence.first_block(backbone, len(values)))
        )
        for backbone, values in ratios.items()
        for row, half in enumerate(evidence.texts(backbone, "half"))
    ]
    span = own_span([panel.values for panel in panels])
    scale, title = (0.0, min(span[1], HIGHEST)) if span else None, "Skip norm over branch norm, by token"
    picture = HeatMap(tuple(panels), title, "block", "token", RATIO, scale)
    title = "Skip norm over branch norm"
    return [
        *evidence.explained(TERMS, panels, picture, "ratio"),
        *evidence.depth_panels(evidence.views(RATIO), title, RATIO, "ratio-depth"),
        *evidence.depth_panels(evidence.views(COSINE), "How far a half turns the stream", COSINE, "cosines"),
        evidence.lacking("Ratios of single tokens", ratios),
    ]


def draw_similarity(evidence: Evidence) -> list[Block]:
    """CKA of the skips and branches of all blocks, a panel per backbone and half."""
    cka = evidence.numbers("cka", 5)
    panels = []
    for backbone, values in cka.items():
        poolings, halves, pairs = (evidence.texts(backbone, axis) for axis in ("pooling", "half", "pair"))
        of_patches = values[poolings.index("patch"), :, pairs.index(PAIR)]
        first = (evidence.first_block(backbone, values.shape[3]),) * 2
        named = zip(halves, of_patches, strict=True)
        panels += [Matrix(f"{backbone.label}\n{half}", table, first, upward=True) for half, table in named]
    picture = HeatMap(tuple(panels), "How alike what skips and what is added are", *SIDES, "CKA", (0.0, 1.0))
    metric = f"cka-{PAIR}"
    rows = evidence.select(metric, pooling="patch")
    taps = {str(tap): rows[rows["tap"] == tap] for tap in dict.fromkeys(rows["tap"])}
    return [
        *evidence.explained(SIMILAR, panels, picture, "cka"),
        *evidence.depth_panels(taps, f"{metric} within each block, patches", "CKA", metric),
        evidence.lacking("CKA of all blocks", cka),
    ]
