"""What is drawn of the criteria of layers that need no labels."""

from leaderboards.pages.inside.depth import depth_facets
from leaderboards.pages.inside.evidence import Evidence
from leaderboards.pages.notation import said
from tasks.blocks import Block

POOLINGS = {"cls": "the class token", "mean": "the mean of the patch tokens"}

NO_ACCURACY = """\
No label was used, and **none of these criteria is an accuracy**: they may name a layer that is not the best
for a task, and a network that has learned nothing may have a high rank. `effective-rank` and `rankme` are at
most the number of images and of dimensions, so they compare only over the same images. `spectrum-decay` is 0
where all directions weigh alike, and the higher the fewer of them matter. `cka-to-last` and
`neighbours-to-last` are 1 and 100 at the last block, with which they compare. `view-neighbours` and
`view-top1` ask whether an image and its mirror image are alike, which a layer of colours alone answers
well."""


def draw_label_free(evidence: Evidence) -> list[Block]:
    """How to read the criteria, and a figure for each kind of vector, a panel a criterion."""
    blocks: list[Block] = [said(NO_ACCURACY)]
    for pooling, words in POOLINGS.items():
        panels = {
            metric: evidence.select(metric, pooling=pooling, tap="block") for metric in evidence.one.metrics
        }
        panels = {metric: rows for metric, rows in panels.items() if len(rows)}
        if panels:
            blocks.append(depth_facets(evidence, panels, f"Criteria of {words}", "criterion", pooling))
    return blocks
