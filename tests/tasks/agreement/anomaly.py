"""Anomaly detection against AnomalyDINO."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from layerboard.tasks.anomaly import metric as anomaly
from layerboard.tasks.anomaly.references import Draws
from layerboard.tasks.metrics.arrays import Floats, Mask
from layerboard.tasks.statistics import linearised
from tests.reference import inputs_anomaly
from tests.reference.recipes import digest
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered

CASES = golden.cases("anomaly")
LIMITS = (0.3, 0.05)
Data = Mapping[str, NDArray[Any]]


def build(name: str) -> Data:
    return golden.build(CASES[name], inputs_anomaly)


def compare(name: str) -> list[Finding]:
    """Findings of one case."""
    case, data = CASES[name], build(name)
    if case["builder"] == "maps":
        masks = data["test_masks"] > 0
        return gathered(_pixels(list(data["maps"]), masks, case["expected"], case["params"]["pro_limits"]))
    runs = zip(case["params"]["runs"], case["expected"].values(), strict=True)
    return gathered(
        finding for run, expected in runs for finding in _run(case["recipe"], data, run, expected)
    )


def patch_distances(patches: torch.Tensor, memory: torch.Tensor, k: int = 1) -> torch.Tensor:
    """Distances of the patches of one layer."""
    return anomaly.patch_distances_of_layers({0: patches}, {0: memory}, {0: (0,)}, k)[0]


def _run(
    recipe: Mapping[str, Any], data: Data, run: Mapping[str, int], expected: Mapping[str, Any]
) -> Iterator[Finding]:
    """Findings of one choice of reference images."""
    official = expected["official"]
    names = sorted(recipe["ref_names"])
    shots = len(names) if run["shots"] < 0 else run["shots"]
    drawn = Draws((shots,), run["seed"] + 1).of(len(names))[f"{shots}-shot {run['seed']}"]
    chosen = [names[row] for row in drawn]
    yield exact("reference images", OFFICIAL, chosen, official["reference_images"])
    memory = np.concatenate([data["ref_features"][recipe["ref_names"].index(name)] for name in chosen])
    features = data["test_features"]
    rows = torch.from_numpy(features.reshape(-1, features.shape[-1]))
    every = patch_distances(rows, torch.from_numpy(memory), run["k"]).view(features.shape[:2])
    distances = every * torch.from_numpy(data.get("test_keep", np.ones(features.shape[:2])))
    yield from _distances(distances, official)
    scores = anomaly.image_scores(distances).numpy()
    yield close("scores of images", OFFICIAL, scores, official["image_scores"], 1e-5)
    masks = data["test_masks"] > 0
    maps = [anomaly.anomaly_map(each.view(*recipe["grid"]).numpy(), masks.shape[:0:-1]) for each in distances]
    (points, values) = zip(*official["map_values_image_row_col"], strict=True)
    found = [maps[image][row, column] for image, row, column in points]
    yield close("values of maps", OFFICIAL, found, values, 1e-5)
    yield from _images(scores, masks.any((1, 2)), expected)
    yield from _pixels(maps, masks, expected, LIMITS)
    yield from _kinds(recipe, scores, maps, masks, official)


def _distances(distances: torch.Tensor, official: Mapping[str, Any]) -> Iterator[Finding]:
    facts = official["patch_distances"]
    levels = np.rint(facts["scale"] * distances.numpy().astype(np.float64)).astype(np.uint8)
    sha256 = digest(levels.reshape(len(levels), -1))["sha256"]
    first, sums = distances[0, :4], distances.double().sum(1)
    yield close("distances of patches", OFFICIAL, first, facts["image0_cells0to3"], 1e-5)
    yield close("sum of an image's distances", OFFICIAL, sums, facts["sum_per_image"], 1e-4)
    yield exact("distances in whole steps", OFFICIAL, sha256, facts["sha256_of_uint8_rint_scale_x"])


def _images(scores: Floats, defect: Mask, expected: Mapping[str, Any]) -> Iterator[Finding]:
    found = {
        "image_auroc": linearised.placements(scores, defect).auroc,
        "image_ap": linearised.average_precision_values(defect, scores).mean(),
        "image_f1max": linearised.f1_max_values(defect, scores).mean(),
    }
    for metric, value in found.items():
        yield from _both(f"{metric.replace('_', ' ')}", metric, value, expected, 1e-5)


def _pixels(
    maps: list[Floats], masks: Mask, expected: Mapping[str, Any], limits: tuple[float, ...]
) -> Iterator[Finding]:
    pixels = anomaly.pooled_pixels(zip(maps, masks, strict=True))
    yield from _both("pixel auroc", "pixel_auroc", pixels.auroc, expected, 1e-5)
    yield from _both("pixel f1max", "pixel_f1max", pixels.f1_max, expected, 1e-5)
    for limit in limits:
        yield from _both("AU-PRO", f"au_pro_{limit:g}", pixels.au_pro(limit), expected, 1e-4)


def _both(
    what: str, metric: str, value: float, expected: Mapping[str, Any], tolerance: float
) -> Iterator[Finding]:
    """A metric against official code, and against float64, which alone says where it is not defined."""
    own = expected["own_float64"][metric]
    yield close(what, OWN, value, np.nan if own is None else own, tolerance)
    if own is not None:
        yield close(what, OFFICIAL, value, expected["official"][metric], tolerance)


def _kinds(
    recipe: Mapping[str, Any], scores: Floats, maps: list[Floats], masks: Mask, official: Mapping[str, Any]
) -> Iterator[Finding]:
    """Metrics of the images of one kind of defect with the good ones."""
    kinds = np.array([kind for kind, _ in inputs_anomaly.test_names(recipe)])
    for kind, values in official.get("per_kind_with_good", {}).items():
        rows = np.flatnonzero((kinds == kind) | (kinds == "good"))
        if values is None:  # a kind without an image
            continue
        expected = {"official": values, "own_float64": values}
        yield from _images(scores[rows], masks[rows].any((1, 2)), expected)
        yield from _pixels([maps[row] for row in rows], masks[rows], expected, LIMITS)


AGREEMENT = Agreement(
    title="Anomaly detection",
    module="tasks/anomaly/metric.py",
    file="anomaly",
    recipes={
        "two_kinds_shots_and_seeds": "two kinds of defects, eleven reference images whose names sort as "
        "0, 1, 10, 2; one, four and all of them, with 1 and 3 neighbours",
        "large_grid_many_regions_empty_kind": "480 patches, image sides that are no multiple of the grid, "
        "regions that touch at a corner, a kind without an image",
        "ties_and_duplicates": "equal cosines, duplicate reference patches, a patch of zeros, an image of a "
        "defect with an empty mask",
        "small_grid_separable": "42 patches: an image is scored by its farthest one",
        "no_signal": "defects that no feature shows",
        "foreground_only": "patches off the object at distance 0",
        "only_good_images": "no defect: nothing is defined",
        "metric_tied_maps": "maps of eleven different values",
        "metric_constant_map": "maps of one value: the curve is the diagonal",
    },
    compare=compare,
    notes=(
        "By choice: where a metric is not defined it has no value; official code gives 0, or half the limit.",
    ),
    sources=("dammsi/AnomalyDINO b3435f0",),
)
