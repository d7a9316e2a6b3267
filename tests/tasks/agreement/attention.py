"""The analyses of attention against the code that Teaching Matters released, and against float64."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from layerboard.tasks.analyses.attention import AttentionDistance, AttentionShares
from layerboard.tasks.analyses.attention_maps import AttentionMapsTask
from layerboard.tasks.analyses.saliency import centre_square, touched
from layerboard.tasks.framework.base import Findings
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.framework.task import AnalysisTask
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered
from tests.tasks.analyses import test_saliency as saliency
from tests.tasks.analyses.passes import found_in, probe, scores_of
from tests.tasks.analyses.test_attention_maps import reference
from tests.tasks.planted import CASES, built, own

TOLERANCE = 2e-6
"""Attention is stored, and the released code computes, in single precision."""

MASKS = "annotation_grids"

SHARES = ("entropy", "attention-to-cls", "attention-to-self")


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
        return found_in(task, folder / called, layers, cells)

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
            for mode, short in enumerate(("cls", "spc")):
                yield _near(
                    "saliency IoU", OFFICIAL, marked.arrays["iou"][..., mode], official["saliency"][short]
                )


def _distance(name: str, found: Findings, official: Mapping[str, Any]) -> Iterator[Finding]:
    distance = found.arrays["distance"]
    if official:
        yield _near("attention distance", OFFICIAL, distance, official["avg-att-dist"])
    yield _near("attention distance", OWN, distance, own(name, "A3")["distance"])


def _maps(name: str, found: Findings) -> Iterator[Finding]:
    maps, offsets = own(name, "A1"), own(name, "A2")
    for array in {"cls_map", "patch_map"} & {*maps}:
        yield _near("average maps", OWN, found.arrays[array], maps[array])
    yield _near("aligned aggregated maps", OWN, found.arrays["aaam"], offsets["aaam"])
    yield exact("classes of heads", OWN, found.arrays["class"], offsets["class"])
    yield exact("peaks of aligned maps", OWN, found.arrays["peak"], offsets["peak_dy_dx"])


def _shares(name: str, found: Findings) -> Iterator[Finding]:
    expected = own(name, "A6")
    for pooling in {each.pooling for each in found.outcomes}:
        for metric in SHARES:
            table = np.asarray(expected.get(f"{metric.replace('-', '_')}_{pooling}", np.zeros((0, 0, 0))))
            for index in range(table.shape[1]):
                scores = scores_of(found, index + 1, pooling)
                heads = [scores[metric, head] for head in range(table.shape[2])]
                yield _near(
                    "entropy and attention to class token and self", OWN, heads, table[:, index].mean(0)
                )


def _offsets(found: Findings, official: list[list[float]]) -> Iterator[Finding]:
    for index, expected in enumerate(official):
        scores = scores_of(found, index + 1, "patch")
        heads = [scores["offset-unit", head] for head in range(len(expected))]
        yield close("offset of aligned maps", OFFICIAL, heads, expected, 5e-6)


def _saliency(name: str, protocol: str, found: Findings) -> Iterator[Finding]:
    expected = own(name, "A4")[protocol]
    for mode, pooling in enumerate(("cls", "patch")):
        if pooling in expected:
            yield _near("saliency IoU", OWN, found.arrays["iou"][..., mode], expected[pooling]["iou"])
    if "A7" in CASES[name]["expected"]["own"]:
        rollout = own(name, "A7")["mean"]
        yield _near("attention rollout", OWN, found.arrays["rollout_map"], rollout["map_mean_over_images"])
        yield _near("IoU of rollout", OWN, found.arrays["rollout_iou"], rollout[f"iou_{protocol}"])


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
        "Planted heads, whose classes and distances are known, are tests of `tests/tasks/analyses`.",
    ),
)
