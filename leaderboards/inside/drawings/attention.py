"""Drawings of attention: distance, average maps, attention to special tokens, and overlap with objects.

Sources: Dosovitskiy et al., ICLR 2021, figure 7; Raghu et al., NeurIPS 2021, figures 3 to 5; Walmer et al.,
CVPR 2023, figures 2, 3 and 5.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Maps, Plot, SmallMap, Table, said
from layerboard.leaderboards.board.frames import PANELS, BoardBackbone, backbone_points
from layerboard.leaderboards.inside.evidence import Evidence, at_depths, evenly, in_depth_order, not_drawn
from layerboard.tasks.metrics.arrays import Floats

DISTANCE = "attention-distance"
PIXELS = f"{DISTANCE}-px"
ENDS = {"lowest block": 0, "highest block": -1, "second lowest": 1, "second highest": -2}

SORTED = """\
Attention distance in pixels of the heads of the first two and last two blocks, sorted within each block:
a rising curve is a block with both local and global heads (after Raghu et al., NeurIPS 2021, figure 3). """

MOST_IMAGES = 2
WHITE = 235  # of what lies below maps that are of no single image
NEAR = 15  # cells along a side of an aligned map that is drawn, the query in the middle

HEADS = {
    "strict": "half of the attention stays at the query",
    "offset": "half is around a place beside the query that gets twice as much as the opposite one",
    "axial": "half is in the row or column of the query, twice as much as in the other",
    "soft": "half is around the query",
    "global": "none of these",
}
"""Kinds of heads (`tasks.analyses.attention_maps.HeadOffset`), and where their attention is, on average."""

CLS = """\
Attention maps of the class token, averaged over images, of every head (after Walmer et al., CVPR 2023,
figures 2, 13 and 17); of patch tokens where there is no class token. {order} The colour of a frame is the
kind of the head, which the maps relative to the query tell."""

ONE = """\
The same for a single image, image 1 below."""

ALIGNED = """\
Attention maps of patch tokens relative to the query patch, which is the centre of each map: a bright
centre is attention to the patch itself, a bright spot beside it attention to a fixed offset (after
Walmer et al., CVPR 2023, figures 3, 14 and 18). {order} What is far from the query is cut off."""

KINDS = """\
Kinds of heads by where the attention of a patch is on average: {kinds}. The first that applies counts. Of
each kind that there is, an example in each backbone, the most concentrated one (of the kind global the
least); the table says which (after Walmer et al., CVPR 2023, figure 3)."""

ALIGNED_TITLE = "Attention maps relative to the query patch"
KINDS_TABLE = "Number of heads of each kind, and the one that is drawn as block.head"

GALLERY = """\
Attention maps of the class token, mean over heads, at several depths: averaged over all images, and in
single ones, there with attention rollout through all blocks; of patch tokens where there is no class token.
{depths}"""
EVERY = "mean of all images"

IOU = "saliency-iou"
OVERLAPS = {
    "best head for each image": f"{IOU}-oracle",
    "best head": f"{IOU}-best",
    "mean of all heads": f"{IOU}-merged",
    "rollout": "rollout-iou",
    "uniform map": f"{IOU}-uniform",
}
"""Lines of a figure of saliency and their metrics, in the order of the meaning of the source's legend."""

ROLLOUT = """\
Attention rollout, averaged over images, at several depths. {depths}"""

WINDOWS = """\
Groups of the first block's heads, from those that look near to those that look far: how alike what they
give is to the first blocks of a ConvNet (after Raghu et al., NeurIPS 2021, figure 5)."""


