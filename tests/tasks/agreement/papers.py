"""Matching of keypoints as other papers do it, against their authors' functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.datasets.spair_facts import GROUPS, geometry_aware
from layerboard.tasks.keypoints.correspondence import (
    AVERAGES,
    Axis,
    SoftArgmax,
    best_pixels,
    least_errors,
    pck_averages,
)
from layerboard.tasks.metrics.bilinear import aligned_places, image_places, point_places, sampled
from layerboard.tasks.metrics.spread import debiased, position_basis
from layerboard.zoo.view.views import Letterbox
from tests.reference import inputs_corr
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered

CASES = golden.cases("correspondence")
PIXELS = 0.02
INSID3 = ("insid3_plain", "insid3_position", "insid3_debiased", "insid3_weak_similarity")
PROBE3D = ("probe3d_patch16", "probe3d_patch14")
GEOAWARE = ("geoaware_match", "geoaware_weak_similarity")


def build(name: str) -> dict[str, Tensor]:
    """Input arrays of a case, checked against their digests."""
    return {key: torch.from_numpy(array) for key, array in inputs_corr.build(CASES[name]).items()}


def compare(name: str) -> list[Finding]:
    """Findings of one case."""
    ways = {
        **dict.fromkeys(INSID3, _insid3),
        **dict.fromkeys(GEOAWARE, _geoaware),
        **dict.fromkeys(PROBE3D, _probe3d),
        "debias": _debias,
        "dift": _dift,
        "averaging": _averages,
        "pck_ceilings": _ceilings,
        "cell_share": _cells,
        "self_match": _self_matches,
    }
    return gathered(ways[name](CASES[name], build(name)))


def _insid3(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    params, expected = case["params"], case["expected"]
    source, target = (functional.normalize(data[key], dim=-1) for key in ("source", "target"))
    if params["debiased"]:
        basis = position_basis(data["blank"].flatten(0, 1), params["components"])
        source, target = debiased(source, basis), debiased(target, basis)
    count = source.shape[0]
    height, width = params["source_size_hw"]
    points = torch.tensor(params["source_keypoints"], dtype=torch.float64)
    places = (points * count / torch.tensor([width, height])).round().clamp(0, count - 1).long()
    yield exact("source tokens", OFFICIAL, places, expected["source_token_xy"])
    maps = torch.einsum("nc,hwc->nhw", source[places[:, 1], places[:, 0]], target)
    found = SoftArgmax(params["temperature"], sigma=params["sigma"]).found(maps)[0].double()
    height, width = params["target_size_hw"]
    found = found * torch.tensor([width, height]) / count
    yield close("predicted points, pixels", OFFICIAL, found, expected["official_predicted_xy"], PIXELS)


def _debias(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    for components in case["params"]["components"]:
        expected = case["expected"][str(components)]
        basis = position_basis(data["blank"].flatten(0, 1), components)
        projector = basis @ basis.T
        yield close("projector", OFFICIAL, projector, expected["official_projector"], 1e-6)
        tokens = functional.normalize(debiased(data["target"], basis), dim=-1)
        for place, values in expected["official_debiased_tokens"].items():
            row, column = (int(one) for one in place.split(","))
            yield close("tokens without position", OFFICIAL, tokens[row, column], values, 1e-6)


def _geoaware(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    params, expected = case["params"], case["expected"]
    source, target = (functional.normalize(data[key], dim=-1) for key in ("source", "target"))
    count, side = params["tokens"], params["side"]
    places = (torch.tensor(params["keypoints_in_view"], dtype=torch.float64) * count / side).floor().long()
    if "source_token_yx" in expected:
        yield exact("source tokens", OFFICIAL, places.flip(1), expected["source_token_yx"])
    maps = torch.einsum("nc,hwc->nhw", source[places[:, 1], places[:, 0]], target)
    ways = {"official_soft": SoftArgmax(params["beta"])}
    ways |= {
        f"official_{name}": SoftArgmax(params["beta"], window=window)
        for name, window in params["windows"].items()
    }
    if "kernel_sigma" in params:
        ways["official_kernel5"] = SoftArgmax(params["beta"], sigma=params["kernel_sigma"])
    for name, way in ways.items():
        points = way.found(maps)[0] * side / count + side / count / 2
        what = f"predicted points, {name.removeprefix('official_')}"
        yield close(what, OFFICIAL, points, expected[name], PIXELS)
    if "official_nearest" in expected:
        best = maps.flatten(1).argmax(1)
        points = torch.stack([best % count, best // count], 1) * side / count + side / count / 2
        yield close("nearest tokens", OFFICIAL, points, expected["official_nearest"], 0)


def _probe3d(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    params, expected = case["params"], case["expected"]
    source, target = (functional.normalize(data[key], dim=-1) for key in ("source", "target"))
    side, count = params["side"], target.shape[0]
    points = {
        key: torch.tensor(params[f"{key}_keypoints"], dtype=torch.float64) for key in ("source", "target")
    }
    both = (points["source"][:, 2] * points["target"][:, 2]).nonzero()[:, 0]
    yield exact("points of both images", OFFICIAL, both, expected["keypoint_index"])
    places = aligned_places(points["source"][both, :2], (count, count), side)
    best = (sampled(source, places, [len(both)]) @ target.flatten(0, 1).T).argmax(1)
    found = torch.stack([best % count, best // count], 1)
    yield exact("nearest tokens", OFFICIAL, found, expected["official_token_xy"])
    error = (found / count - points["target"][both, :2] / side).norm(dim=1) / params["threshold_scale"]
    yield close("errors", OFFICIAL, error, expected["official_error"], 1e-6)
    share = 100 * (error < params["threshold"]).double().mean()
    yield close("PCK", OFFICIAL, share, expected["official_recall_percent"], 1e-4)


def _dift(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    params, expected = case["params"], case["expected"]
    source, target = data["source"], data["target"]
    grid, size = (source.shape[0], source.shape[1]), params["target_size_wh"]
    search = image_places((size[0], size[1]), grid)
    hits, categories, predicted = [], [], []
    for pair in params["pairs"]:
        points = torch.tensor(pair["src_kps"], dtype=torch.float64) + 0.5
        scaled = points / torch.tensor(params["source_size_wh"]) * torch.tensor([grid[1], grid[0]])
        vectors = sampled(source, point_places(scaled, grid, 1.0), [len(points)])
        found = best_pixels([vectors], target, search, scaled=True)
        predicted.append(found.tolist())
        left, top, right, bottom = pair["trg_bndbox"]
        error = (found - torch.tensor(pair["trg_kps"])).double().norm(dim=1) / max(right - left, bottom - top)
        hits.append((error <= params["alpha"]).numpy())
        categories.append(pair["category"])
    yield exact("predicted points", OWN, [*chain(*predicted)], [*chain(*expected["own_predicted_xy"])])
    for name in ("All", *dict.fromkeys(categories)):
        own = [one for one, category in zip(hits, categories, strict=True) if name in ("All", category)]
        averages = _averaged(own, [name] * len(own))
        for how, value in (("image", averages["image"]), ("point", averages["keypoint"])):
            official = expected["official_percent_two_decimals"][f"{name} per {how} PCK@0.1"]
            yield close(f"PCK per {how}", OFFICIAL, 100 * value, official, 0.00501)


def _averaged(hits: Sequence[NDArray[np.bool_]], categories: Sequence[str]) -> dict[str, float]:
    """Averages of the hits of each pair."""
    pair = np.repeat(np.arange(len(hits)), [len(one) for one in hits])
    return pck_averages(np.concatenate(hits), pair, categories)


@dataclass(frozen=True)
class _Pair:
    """A pair of the case of averages."""

    facts: Mapping[str, Any]

    @property
    def shared(self) -> list[int]:
        """Ids that both images show, rising."""
        return sorted(
            int(one) for one in {*self.facts["source_keypoints"]} & {*self.facts["target_keypoints"]}
        )

    @property
    def truth(self) -> NDArray[np.float64]:
        return np.array([self.facts["target_keypoints"][str(one)] for one in self.shared], np.float64)

    @property
    def length(self) -> float:
        left, top, right, bottom = self.facts["target_box"]
        return float(max(right - left, bottom - top))

    @property
    def errors(self) -> NDArray[np.float64]:
        found = np.array([self.facts["predicted_xy"][str(one)] for one in self.shared], np.float64)
        return np.hypot(*(found - self.truth).T)

    @property
    def geometry_aware(self) -> list[int]:
        target = [int(one) for one in self.facts["target_keypoints"]]
        return geometry_aware(GROUPS[self.facts["category"]], self.shared, target)

    def hits(self, alpha: float, strict: bool) -> NDArray[np.bool_]:
        most = alpha * self.length
        return np.asarray(self.errors < most if strict else self.errors <= most)


def _averages(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    del data
    pairs = [_Pair(facts) for facts in case["params"]["pairs"]]
    categories = [pair.facts["category"] for pair in pairs]
    geo, dino, insid = (case["expected"][name] for name in ("geoaware", "sd_dino", "insid3"))
    ids = [pair.geometry_aware for pair in pairs]
    yield exact("geometry-aware points", OWN, [*chain(*ids)], [*chain(*geo["geo_ids"])])
    turned = [abs(one - other) for one, other in (pair.facts["azimuth_ids"] for pair in pairs)]
    yield exact(
        "difference of azimuths", OWN, [min(one, 8 - one) for one in turned], geo["azimuth_difference"]
    )
    for place, alpha in enumerate(geo["alphas"]):
        hits = [pair.hits(alpha, strict=True) for pair in pairs]
        found = _averaged(hits, categories)
        yield close("mean of images", OFFICIAL, found["image"], geo["official_per_image"][place], 1e-6)
        yield close("mean of points", OFFICIAL, found["keypoint"], geo["official_per_point"][place], 1e-6)
        some = [one[np.isin(pair.shared, own)] for one, pair, own in zip(hits, pairs, ids, strict=True)]
        aware = _averaged(some, categories)
        official = geo["official_geo_per_image"][place]
        yield close("geometry-aware, mean of images", OFFICIAL, aware["image"], official, 1e-6)
        yield close(
            "geometry-aware, mean of points", OWN, aware["keypoint"], geo["geo_per_point"][place], 1e-6
        )
        official = dino["mean_of_categories"][place]
        yield close("mean of categories", OFFICIAL, found["category"], official, 1e-6)
        official = dino["categories_weighted_by_pairs"][place]
        yield close("categories weighted by pairs", OFFICIAL, found["category by pairs"], official, 1e-6)
    for place, alpha in enumerate(insid["alphas"]):
        found = _averaged([pair.hits(alpha, strict=False) for pair in pairs], categories)
        official_names = ("image_all", "image_category", "point_all", "point_category")
        for name, average in zip(official_names, AVERAGES[:4], strict=True):
            official = insid[f"official_{name}"][place]
            yield close("four averages", OFFICIAL, found[average], official, 1e-6)
    for level, expected in case["expected"]["own_by_viewpoint_strict_0.1"].items():
        own = [pair for pair in pairs if pair.facts["viewpoint_variation"] == int(level)]
        found = _averaged([pair.hits(0.1, strict=True) for pair in own], [""] * len(own))
        values = [expected["per_point"], expected["per_image"]]
        yield close("by viewpoint", OWN, [found["keypoint"], found["image"]], values, 1e-9)


def _ceilings(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    del data
    pairs = [_Pair(facts) for facts in CASES["averaging"]["params"]["pairs"]]
    for name, expected in case["expected"]["own"].items():
        errors = [_least(name, pair) / pair.length for pair in pairs]
        for place, alpha in enumerate(case["params"]["alphas"]):
            hits = [one <= alpha if name.startswith("insid3") else one < alpha for one in errors]
            low, high = expected["points_range_under_ties"][place]
            count = int(sum(one.sum() for one in hits))
            yield exact("points that can be hit", OWN, low <= count <= high, True)
            if low == high:
                image = _averaged(hits, [""] * len(hits))["image"]
                yield close("ceiling, mean of images", OWN, image, expected["per_image"][place], 1e-6)


def _least(name: str, pair: _Pair) -> NDArray[np.float64]:
    """Smallest errors of a protocol in pixels of the image."""
    width, height = pair.facts["target_size_wh"]
    long = max(width, height)
    if name.startswith("standard"):
        seen = Letterbox(224).geometry((width, height))
        step = 16.0 if name.endswith("tokens") else 1.0
        axes = []
        for axis in (0, 1):
            low, high = (seen.content[axis], seen.content[axis + 2]) if step == 1.0 else (0, 224)
            first = (low + step / 2 - seen.offset[axis]) / seen.scale[axis]
            axes.append(Axis(first, step / seen.scale[axis], int((high - low) / step)))
        return least_errors(pair.truth, axes[0], axes[1])
    if name.startswith("insid3"):
        columns, rows = (Axis(0.0, side / 48, 48, name.endswith("hull")) for side in (width, height))
        return least_errors(pair.truth, columns, rows)
    if name == "probe3d":
        truth = np.trunc(pair.truth * 800 / long) * long / 800
        return least_errors(truth, *[Axis(0.0, long / 50, 50)] * 2)
    scale = 840 / long
    resized = [round(side * scale) for side in (width, height)]
    centre = 6.5 if name == "sd_dino" else 7.0
    axes = [
        Axis((centre - (840 - side) // 2) / scale, 14 / scale, 60, name.endswith("hull")) for side in resized
    ]
    return least_errors(pair.truth, axes[0], axes[1])


def _cells(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    del data
    every = (np.arange(1000) + 0.5) / 1000
    points = np.stack(np.meshgrid(every, every), axis=-1).reshape(-1, 2)
    found = []
    for cell, radius in case["params"]["cell_and_radius"]:
        centre = Axis(cell / 2, 0.0, 1)
        found.append((least_errors(points * cell, centre, centre) <= radius).mean())
    yield close("share of a cell within a radius", OWN, found, case["expected"]["own_share"], 1e-4)


def _self_matches(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    """An image matched with itself by orthonormal tokens: where the token of a point is said to be."""
    del data
    expected = case["expected"]["own_error_min_max_mean_absolute"]
    width, count = case["params"]["insid3_width"], case["params"]["tokens"]
    every = torch.arange(width, dtype=torch.float64)
    errors = (every * count / width).round().clamp(0, count - 1) * width / count - every
    facts = [errors.min(), errors.max(), errors.abs().mean()]
    yield close("errors by INSID3's rule", OWN, facts, expected["insid3_nearest"], 1e-5)
    every = torch.arange(840, dtype=torch.float64)
    errors = (every * 60 / 840).floor() * 14 + 7 - every
    facts = [errors.min(), errors.max(), errors.abs().mean()]
    yield close("errors by GeoAware's rule", OWN, facts, expected["geoaware_nearest_in_view"], 1e-5)
    every = torch.arange(800, dtype=torch.float64)
    points = torch.stack([every, torch.zeros_like(every)], 1)
    best = aligned_places(points, (50, 50), 800).columns.argmax(1)
    errors = best * 800 / 50 - every
    facts = [errors.min(), errors.max(), errors.abs().mean(), errors.mean()]
    yield close("errors by probe3d's rule", OWN, facts, expected["probe3d_in_view_patch16"], 1e-5)


AGREEMENT = Agreement(
    title="Keypoints by other papers' rules",
    module="tasks/keypoints/correspondence.py`, `spread.py`, `bilinear.py`, `tasks/datasets/spair_facts.py",
    file="correspondence",
    recipes={
        "insid3_plain": "two grids of 48 x 48 that show one world; a Gaussian around the best token",
        "insid3_position": "the same with positions in the tokens",
        "insid3_debiased": "the same, positions removed",
        "insid3_weak_similarity": "noise: places are pulled to the centre",
        "debias": "0, 1, 3 and 5 directions of the position removed",
        "geoaware_match": "two grids of 60 x 60; windows of 5 and 7 tokens, a Gaussian, no window, nearest",
        "geoaware_weak_similarity": "noise",
        "probe3d_patch16": "two grids of 50 x 50; tokens sampled from corner to corner",
        "probe3d_patch14": "two grids of 58 x 58",
        "dift": "two grids of 12 x 12 upsampled to images of 60 x 44 and 52 x 66; 5 pairs",
        "averaging": "7 pairs of buses and cats with predicted points, some at a threshold exactly",
        "pck_ceilings": "the same pairs: the best that positions of 8 protocols allow",
        "cell_share": "6 cells and radii; a million points spread evenly over each cell",
        "self_match": "an image matched with itself by orthonormal tokens",
    },
    compare=compare,
    notes=(),
    sources=(
        "visinf/INSID3 at `f1c9622`",
        "GeoAware-SC at `99fd6b6`",
        "probe3d at `a1f1464`",
        "sd-dino at `b85df18`",
        "dift at `9421eb2`",
    ),
)
