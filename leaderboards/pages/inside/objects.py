"""What is drawn of saliency: how well heads and rollout mark objects.

Source: Walmer et al., CVPR 2023, figure 5; the order of its lines is that of its legend's meaning.
"""

from collections.abc import Mapping

import pandas as pd

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.inside.depth import backbone_facets
from leaderboards.pages.inside.evidence import Evidence, Floats, deep
from leaderboards.pages.inside.wording import DEPTHS
from leaderboards.pages.notation import said
from tasks.blocks import Block, Maps, SmallMap

IOU = "saliency-iou"
SERIES = {
    "best head for each image": f"{IOU}-oracle",
    "best head": f"{IOU}-best",
    "mean of all heads": f"{IOU}-merged",
    "rollout": "rollout-iou",
    "uniform map": f"{IOU}-uniform",
}
ASKING = {"cls": "the class token", "patch": "patch tokens"}

ROLLOUT = """\
Where rollout says the output comes from, on average over the images, after blocks of growing depth.
{depths}"""


def draw_saliency(evidence: Evidence) -> list[Block]:
    """Overlap with objects over depth for each kind of token that asks, and the average maps of rollout."""
    blocks: list[Block] = []
    for pooling, asking in ASKING.items():
        series = _of_pooling(evidence, pooling)
        if any(len(rows) for name, rows in series.items() if name != "uniform map"):
            title = f"How well attention from {asking} marks objects"
            blocks.append(backbone_facets(evidence, series, title, "IoU", pooling))
    maps = evidence.numbers("rollout_map", 2)
    if maps:
        blocks += [said(ROLLOUT, depths=DEPTHS), rollout_maps(evidence, maps)]
    return [*blocks, evidence.lacking("Maps of rollout", maps)]


def rollout_maps(evidence: Evidence, maps: Mapping[BoardBackbone, Floats]) -> Maps:
    """Average maps of rollout, [blocks patches] each, a row a backbone."""
    drawn = []
    for one, values in maps.items():
        rows, columns = evidence.grid(one, values.shape[1])
        for name, block in deep(len(values)).items():
            drawn.append(SmallMap("", one.label, name, values[block].reshape(rows, columns)))
    return Maps(tuple(drawn), evidence.title("Rollout"), "rollout", name=evidence.name("rollout"))


def _of_pooling(evidence: Evidence, pooling: str) -> dict[str, pd.DataFrame]:
    """The lines of a figure; what has no such tokens, as a floor, is of any."""
    found = {}
    for name, metric in SERIES.items():
        rows = evidence.select(metric)
        own = rows[rows["pooling"] == pooling]
        found[name] = own if len(own) else rows[:0]
    return found