def draw_distance(evidence: Evidence) -> list[Block]:
    """Mean distance over depth, also by family, sorted heads, and every head over depth."""
    rows, title = {"": evidence.select(DISTANCE)}, "Mean attention distance"
    heads = evidence.of_heads(PIXELS)
    points = []
    for backbone in evidence.backbones:
        drawn = heads[heads["backbone"] == backbone.name]
        layers = sorted({int(layer) for layer in drawn["layer"]})
        there = {name: layers[end] for name, end in ENDS.items() if -len(layers) <= end < len(layers)}
        for name, block in in_depth_order(there).items():
            distances = sorted(drawn.loc[drawn["layer"] == block, "value"].tolist())
            points += [(backbone.label, name, float(rank), value) for rank, value in enumerate(distances, 1)]
    frame, unit = pd.DataFrame(points, columns=PANELS), f"{DISTANCE}, pixels"
    plot = Plot(frame, "lines", "Heads sorted by attention distance", "head, sorted", unit)
    return [
        *evidence.depth_panels(rows, title, DISTANCE, "depth"),
        *evidence.family_panels(DISTANCE, title, "families"),
        *evidence.explained(SORTED, points, plot, "sorted"),
        *evidence.head_points(DISTANCE, "heads"),
    ]


def draw_shares(evidence: Evidence) -> list[Block]:
    """A figure for each kind of query token, with a panel per metric."""
    titles = {"patch": "Attention of patch tokens", "cls": "Attention of the class token"}
    return evidence.token_panels(titles, "share, or entropy")


