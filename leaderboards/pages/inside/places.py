"""What is drawn of places: whether tokens still know where they are, and what one token tells of the class.

Source: Raghu et al., NeurIPS 2021, figures 9 and 11.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.inside.depth import depth_facets, depth_lines, views
from leaderboards.pages.inside.evidence import Evidence, Floats, deep
from leaderboards.pages.inside.wording import DEPTHS
from leaderboards.pages.notation import said
from tasks.blocks import Block, Maps, SmallMap, own_span

TOKENS = """\
How alike one token is to each patch of the images (CKA): a token that knows where it is has one bright spot,
its own place (after Raghu et al., NeurIPS 2021, figure 9).
{depths}"""

POSITION = {
    "position-r2": "How much of the variance of places is read off tokens",
    "same-place": "How many tokens match the same place of another image",
}
"""Titles of what is drawn of the position audit, by metric."""

ACCURACIES = """\
How often a probe of one token alone finds the class of the image, in percent, token by token in its place.
{depths}"""


def draw_localisation(evidence: Evidence) -> list[Block]:
    """Maps of a few tokens, and how many tokens hold their place over depth."""
    found = evidence.numbers("token_patch", 3)
    blocks: list[Block] = [said(TOKENS, depths=DEPTHS), token_maps(evidence, found)] if found else []
    panels = views(evidence, "localisation", "localisation-top1")
    if panels:
        title = "How well tokens hold their place"
        blocks.append(depth_facets(evidence, panels, title, "share", "depth"))
    return [*blocks, evidence.lacking("Maps of tokens", found)]


def token_maps(evidence: Evidence, found: Mapping[BoardBackbone, Floats]) -> Maps:
    """CKA [blocks tokens patches] of three tokens with all patches, a panel a token and a row a backbone."""
    maps = []
    for one, values in found.items():
        rows, columns = evidence.grid(one, values.shape[2])
        tokens = {
            "token in the corner": 0,
            "token at the upper edge": columns // 2,
            "token in the middle": (rows // 2) * columns + columns // 2,
        }
        for panel, token in tokens.items():
            for name, block in deep(len(values)).items():
                patches = values[block, token].reshape(rows, columns)
                maps.append(SmallMap(panel, one.label, name, patches))
    maps.sort(key=lambda one: -len(one.panel.partition("corner")[1]))
    span = own_span([one.values for one in maps])
    title = evidence.title("Which patches a token is like")
    return Maps(tuple(maps), title, "CKA", span, evidence.name("tokens"))


def draw_position(evidence: Evidence) -> list[Block]:
    """How well places are read off tokens, and how often matches are made by them, over depth."""
    blocks: list[Block] = []
    for metric, title in POSITION.items():
        if panels := views(evidence, metric):
            blocks.append(depth_facets(evidence, panels, title, metric, f"{metric}-depth"))
    return blocks


def draw_tokens(evidence: Evidence) -> list[Block]:
    """Accuracy of single tokens in their places, and their mean over depth."""
    found = evidence.numbers("token_accuracy", 2)
    blocks: list[Block] = [said(ACCURACIES, depths=DEPTHS), accuracy_maps(evidence, found)] if found else []
    rows = evidence.select("fewshot-10")
    if len(rows):
        title = "How often one token finds the class, mean over tokens"
        blocks.append(depth_lines(evidence, rows, title, "fewshot-10, %", "depth"))
    return [*blocks, evidence.lacking("Accuracy of single tokens", found)]


def accuracy_maps(evidence: Evidence, found: Mapping[BoardBackbone, Floats]) -> Maps:
    """Accuracy [blocks tokens] by place of the token, a row a backbone, one scale for all."""
    maps = []
    for one, values in found.items():
        places = evidence.array(one, "token", 3)
        for name, block in deep(len(values)).items():
            where = (
                None if places is None or len(places) != len(values) else np.asarray(places[block], np.int64)
            )
            maps.append(SmallMap("", one.label, name, _placed(evidence, one, values[block], where)))
    span = own_span([one.values for one in maps])
    title = evidence.title("How often one token finds the class")
    return Maps(tuple(maps), title, "percent", span, evidence.name("tokens"))


def _placed(
    evidence: Evidence, one: BoardBackbone, values: Floats, where: NDArray[np.int64] | None
) -> Floats:
    """Numbers of tokens as a map: by their row and column where these are known, negative ones left out."""
    if where is None:
        there = values[np.isfinite(values)]
        return there.reshape(evidence.grid(one, len(there))) if len(there) else np.full((1, 1), np.nan)
    known = (where >= 0).all(axis=1)
    if not known.any():
        return np.full((1, 1), np.nan)
    rows, columns = (np.unique(where[known, side], return_inverse=True) for side in (0, 1))
    placed = np.full((len(rows[0]), len(columns[0])), np.nan)
    placed[rows[1], columns[1]] = values[known]
    return placed
