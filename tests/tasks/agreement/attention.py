"""The analyses of attention against the code that Teaching Matters released, and against float64."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from layerboard.tasks.analyses.attention import AttentionDistance, AttentionShares
from layerboard.tasks.analyses.attention_maps import AttentionMapsTask
from layerboard.tasks.analyses.saliency import centre_square, touched
from layerboard.tasks.framework.base import Findings
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.framework.task import AnalysisTask
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered
from tests.tasks.analyses import test_saliency as saliency
from tests.tasks.analyses.passes import Pieces, found_in, probe, scores_of
from tests.tasks.analyses.test_attention_maps import reference
from tests.tasks.planted import CASES, built, own

TOLERANCE = 2e-6
"""Attention is stored, and the released code computes, in single precision."""

MASKS = "annotation_grids"

SHARES = ("entropy", "attention-to-cls", "attention-to-registers", "attention-to-self")

ROLLOUTS = {
    "mean": "rollout-iou",
    "max": "rollout-iou-max",
    "min": "rollout-iou-min",
    "mean_discard_0.9": "rollout-iou-discard",
    "max_discard_0.9": "rollout-iou-max-discard",
}


def compare(name: str) -> list[Finding]:
    """Findings of one case."""
    if name == MASKS:
        return gathered(_masks())
    with TemporaryDirectory() as folder:
        return gathered(_all(name, Path(folder)))


def _masks() -> Iterator[Finding]:
    for image, masks in built(MASKS).items():
        for grid, expected in CASES[MASKS]["expected"][image].items():
            side = int(grid.removeprefix("grid_"))
            found = touched([centre_square(mask) for mask in masks], (side, side)).astype(int)
            rows = expected["official_union"] or ["0" * side] * side
            yield exact(
                "cells that masks touch", OFFICIAL, found, [[int(cell) for cell in row] for row in rows]
            )


def _all(name: str, folder: Path) -> Iterator[Finding]:
    layers, cells = reference(name)
    official: Mapping[str, Any] = CASES[name]["expected"].get("official", {})

    def of(task: AnalysisTask, called: str) -> Findings:
        return found_in(task, folder / called, layers, cells, _in_halves(layers))

    images = probe(layers.shape[1], 32)
    yield from _distance(name, of(AttentionDistance(images), "distance"), official)
    yield from _maps(name, of(AttentionMapsTask(images, config_of(STANDARD, "attention-maps")), "maps"))
    yield from _shares(name, of(AttentionShares(images), "shares"))
    if official:
        paper = of(AttentionMapsTask(images, config_of(PAPER, "attention-maps")), "offsets")
        yield from _offsets(paper, official["average_att_offset"]["d"])
    for protocol in ("standard", "paper") if cells[0] == cells[1] else ("standard",):
        task, *_ = saliency.reference(name, saliency.RULES[protocol])
        marked = of(task, f"saliency-{protocol}")
        yield from _saliency(name, protocol, marked)
        if official and protocol == "paper":
            yield from _released_saliency(marked, official["saliency"])


def _in_halves(layers: Tensor) -> Pieces:
    """The first block is seen whole, the others in two pieces, as where memory runs out."""
    count = layers.shape[1]
    whole, halves = [slice(0, count)], [slice(0, count // 2), slice(count // 2, count)]
    return [whole] + [halves if count > 1 else whole] * (len(layers) - 1)


def _of_heads(found: Findings, index: int, pooling: str, metric: str) -> list[float]:
    """Values of a metric for each head of a block."""
    scores = scores_of(found, index, pooling)
    return [scores[metric, head] for head in range(len(scores)) if (metric, head) in scores]


def _distance(name: str, found: Findings, official: Mapping[str, Any]) -> Iterator[Finding]:
    distance, expected = found.arrays["distance"], own(name, "A3")
    if official:
        yield _near("attention distance", OFFICIAL, distance, official["avg-att-dist"])
    yield _near("attention distance", OWN, distance, expected["distance"])
    for row, ratios in enumerate(expected["ratio_head"]):
        heads = _of_heads(found, row + 1, "patch", "attention-distance-ratio")
        yield _near("attention distance over that of uniform attention", OWN, heads, ratios)
        for metric in {"distance_range", "local_heads"} & {*expected}:
            value = scores_of(found, row + 1, "patch")[metric.replace("_", "-"), -1]
            yield _near("range of distances and share of local heads", OWN, value, expected[metric][row])


def _maps(name: str, found: Findings) -> Iterator[Finding]:
    maps, offsets = own(name, "A1"), own(name, "A2")
    kinds = {"cls_map", "patch_map"}
    yield exact("which maps there are", OWN, sorted(kinds & {*found.arrays}), sorted(kinds & {*maps}))
    for array in kinds & {*maps}:
        yield _near("average maps", OWN, found.arrays[array], maps[array])
    yield _near("aligned aggregated maps", OWN, found.arrays["aaam"], offsets["aaam"])
    yield exact("classes of heads", OWN, found.arrays["class"], offsets["class"])
    yield exact("peaks of aligned maps", OWN, found.arrays["peak"], offsets["peak_dy_dx"])
    for row, places in enumerate(offsets["offset_dy_dx_tokens"]):
        scores = scores_of(found, row + 1, "patch")
        lengths = np.hypot(*np.moveaxis(np.array(places), -1, 0))
        lengths_found = _of_heads(found, row + 1, "patch", "offset")
        yield close("offset of aligned maps", OWN, lengths_found, lengths, 5e-6)
        for key in ("local_mass", "peak_offset"):
            heads = _of_heads(found, row + 1, "patch", key.replace("_", "-"))
            yield _near("mass around the centre and at the peak", OWN, heads, offsets[key][row])
        if "offset_heads" in offsets:
            share = scores["offset-heads", -1]
            yield _near("share of heads with an offset", OWN, share, offsets["offset_heads"][row])
        heads = _of_heads(found, row + 1, "patch", "std-over-queries")
        queries = np.array(maps["std_over_queries_raw"])[:, row].mean(axis=0)
        yield _near("deviations over queries and heads", OWN, heads, queries)
        if "std_over_heads_raw" in maps:
            over_heads = np.array(maps["std_over_heads_raw"])[:, row].mean()
            yield _near("deviations over queries and heads", OWN, scores["std-over-heads", -1], over_heads)
        for pooling in ("cls", "patch"):
            if "offset_heads" in offsets and f"map_centre_distance_{pooling}" in maps:
                heads = _of_heads(found, row + 1, pooling, "map-centre-distance")
                centre = maps[f"map_centre_distance_{pooling}"][row]
                yield _near("distance of maps from the centre", OWN, heads, centre)


def _shares(name: str, found: Findings) -> Iterator[Finding]:
    expected = own(name, "A6")
    for pooling in {each.pooling for each in found.outcomes}:
        for metric in SHARES:
            table = np.asarray(expected.get(f"{metric.replace('-', '_')}_{pooling}", np.zeros((0, 1, 0))))
            for row in range(table.shape[1]):
                heads = _of_heads(found, row + 1, pooling, metric)
                what = "entropy and attention to class token, registers and self"
                yield _near(what, OWN, heads, table[:, row].mean(0) if len(table) else [])
                if len(table):
                    yield _near(
                        what, OWN, scores_of(found, row + 1, pooling)[metric, -1], table[:, row].mean()
                    )


def _offsets(found: Findings, official: list[list[float]]) -> Iterator[Finding]:
    for row, expected in enumerate(official):
        heads = _of_heads(found, row + 1, "patch", "offset-unit")
        yield close("offset of aligned maps", OFFICIAL, heads, expected, 5e-6)


def _saliency(name: str, protocol: str, found: Findings) -> Iterator[Finding]:
    expected = own(name, "A4")[protocol]
    ious = found.arrays["iou"]
    for mode, pooling in enumerate(("cls", "patch")):
        if pooling not in expected:
            yield exact("IoU without a class token", OWN, np.isnan(ious[..., mode]).all(), True)
            continue
        yield _near("saliency IoU", OWN, ious[..., mode], expected[pooling]["iou"])
        for row in range(ious.shape[1]):
            floor = scores_of(found, row + 1, pooling)["saliency-iou-uniform", -1]
            yield _near("IoU of a uniform map", OWN, floor, expected["saliency_iou_uniform_floor"])
        if "best" in expected[pooling]:
            yield from _best_heads(found, pooling, found.arrays["best_head"][:, mode], expected[pooling])
    if "A7" in CASES[name]["expected"]["own"]:
        yield from _rollout(found, own(name, "A7"), protocol)


def _best_heads(
    found: Findings, pooling: str, heads: NDArray[np.int64], expected: Mapping[str, Any]
) -> Iterator[Finding]:
    """The best head of each block and of all, of the images together, apart, and of held-out ones."""
    yield exact("best heads", OWN, heads, expected["best_head"])
    for row in range(len(heads)):
        scores = scores_of(found, row + 1, pooling)
        merged = np.array(expected["merged"])[:, row].mean()
        values = [scores[f"saliency-iou-{word}", -1] for word in ("best", "oracle", "merged")]
        wanted = [expected["best"][row], expected["oracle"][row], merged]
        yield _near("IoU of the best head, of an oracle and of all merged", OWN, values, wanted)
        held_out = expected["held_out_mean_over_all_halves"][row]
        value = scores["saliency-iou-best-held-out", -1]
        yield close("IoU of the best head on held-out images, over drawn halves", OWN, value, held_out, 0.05)
    whole = scores_of(found, -1, pooling)
    # the head is that which is named: the same score stands at its block
    block, head = (int(whole[f"saliency-iou-best-{word}", -1]) for word in ("block", "head"))
    values = [whole["saliency-iou-best", -1], scores_of(found, block, pooling)["saliency-iou", head]]
    yield _near("IoU of the best head of all blocks", OWN, values, [expected["best_over_all_layers"]] * 2)


def _rollout(found: Findings, expected: Mapping[str, Any], protocol: str) -> Iterator[Finding]:
    yield _near(
        "attention rollout", OWN, found.arrays["rollout_map"], expected["mean"]["map_mean_over_images"]
    )
    yield _near("IoU of rollout", OWN, found.arrays["rollout_iou"], expected["mean"][f"iou_{protocol}"])
    pooling = "cls" if any(one.pooling == "cls" for one in found.outcomes) else "patch"
    for variant in {*expected} & {*ROLLOUTS}:
        for row, value in enumerate(np.array(expected[variant][f"iou_{protocol}"]).mean(axis=0)):
            score = scores_of(found, row + 1, pooling)[ROLLOUTS[variant], -1]
            yield _near("IoU of rollout", OWN, score, value)


def _released_saliency(found: Findings, official: Mapping[str, Any]) -> Iterator[Finding]:
    for mode, (pooling, short) in enumerate((("cls", "cls"), ("patch", "spc"))):
        yield _near("saliency IoU", OFFICIAL, found.arrays["iou"][..., mode], official[short])
        for row, best in enumerate(official[f"best_head_{short}"]):
            # what the paper calls the best head is another one in every image
            oracle = scores_of(found, row + 1, pooling)["saliency-iou-oracle", -1]
            yield _near("IoU of the best head of each image", OFFICIAL, oracle, best)
    for row, value in enumerate(np.array(official["spc-merge"]).mean(axis=0)):
        merged = scores_of(found, row + 1, "patch")["saliency-iou-merged", -1]
        yield _near("IoU of all heads merged", OFFICIAL, merged, value)


def _near(what: str, against: str, found: ArrayLike, expected: Any) -> Finding:
    """Compare with a list, or with every n-th number of one."""
    values: NDArray[Any] = np.asarray(found)
    if isinstance(expected, Mapping):
        shape, values = list(values.shape), values.ravel()[:: expected["every"]]
        expected = expected["values"] if shape == expected["shape"] else []
    return close(what, against, values, expected, TOLERANCE)


AGREEMENT = Agreement(
    title="Analyses of attention",
    module="tasks/analyses/attention.py`, `attention_maps.py`, `saliency.py",
    file="attention_maps",
    recipes={
        "random_7x7": "heads with slopes, steps and anchors under noise; one, several and no objects",
        "registers_5x9": "four registers beside the class token; a grid that is not square",
        "no_class_token_6x6": "patch tokens alone",
        "zero_rows_4x4": "queries that look only at the class token, and a class token that looks at itself",
        "patterns_8x8": "heads that look everywhere, at themselves, to the right, around the edge, at a "
        "corner, to both sides, and half or all at the class token",
        MASKS: "masks of objects in images of several shapes, on grids of 7 and 14 cells a side",
    },
    compare=compare,
    notes=(
        "The released code takes one prefix token and square grids only; the other cases have no official "
        "numbers. Of its offsets only protocol `paper` has the division by the map's sum.",
        "What the paper calls the best head is the best one of each image; here that is "
        "`saliency-iou-oracle`, and `saliency-iou-best` is one head for all images.",
        "Planted heads, whose classes and distances are known, are made by `tests/tasks/planted.py`.",
    ),
)
