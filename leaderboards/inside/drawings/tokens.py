"""Drawings of what tokens see and hold: receptive fields, filters, residual sums, positions and classes.

Sources: Raghu et al., NeurIPS 2021, figures 6, 7, 9, 11 and E.2; Dosovitskiy et al., ICLR 2021, figure 7,
left and centre; Walmer et al., CVPR 2023, figure 23.
"""

import numpy as np

from layerboard.leaderboards.blocks.blocks import Block, HeatMap, Maps, Matrix, SmallMap, said
from layerboard.leaderboards.charts.raster import own_span
from layerboard.leaderboards.inside.evidence import Evidence, at_depths, deep, evenly
from layerboard.tasks.metrics.arrays import Floats

# ---- the input side ------------------------------------------------------------------------------

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
        SmallMap(backbone.label, f"{rank // IN_ROW * IN_ROW + 1}", f"{rank % IN_ROW + 1}", pixels)
        for backbone, values in filters.items()
        for rank, image in enumerate(np.nan_to_num(values[:MOST_FILTERS]))  # NaN is black
        for pixels in [np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)]
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


# ---- residual sums -------------------------------------------------------------------------------

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


# ---- tokens and vectors --------------------------------------------------------------------------

TOKENS = """\
CKA of one token with the input patches at every position: a token that keeps its position has one bright
spot there (after Raghu et al., NeurIPS 2021, figure 9). {depths}"""

POSITION = {
    "position-r2": "Position decoded from tokens (R²)",
    "same-place": "Tokens matched to the same position in another image",
}
"""Titles of the plots of the position audit, by metric."""

ACCURACIES = """\
Accuracy in percent of a probe of one token alone, drawn at the position of each token.
{depths}"""

CRITERIA = {"cls": "Criteria of the class token", "mean": "Criteria of the mean of the patch tokens"}

NO_ACCURACY = """\
No label was used, and **none of these criteria is an accuracy**: they may name a layer that is not the best
for a task, and a network that has learned nothing may have a high rank. `effective-rank` and `rankme` are at
most the number of images and of dimensions, so they compare only over the same images. `spectrum-decay` is 0
where all directions have equal variance, and higher if fewer directions matter. `cka-to-last` and
`neighbours-to-last` compare with the last block, where they are 1 and 100. `view-neighbours` and
`view-top1` measure whether an image and its mirror image are similar, on which a layer of colours alone
scores well."""


def draw_localisation(evidence: Evidence) -> list[Block]:
    """Maps of a few tokens, a row per backbone, and localisation over depth."""
    cka = evidence.numbers("token_patch", 3)
    maps = []
    for panel in ("token in the corner", "token at the upper edge", "token in the middle"):
        for backbone, values in cka.items():
            rows, columns = evidence.grid(backbone, values.shape[2])
            row = rows // 2 if panel.endswith("middle") else 0
            column = 0 if panel.endswith("corner") else columns // 2
            patches = values[:, row * columns + column].reshape(len(values), rows, columns)
            maps += at_depths(panel, backbone.label, patches)
    span = own_span([drawn.values for drawn in maps])
    picture = Maps(tuple(maps), "CKA of a token with input patches", "CKA", span)
    panels = evidence.views("localisation", "localisation-top1")
    return [
        *evidence.explained(TOKENS, maps, picture, "tokens"),
        *evidence.depth_panels(panels, "Localisation of tokens", "share", "depth"),
        evidence.lacking("Maps of tokens", cka),
    ]


def draw_position(evidence: Evidence) -> list[Block]:
    """R² of decoded positions, and share of matches at the same position, over depth."""
    return [
        plot
        for metric, title in POSITION.items()
        for plot in evidence.depth_panels(evidence.views(metric), title, metric, f"{metric}-depth")
    ]


def draw_tokens(evidence: Evidence) -> list[Block]:
    """Accuracy of single tokens at their positions, a row per backbone, and the mean over depth."""
    accuracies, cells = evidence.numbers("token_accuracy", 2), evidence.numbers("token", 3)
    maps = [
        SmallMap("", backbone.label, name, _placed(values[block], cells[backbone][block]))
        for backbone, values in accuracies.items()
        for name, block in deep(len(values)).items()
    ]
    rows, title = {"": evidence.select("fewshot-10")}, "How often one token finds the class"
    span = own_span([drawn.values for drawn in maps])
    return [
        *evidence.explained(ACCURACIES, maps, Maps(tuple(maps), title, "percent", span), "tokens"),
        *evidence.depth_panels(rows, f"{title}, mean over tokens", "fewshot-10, %", "depth"),
        evidence.lacking("Accuracy of single tokens", accuracies),
    ]


def _placed(values: Floats, cells: Floats) -> Floats:
    """Values of tokens as a map, by the row and column of each; negative cells stand for no token."""
    known = (cells >= 0).all(axis=1)
    rows, columns = (np.unique(cells[known, side], return_inverse=True) for side in (0, 1))
    placed = np.full((len(rows[0]), len(columns[0])), np.nan)
    placed[rows[1], columns[1]] = values[known]
    return placed


def draw_label_free(evidence: Evidence) -> list[Block]:
    """Notes on the criteria, and a figure for each kind of vector, with a panel per criterion."""
    return [said(NO_ACCURACY), *evidence.token_panels(CRITERIA, "criterion", tap="block")]
