"""What is drawn of attention maps: where the class token looks, and which heads look to which side.

Source: Walmer et al., CVPR 2023, figures 2 and 3.
"""

from collections.abc import Mapping

import numpy as np

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.inside.depth import depth_lines
from leaderboards.pages.inside.evidence import Evidence, Floats, deep, evenly
from leaderboards.pages.inside.wording import DEPTHS
from leaderboards.pages.notation import said
from tasks.blocks import Block, Gallery, Maps, SmallMap

MOST_HEADS, MOST_IMAGES = 6, 4

CLS = """\
Where heads look on average over the images, from the class token (after Walmer et al., CVPR 2023,
figure 2).
{depths}"""

ALIGNED = """\
Where heads look seen from the patch that looks, which is the middle of each map: a bright middle is a head
that looks at the patch itself, a bright spot beside it one that looks to that side (after Walmer et al.,
CVPR 2023, figure 3).
{depths}"""

GALLERY = """\
What the class token attends to in single images, the mean over heads, in blocks of growing depth, and what
rollout says reaches it through all of them; without a class token, what patches attend to.
{depths}"""


def draw_maps(evidence: Evidence) -> list[Block]:
    """Maps of heads over depth, share of heads that look to a side, and single images."""
    aligned, cls = evidence.numbers("aaam", 4), evidence.numbers("cls_map", 3)
    blocks: list[Block] = []
    if drawn := class_maps(evidence, cls, aligned):
        blocks += [said(CLS, depths=DEPTHS), drawn]
    if aligned:
        blocks += [said(ALIGNED, depths=DEPTHS), aligned_maps(evidence, aligned)]
    sides = evidence.select("offset-heads")
    if len(sides):
        title = "Share of heads that look to one side"
        blocks.append(depth_lines(evidence, sides, title, "offset-heads", "offset-heads"))
    if picture := gallery(evidence):
        blocks += [said(GALLERY, depths=DEPTHS), picture]
    return [*blocks, evidence.lacking("Attention maps", aligned)]


def aligned_maps(evidence: Evidence, aligned: Mapping[BoardBackbone, Floats]) -> Maps:
    """Aligned attention [blocks heads down right] of some heads and blocks, a panel a backbone."""
    title = evidence.title("Attention seen from the patch that looks")
    return Maps(_heads_by_depth(aligned), title, "attention", name=evidence.name("aligned"))


def class_maps(
    evidence: Evidence, maps: Mapping[BoardBackbone, Floats], aligned: Mapping[BoardBackbone, Floats]
) -> Maps | None:
    """Average attention of the class token to patches, of some heads and blocks; None without any.

    Args:
        evidence: What they are of.
        maps: [blocks heads tokens], what comes before the patches first.
        aligned: Aligned attention, which tells the grid; without it the grid is a square.
    """
    grids = {}
    for one, values in maps.items():
        if one in aligned:
            rows, columns = ((side + 1) // 2 for side in aligned[one].shape[2:])
        else:
            rows = columns = int(np.sqrt(values.shape[2]))
        if rows * columns <= values.shape[2]:
            patches = values[:, :, values.shape[2] - rows * columns :]
            grids[one] = patches.reshape(*values.shape[:2], rows, columns)
    title = evidence.title("Where the class token looks")
    return Maps(_heads_by_depth(grids), title, "attention", name=evidence.name("cls")) if grids else None


def gallery(evidence: Evidence) -> Gallery | None:
    """A few images with what each backbone looks at in them; None where no backbone has kept any."""
    images = {one: evidence.array(one, "sample_image", 4) for one in evidence.backbones}
    seen = {one: pixels for one, pixels in images.items() if pixels is not None}
    attended = {one: maps for one, maps in evidence.numbers("sample_cls", 4).items() if one in seen}
    if not attended:
        return None
    rollout = evidence.numbers("sample_rollout", 4)
    first = next(iter(attended))
    chosen = evenly(len(seen[first]), MOST_IMAGES)
    shown = {f"image {number}": place for number, place in enumerate(chosen, 1)}
    maps = []
    for panel, place in shown.items():
        for one, values in attended.items():
            if place >= len(values):
                continue
            depths = deep(values.shape[1])
            maps += [SmallMap(panel, one.label, name, values[place, block]) for name, block in depths.items()]
            if one in rollout and place < len(rollout[one]):
                maps.append(SmallMap(panel, one.label, "rollout", rollout[one][place, -1]))
    pixels = {panel: np.asarray(seen[first][place], np.uint8) for panel, place in shown.items()}
    title = evidence.title("What is looked at in single images")
    return Gallery(
        pixels, tuple(maps), title, "Brightness follows the root of attention.", evidence.name("gallery")
    )


def _heads_by_depth(maps: Mapping[BoardBackbone, Floats]) -> tuple[SmallMap, ...]:
    """Some heads as rows and some blocks as columns of [blocks heads height width], a panel a backbone."""
    return tuple(
        SmallMap(one.label, f"head {head + 1}", name, values[block, head])
        for one, values in maps.items()
        for head in evenly(values.shape[1], MOST_HEADS)
        for name, block in deep(len(values)).items()
    )
