"""Matching of keypoints as other papers do it, against their authors' functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from layerboard.tasks.datasets.spair_facts import GROUPS, geometry_aware
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.keypoints.config import KeypointConfig
from layerboard.tasks.keypoints.correspondence import AVERAGES, Axis, SoftArgmax, least_errors, pck_averages
from layerboard.tasks.keypoints.matching import Matcher
from layerboard.tasks.metrics.bilinear import aligned_places
from tests.reference import inputs_corr
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import ITSELF, OFFICIAL, OWN, Agreement, Finding, close, exact, gathered
from tests.tasks.keypoints.test_problem import pair

CASES = golden.cases("correspondence")
PIXELS = 0.02
INSID3 = ("insid3_plain", "insid3_position", "insid3_weak_similarity")
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
        "dift": _dift,
        "averaging": _averages,
        "pck_ceilings": _ceilings,
        "cell_share": _cells,
        "self_match": _self_matches,
    }
    return gathered(ways[name](CASES[name], build(name)))


def rule_of(name: str) -> KeypointConfig:
    """How a protocol matches."""
    return config_of(find_protocol(name), "spair")


def _matched(
    rule: KeypointConfig, points: Sequence[ArrayLike], sizes: Sequence[Sequence[int]], grids: Sequence[Tensor]
) -> dict[str, NDArray[Any]]:
    """Matches of one pair of images of those sizes, whose target has a box of 1 x 1 pixels."""
    values = {
        "source_size": tuple(sizes[0]),
        "target_size": tuple(sizes[1]),
        "target_box": (0.0, 0.0, 1.0, 1.0),
    }
    one = pair(1, 0, 1, "cat", [np.array(each, np.float64) for each in points], **values)
    found = Matcher([one], [0, 1], rule.view, rule).match(dict(enumerate(grids)))
    return {name: value.numpy() for name, value in found.items()}


def _insid3(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    params, expected = case["params"], case["expected"]
    grids = [data["source"], data["target"]]
    sizes = [params[f"{side}_size_hw"][::-1] for side in ("source", "target")]
    found = _matched(rule_of("insid3"), [params["source_keypoints"]] * 2, sizes, grids)["point"]
    yield close("predicted points, pixels", OFFICIAL, found, expected["official_predicted_xy"], PIXELS)


def _geoaware(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    params, expected = case["params"], case["expected"]
    rule, beta = rule_of("geoaware"), params["beta"]
    ways = {"official_soft": replace(rule, soft=SoftArgmax(beta))}
    for name, window in params["windows"].items():
        ways[f"official_{name}"] = replace(rule, soft=SoftArgmax(beta, window=window))
    ways["official_window5"] = rule
    if "kernel_sigma" in params:
        ways["official_kernel5"] = replace(rule, soft=SoftArgmax(beta, sigma=params["kernel_sigma"]))
    if "official_nearest" in expected:
        ways |= {"official_nearest": replace(rule, soft=None), "sd_dino_nearest": rule_of("sd-dino")}
    grids, points = [data["source"], data["target"]], params["keypoints_in_view"]
    for name, way in ways.items():
        found = _matched(way, [points] * 2, [[params["side"]] * 2] * 2, grids)["point"]
        what = f"predicted points, {name.removeprefix('official_')}"
        yield close(what, OFFICIAL, found, expected[name], 0 if name == "official_nearest" else PIXELS)


def _probe3d(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    params, expected = case["params"], case["expected"]
    side, count = params["side"], data["target"].shape[0]
    rule = rule_of("probe3d")
    rule = replace(rule, view=rule.view.scaled(224, 14 if count == 58 else 16))
    # what is behind the point is cut off
    points = [np.array(params[f"{key}_keypoints"])[expected["keypoint_index"], :2] + 0.4 for key in data]
    matches = _matched(rule, points, [[side] * 2] * 2, [data["source"], data["target"]])
    tokens = matches["point"] * count / side
    yield close("nearest tokens", OFFICIAL, tokens, expected["official_token_xy"], 1e-9)
    errors = matches["error_box"] / (side * params["threshold_scale"])
    yield close("errors", OFFICIAL, errors, expected["official_error"], 1e-6)
    share = 100 * (errors < params["threshold"]).mean()
    yield close("PCK", OFFICIAL, share, expected["official_recall_percent"], 1e-4)


def _dift(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    params, expected = case["params"], case["expected"]
    sizes = [params["source_size_wh"], params["target_size_wh"]]
    hits, categories, predicted = [], [], []
    for one in params["pairs"]:
        matches = _matched(
            rule_of("dift"), [one["src_kps"], one["trg_kps"]], sizes, [data["source"], data["target"]]
        )
        predicted.append(matches["point"].tolist())
        left, top, right, bottom = one["trg_bndbox"]
        hits.append(matches["error_box"] / max(right - left, bottom - top) <= params["alpha"])
        categories.append(one["category"])
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


CEILINGS: dict[str, tuple[str, dict[str, Any], int]] = {
    "standard_pixels": ("standard", {}, 14),
    "standard_tokens": ("standard", {"search": "tokens"}, 14),
    "insid3_hull": ("insid3", {}, 48),
    "insid3_tokens": ("insid3", {"soft": None}, 48),
    "probe3d": ("probe3d", {}, 50),
    "geoaware_hull": ("geoaware", {}, 60),
    "geoaware_tokens": ("geoaware", {"soft": None}, 60),
    "sd_dino": ("sd-dino", {}, 60),
}
"""Protocols, changes of their rules, and cells of a grid's side."""