def draw_maps(evidence: Evidence) -> list[Block]:
    """Maps of heads over depth, share of heads with a fixed offset, and single images."""
    aligned, single = evidence.numbers("aaam", 4), evidence.numbers("sample_heads", 4)
    seen = evidence.numbers("patch_map", 3) | evidence.numbers("cls_map", 3)
    grids = {}
    for backbone in [backbone for backbone in aligned if backbone in seen]:
        rows, columns = ((side + 1) // 2 for side in aligned[backbone].shape[2:])
        patches = seen[backbone][:, :, -rows * columns :]  # the last tokens
        grids[backbone] = patches.reshape(*aligned[backbone].shape[:2], rows, columns)
    sides, title = {"": evidence.select("offset-heads")}, "Share of heads with a fixed offset"
    wall, framed = evidence.walls, Maps((), "", "attention", kinds=tuple(HEADS))
    return [
        *wall(CLS, grids, replace(framed, title="Attention maps of the class token"), "cls"),
        *wall(ONE, single, replace(framed, title="Attention maps of the class token, one image"), "one"),
        *wall(ALIGNED, _near(aligned), replace(framed, title=ALIGNED_TITLE), "aligned"),
        *_examples(evidence, aligned),
        *evidence.depth_panels(sides, title, "offset-heads", "offset-heads"),
        *_gallery(evidence, grids),
        evidence.lacking("Attention maps", aligned),
    ]


def _near(aligned: Mapping[BoardBackbone, Floats]) -> dict[BoardBackbone, Floats]:
    """Aligned maps without what is far from the query, which stays the middle of a cell that is drawn."""
    near = {}
    for backbone, maps in aligned.items():
        # an odd number of cells for each one that is drawn
        times = max((min(maps.shape[2:]) // NEAR - 1) // 2 * 2 + 1, 1)
        rows, columns = (
            slice(max(0, side // 2 - NEAR * times // 2), side // 2 + NEAR * times // 2 + 1)
            for side in maps.shape[2:]
        )
        near[backbone] = maps[:, :, rows, columns]
    return near


def _examples(evidence: Evidence, aligned: Mapping[BoardBackbone, Floats]) -> list[Block]:
    """A head of each kind of each backbone (rows), the most concentrated one, and how many there are."""
    maps: list[SmallMap] = []
    body = []
    for backbone, near in _near(aligned).items():
        kinds = evidence.kinds(backbone, near)
        cells = {"backbone": backbone.label} | dict.fromkeys(HEADS, "0")
        for kind in HEADS if kinds is not None else ():
            there = np.argwhere(kinds == kind)
            drawn = SmallMap("", backbone.label, kind, np.full_like(near[0, 0], np.nan))  # a blank
            if len(there):
                spread = [float(np.square(aligned[backbone][block, head]).sum()) for block, head in there]
                block, head = there[int(np.argmin(spread) if kind == "global" else np.argmax(spread))]
                drawn = replace(drawn, values=near[block, head], kind=kind)
                first = evidence.first_block(backbone, len(near))
                cells[kind] = f"{len(there)} ({first + block}.{head + 1})"
            maps.append(drawn)
        body += [cells] if kinds is not None else []
    if not maps:
        return []
    title, there_are = "Examples of each kind of head", {small.kind for small in maps}
    maps = [small for small in maps if small.column in there_are]
    picture = Maps(tuple(maps), title, "attention", kinds=tuple(HEADS), dense=True)
    words = said(KINDS, kinds="; ".join(f"{kind}: {meaning}" for kind, meaning in HEADS.items()))
    table = Table(pd.DataFrame(body), caption=KINDS_TABLE, folded=True)
    return [words, evidence.titled(picture, "kinds"), table]


def _gallery(evidence: Evidence, means: Mapping[BoardBackbone, Floats]) -> list[Block]:
    """The attention of each backbone on average and over a few images; empty without stored images.

    ``means`` are average maps of every head, [blocks heads height width].
    """
    names = ("sample_image", "sample_cls", "sample_rollout")  # kept together
    images, attended, rollout = (evidence.numbers(name, 4) for name in names)
    if not images:
        return []
    pictures = next(iter(images.values()))
    chosen = {f"image {number}": i for number, i in enumerate(evenly(len(pictures), MOST_IMAGES), 1)}
    maps = [small for each in means for small in at_depths(EVERY, each.label, means[each].mean(axis=1))]
    pixels = {EVERY: np.full(pictures.shape[1:], WHITE, np.uint8)} if maps else {}
    for panel, image in chosen.items():
        for backbone in images:
            maps += at_depths(panel, backbone.label, attended[backbone][image])
            maps.append(SmallMap(panel, backbone.label, "rollout", rollout[backbone][image, -1]))
    pixels |= {panel: pictures[image].astype(np.uint8) for panel, image in chosen.items()}
    unit = "Brightness follows the root of attention."
    picture = Maps(tuple(maps), "Attention maps of single images", unit, images=pixels)
    return evidence.explained(GALLERY, maps, picture, "gallery")


def draw_saliency(evidence: Evidence) -> list[Block]:
    """Overlap with objects over depth for each kind of query token, and average maps of rollout."""
    blocks: list[Block] = []
    for pooling, asking in (("cls", "the class token"), ("patch", "patch tokens")):
        series = {name: evidence.select(metric, pooling=pooling) for name, metric in OVERLAPS.items()}
        if any(len(rows) for name, rows in series.items() if name != "uniform map"):
            title, order = f"Overlap of attention from {asking} with objects", tuple(series)
            plot = Plot(backbone_points(evidence.known, series), "lines", title, "block", "IoU", order=order)
            blocks.append(evidence.titled(plot, pooling))
    rollout = evidence.numbers("rollout_map", 2)
    maps = []
    for backbone, values in rollout.items():
        grids = values.reshape(len(values), *evidence.grid(backbone, values.shape[1]))
        maps += at_depths("", backbone.label, grids)
    blocks += evidence.explained(ROLLOUT, maps, Maps(tuple(maps), "Rollout", "rollout"), "rollout")
    return [*blocks, evidence.lacking("Maps of rollout", rollout)]


def draw_locality(evidence: Evidence) -> list[Block]:
    """CKA with a ConvNet's first blocks over the attention distance, a panel for each pair of backbones."""
    points, lacking = [], []
    for pair in dict.fromkeys(zip(evidence.pairs["backbone"], evidence.pairs["other"], strict=True)):
        kept = {"head_cka": 2, "distance": 1}
        cka, distance = (evidence.array(name, axes, *sorted(pair)) for name, axes in kept.items())
        if cka is None or distance is None:
            lacking.append(" and ".join(pair))
        else:
            panel = ", ".join(pair)
            points += [
                (panel, f"block {block} of the ConvNet", float(distance[group]), float(alike[group]))
                for block, alike in enumerate(cka.T, 1)
                for group in np.argsort(distance, kind="stable")
            ]
    frame, title = pd.DataFrame(points, columns=PANELS), "Heads that look near, and a ConvNet's blocks"
    plot = Plot(frame, "lines", title, "attention distance, pixels", "CKA")
    sentence = not_drawn("Groups of heads", "; ".join(lacking))
    return [*evidence.explained(WINDOWS, points, plot, "windows"), sentence]
