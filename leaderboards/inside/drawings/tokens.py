"""Drawings of tokens and vectors: position and class in tokens, and label-free criteria.

Source: Raghu et al., NeurIPS 2021, figures 9 and 11.
"""

import numpy as np

from layerboard.leaderboards.blocks.blocks import Block, Maps, SmallMap, own_span, said
from layerboard.leaderboards.inside.evidence import Evidence, at_depths, deep
from layerboard.tasks.metrics.arrays import Floats

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
