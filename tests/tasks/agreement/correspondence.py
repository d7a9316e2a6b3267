"""Keypoints and PCK against the published code."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.keypoints.correspondence import best_pixels, pck_averages
from layerboard.tasks.metrics.bilinear import (
    Box,
    image_places,
    official_pixels,
    point_places,
    sampled,
    searched_places,
)
from layerboard.zoo.view.views import Letterbox
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered

CASES = golden.cases("keypoints")
TIED = "pixel found for each keypoint, or one that ties within 1e-6"


def compare(name: str) -> list[Finding]:
    """Findings of one case; matching in float32 and float64."""
    case = CASES[name]
    if name == "spair_annotation":
        return gathered(annotation(case))
    both = [finding for dtype in (torch.float32, torch.float64) for finding in official_rule(case, dtype)]
    return gathered(iter([*both, *thresholds(case), *clean_rule(case)]))


def pairs(case: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """For each pair: grids in float64, and the points that both images show."""
    data, params = golden.build(case), case["params"]
    for number, (source, target) in enumerate(zip(data["source"], data["target"], strict=True)):
        points = [np.array(params[f"{side}_keypoints"][number]) for side in ("source", "target")]
        shown = (points[0][:, 2] > 0) & (points[1][:, 2] > 0)
        grids = [torch.from_numpy(grid).double() for grid in (source, target)]
        asked, truth = (torch.from_numpy(side[shown, :2]) for side in points)
        yield grids[0], grids[1], asked, truth


def sample_points(grid: Tensor, points: Tensor, stride: float) -> Tensor:
    """Bilinear values of a grid at exact positions: [... n dim]."""
    return sampled(grid, point_places(points, grid.shape[-3:-1], stride), [len(points)])


def match(vectors: Tensor, target: Tensor, side: int, content: Box | None = None) -> Tensor:
    """Centres of the best pixels by the task's rule, for vectors and tokens of any length: [... n 2]."""
    places = searched_places(side, target.shape[-3:-1], content or (0.0, 0.0, float(side), float(side)))
    unit = [functional.normalize(tokens, dim=-1) for tokens in (vectors, target)]
    return best_pixels(unit[:1], unit[1], places, scaled=True).double() + 0.5


def match_official(source: Tensor, target: Tensor, points: Tensor, side: int) -> Tensor:
    """Best pixels by the published rule: [... n 2]."""
    unit = [functional.normalize(grid, dim=-1) for grid in (source, target)]
    vectors = sample_points(unit[0], official_pixels(points).double() + 0.5, side / source.shape[-2])
    searched = image_places((side, side), target.shape[-3:-1])
    return best_pixels([vectors], unit[1], searched, scaled=False)


def official_rule(case: dict[str, Any], dtype: torch.dtype) -> Iterator[Finding]:
    """The published rule: pixels, and how many are right."""
    expected, side = case["expected"]["official"], case["params"]["image_size"]
    found = [match_official(a.to(dtype), b.to(dtype), points, side) for a, b, points, _ in pairs(case)]
    astray = _astray(found, expected["predicted_xy"], case["expected"]["own_float64_ties"])
    yield exact(f"published rule: {TIED}", OFFICIAL, astray, 0)
    correct = _accuracies(case, found, case["params"]["target_threshold_length"])
    right = [round(correct[str(alpha)] * expected["keypoints"]) for alpha in case["params"]["alpha"]]
    spans = [case["expected"]["own_correct_range_under_ties"][str(a)] for a in case["params"]["alpha"]]
    low, high = np.array(spans).T
    yield exact("keypoints right, within what the ties admit", OWN, right, np.clip(right, low, high))


def annotation(case: dict[str, Any]) -> Iterator[Finding]:
    """Annotated points and box lengths in the view, in pixels."""
    (fields,) = case["recipe"]["pairs"]
    rows = zip(*(case["expected"][key] for key in ("keypoints_xyv", "threshold_length")), strict=True)
    for side, (points, length) in zip(("src", "trg"), rows, strict=True):
        width, height = fields[f"{side}_imsize"][:2]
        geometry = Letterbox(case["params"]["image_size"]).geometry((width, height))
        shown = geometry.to_view(np.array(fields[f"{side}_kps"], np.float64))
        left, top, right, bottom = fields[f"{side}_bndbox"]
        longer = max(right - left, bottom - top) * geometry.scale[0]
        yield close("keypoints in the view, pixels", OFFICIAL, shown, np.array(points)[:, :2], 1e-4)
        yield close("longer side of the box in the view, pixels", OFFICIAL, longer, length, 1e-4)


