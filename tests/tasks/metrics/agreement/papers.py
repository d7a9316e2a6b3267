"""Matching of keypoints as other papers do it, against their authors' functions."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tasks.metrics.debias import debiased, position_basis
from tasks.metrics.soft_argmax import SoftArgmax
from tests.reference import inputs_corr
from tests.tasks.metrics import golden
from tests.tasks.metrics.agreement.base import OFFICIAL, Agreement, Finding, close, exact, gathered

CASES = golden.cases("correspondence")
PIXELS = 0.02
INSID3 = ("insid3_plain", "insid3_position", "insid3_debiased", "insid3_weak_similarity")
GEOAWARE = ("geoaware_match", "geoaware_weak_similarity")


def build(name: str) -> dict[str, Tensor]:
    """Input arrays of a case, checked against their digests."""
    return {key: torch.from_numpy(array) for key, array in inputs_corr.build(CASES[name]).items()}


def compare(name: str) -> list[Finding]:
    """Findings of one case."""
    ways = {**dict.fromkeys(INSID3, _insid3), **dict.fromkeys(GEOAWARE, _geoaware), "debias": _debias}
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
    found = SoftArgmax(params["temperature"], sigma=params["sigma"]).places(maps).double()
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
        points = way.places(maps) * side / count + side / count / 2
        what = f"predicted points, {name.removeprefix('official_')}"
        yield close(what, OFFICIAL, points, expected[name], PIXELS)
    if "official_nearest" in expected:
        best = maps.flatten(1).argmax(1)
        points = torch.stack([best % count, best // count], 1) * side / count + side / count / 2
        yield close("nearest tokens", OFFICIAL, points, expected["official_nearest"], 0)


AGREEMENT = Agreement(
    title="Keypoints by other papers' rules",
    module="tasks/metrics/soft_argmax.py` and `tasks/metrics/debias.py",
    file="correspondence",
    recipes={
        "insid3_plain": "two grids of 48 x 48 that show one world; a Gaussian around the best token",
        "insid3_position": "the same with positions in the tokens",
        "insid3_debiased": "the same, positions removed",
        "insid3_weak_similarity": "noise: places are pulled to the centre",
        "debias": "0, 1, 3 and 5 directions of the position removed",
        "geoaware_match": "two grids of 60 x 60; windows of 5 and 7 tokens, a Gaussian, no window, nearest",
        "geoaware_weak_similarity": "noise",
    },
    compare=compare,
    notes=(),
    sources=(
        "visinf/INSID3 at `f1c9622`",
        "GeoAware-SC at `99fd6b6`",
    ),
)