def _ceilings(case: Mapping[str, Any], data: Mapping[str, Tensor]) -> Iterator[Finding]:
    del data
    pairs = [_Pair(facts) for facts in CASES["averaging"]["params"]["pairs"]]
    for name, expected in case["expected"]["own"].items():
        protocol, changed, cells = CEILINGS[name]
        rule = replace(rule_of(protocol), **changed)
        view = replace(rule.view, multiple=16) if protocol == "probe3d" else rule.view
        grid = torch.randn(cells, cells, 3, generator=torch.Generator().manual_seed(1))
        errors = []
        for one in pairs:
            size, box = tuple(one.facts["target_size_wh"]), tuple(map(float, one.facts["target_box"]))
            sides = {"source_size": size, "target_size": size, "target_box": box}
            shown = pair(1, 0, 0, "cat", [one.truth] * 2, **sides)
            matches = Matcher([shown], [0], view, rule).match({0: grid})
            below = (matches["least_box"] <= matches["error_box"] + 1e-9).all()
            yield exact("ceilings that no match exceeds", ITSELF, below, True)
            errors.append(matches["least_box"].numpy())
        largest = expected["largest_error_over_box"]
        yield close("largest error", OWN, max(map(np.max, errors)), largest, 1e-6)
        for place, alpha in enumerate(case["params"]["alphas"]):
            hits = [one <= alpha if rule.inclusive else one < alpha for one in errors]
            low, high = expected["points_range_under_ties"][place]
            count = int(sum(one.sum() for one in hits))
            yield exact("points that can be hit", OWN, low <= count <= high, True)
            if low == high:
                image = _averaged(hits, [""] * len(hits))["image"]
                yield close("ceiling, mean of images", OWN, image, expected["per_image"][place], 1e-6)


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
    every = torch.arange(800, dtype=torch.float64)
    points = torch.stack([every, torch.zeros_like(every)], 1)
    best = aligned_places(points, (50, 50), 800).columns.argmax(1)
    errors = best * 800 / 50 - every
    facts = [errors.min(), errors.max(), errors.abs().mean(), errors.mean()]
    yield close("errors by probe3d's rule", OWN, facts, expected["probe3d_in_view_patch16"], 1e-5)


AGREEMENT = Agreement(
    title="Keypoints by other papers' rules",
    module="tasks/keypoints/matching.py`, `correspondence.py`, `tasks/datasets/spair_facts.py",
    file="correspondence",
    recipes={
        "insid3_plain": "two grids of 48 x 48 that show one world; a Gaussian around the best token",
        "insid3_position": "the same with positions in the tokens",
        "insid3_weak_similarity": "noise: places are pulled to the centre",
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