def thresholds(case: dict[str, Any]) -> Iterator[Finding]:
    """PCK of the official predictions, two of which lie exactly on the threshold."""
    expected, side = case["expected"]["official"], case["params"]["image_size"]
    points = [torch.tensor(pair, dtype=torch.float64) for pair in expected["predicted_xy"]]
    box = case["params"]["target_threshold_length"]
    for kind, key, lengths in (("box", "pck_bbox", box), ("image", "pck_image", [side] * len(box))):
        found = _accuracies(case, points, lengths)
        values = [found[alpha] for alpha in expected[key]]
        what = f"PCK of the official predictions, threshold from the {kind}"
        yield close(what, OFFICIAL, values, list(expected[key].values()), 1e-12)


def clean_rule(case: dict[str, Any]) -> Iterator[Finding]:
    """The rule of the task, at whole pixels."""
    expected, params = case["expected"]["own_clean_pixel"], case["params"]
    found = []
    for source, target, points, _ in pairs(case):
        pixel = points.round().clamp(0, params["image_size"] - 1)
        vectors = sample_points(functional.normalize(source, dim=-1), pixel + 0.5, params["patch"])
        found.append(match(vectors, target, params["image_size"]) - 0.5)
    yield exact(f"our rule: {TIED}", OWN, _astray(found, expected["predicted_xy"], expected["ties"]), 0)
    correct = _accuracies(case, found, params["target_threshold_length"])
    values = [correct[alpha] for alpha in expected["pck_bbox"]]
    yield close("our rule: PCK", OWN, values, list(expected["pck_bbox"].values()), 1e-12)


def _accuracies(
    case: dict[str, Any], predicted: Sequence[Tensor], lengths: Sequence[float]
) -> dict[str, float]:
    """PCK at each alpha over all keypoints of the case."""
    hits: dict[float, list[bool]] = {alpha: [] for alpha in case["params"]["alpha"]}
    for points, (_, _, _, true), length in zip(predicted, pairs(case), lengths, strict=True):
        distance = (points - true).norm(dim=1).numpy()
        for alpha, found in hits.items():
            found.extend((distance / length < alpha).tolist())
    return {str(alpha): _share(np.array(found)) for alpha, found in hits.items()}


def _share(hits: NDArray[np.bool_]) -> float:
    return pck_averages(hits, np.zeros(len(hits), np.int64), [""])["keypoint"]


def _astray(
    predicted: Sequence[Tensor], expected: Sequence[list[list[float]]], ties: Sequence[dict[str, Any]]
) -> int:
    """How many pixels are neither the expected one nor in the box of pixels that tie within 1e-6."""
    found = [point for pair in predicted for point in pair.tolist()]
    wanted = [point for pair in expected for point in pair]
    astray = 0
    for (x, y), other, tie in zip(found, wanted, ties, strict=True):
        inside = tie["x"][0] <= x <= tie["x"][1] and tie["y"][0] <= y <= tie["y"][1]
        astray += [x, y] != other and not (tie["pixels_within_1e_6_of_best"] > 1 and inside)
    return astray


AGREEMENT = Agreement(
    title="Keypoint correspondence",
    module="tasks/keypoints/correspondence.py",
    file="keypoints",
    recipes={
        "grid14_dim48": "two pairs of drawn, smooth textures, the target moved by whole tokens, noise on "
        "every token; 22 keypoints shown by both images, two of them exactly on a threshold; both precisions",
        "spair_annotation": "the annotation of one real pair of SPair-71k (aeroplanes, 9 keypoints), in a "
        "view of 224 pixels",
    },
    compare=compare,
    notes=(
        "By choice, in the task: the source feature is taken at the exact keypoint, the upsampled target is "
        "scaled to length 1 again, padding is never searched, and the pixel's centre is the answer. The "
        "published code truncates x, rounds y and does not scale again, which the task does where a protocol "
        "asks for it. Our rule was compared with an own computation in float64, at whole pixels; between "
        "them it is tested against matching of upsampled features, written out.",
        "By choice: ties, which are exact where the border repeats the outermost tokens, go to the lowest "
        "row, then to the lowest column. A pixel that ties within 1e-6 with the expected one is equal.",
        "Not comparable: a keypoint whose y rounds beyond the last row stops the published code. Ours "
        "keeps it inside the view.",
    ),
)
