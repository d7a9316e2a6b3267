"""Propagation by the rules of DINOv3's tracking notebook, against its functions."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from layerboard.tasks.propagation.j_and_f import score_frame
from layerboard.tasks.propagation.metric import Neighbourhood, decode, decode_nearest, seed_labels
from layerboard.zoo.view.views import RaisedFrame
from tests.reference import inputs_corr
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered
from tests.tasks.standard import LayerPropagation

CASES = golden.cases("tracking")


def compare(name: str) -> list[Finding]:
    """Findings of one case."""
    ways = {
        "frame_sizes": _sizes,
        "decode_constant_channel": _decoded,
        "nearest_indices": _indices,
        "jf_ceilings": _ceilings,
    }
    return gathered(ways.get(name, _tracked)(CASES[name]))


def _run_lengths(ids: NDArray[Any]) -> list[int]:
    flat = ids.ravel()
    starts = [0, *(np.flatnonzero(np.diff(flat)) + 1).tolist()]
    stops = [*starts[1:], len(flat)]
    return [
        int(one) for start, stop in zip(starts, stops, strict=True) for one in (flat[start], stop - start)
    ]


def _tracked(case: Mapping[str, Any]) -> Iterator[Finding]:
    data, params, expected = inputs_corr.build(case), case["params"], case["expected"]
    features, mask = torch.from_numpy(data["features"]), data["first_mask"]
    height, width = features.shape[1:3]
    labels = seed_labels(mask, (height, width), keep_vanished=False)
    # the notebook has a channel for an object that no token shows, too
    labels = torch.nn.functional.pad(labels, (0, params["channels"] - labels.shape[-1]))
    yield exact("seed labels", OFFICIAL, _run_lengths(labels.argmax(-1).numpy()), expected["seed_labels"])
    options = {name: params[name] for name in ("n_last_frames", "topk", "radius", "temperature")}
    heard = Neighbourhood(**options, circle=params["shape"] == "circle")
    propagator = LayerPropagation(features[0], labels, heard)
    place = (np.arange(height)[:, None] * width + np.arange(width)) % 97 + 1
    for number in range(1, len(features)):
        soft = propagator.step(features[number])
        found = expected["frames"].get(str(number))
        if found is None:
            continue
        sums = soft.double().sum((0, 1)) / torch.tensor(found["channel_sum"]).clamp_min(1)
        official = np.asarray(found["channel_sum"]) / np.maximum(found["channel_sum"], 1)
        yield close("sum of a channel, relative", OFFICIAL, sums, official, 1e-4)
        checks = (soft.double() * torch.from_numpy(place)[:, :, None]).sum((0, 1))
        scale = np.maximum(found["channel_checksum"], 1)
        yield close(
            "weighted sum of a channel, relative",
            OFFICIAL,
            checks.numpy() / scale,
            np.asarray(found["channel_checksum"]) / scale,
            1e-4,
        )
        for probe, values in found["probes"].items():
            row, column = (int(one) for one in probe.split(","))
            yield close("labels of single tokens", OFFICIAL, soft[row, column], values, 2e-5)
        ids = decode_nearest(soft, (mask.shape[1], mask.shape[0]))
        counts = np.bincount(ids.ravel(), minlength=params["channels"])
        yield exact("pixels of each object", OFFICIAL, counts, found["pixels_per_id"])
        if found["ids_run_lengths"] is not None:
            yield exact("objects of all pixels", OFFICIAL, _run_lengths(ids), found["ids_run_lengths"])


def _sizes(case: Mapping[str, Any]) -> Iterator[Finding]:
    for name, sizes in case["expected"]["official_height_width"].items():
        width, height = (int(one) for one in name.split("x"))
        for patch, expected in sizes.items():
            view = RaisedFrame(case["params"]["short_side"], int(patch))
            found = view.geometry((width, height)).size
            yield exact("height and width of frames", OFFICIAL, [found[1], found[0]], expected)


def _decoded(case: Mapping[str, Any]) -> Iterator[Finding]:
    soft = torch.tensor(case["params"]["probabilities"]).permute(1, 2, 0)
    found = decode_nearest(soft, (soft.shape[1], soft.shape[0]))
    yield exact("objects where a channel is constant", OFFICIAL, found, case["expected"]["official_ids"])


def _indices(case: Mapping[str, Any]) -> Iterator[Finding]:
    for name, expected in case["expected"].items():
        pixels, cells = (int(one) for one in name.removesuffix(" nearest").split("->"))
        mask = np.zeros((1, pixels), np.uint8)
        if name.endswith("nearest"):
            ids = torch.nn.functional.one_hot(torch.arange(pixels)).float()
            found = decode_nearest(ids[None], (cells, 1))[0]
        else:
            found = np.zeros(cells, np.int64)
            for bit in range(10):  # masks hold no numbers of pixels above 255
                mask[0] = np.arange(pixels) >> bit & 1
                labels = seed_labels(np.concatenate([mask, 1 - mask]), (2, cells), keep_vanished=False)
                found += labels[0, :, 1:].sum(-1).numpy().astype(np.int64) << bit
        yield exact("which pixel or token is taken", OFFICIAL, found, expected)


def _ceilings(case: Mapping[str, Any]) -> Iterator[Finding]:
    for one in case["expected"]["own"]:
        truth = np.zeros((one["height"], one["width"]), np.uint8)
        top, left, bottom, right = one["box_top_left_bottom_right"]
        truth[top:bottom, left:right] = 1
        tokens = case["params"]["tokens"]
        for name, vanished in (("standard", True), ("paper", False), ("dinov3", False)):
            soft = seed_labels(truth, (tokens[0], tokens[1]), keep_vanished=vanished)
            size = one["width"], one["height"]
            found = decode_nearest(soft, size) if name == "dinov3" else decode(soft, size, one["patch"])
            expected = one[f"{name}_seed"]
            yield exact("pixels of the object", OWN, np.count_nonzero(found), expected["pixels"])
            j, f = score_frame(found, truth, 1)
            yield close("J and F of the true mask", OWN, [j[0], f[0]], [expected["J"], expected["F"]], 1e-8)


AGREEMENT = Agreement(
    title="Mask propagation by DINOv3's notebook",
    module="tasks/propagation/metric.py",
    file="tracking",
    recipes={
        "dinov3_circle12": "10 frames of 14 x 22 tokens; a circle of 12, T 0.2, 7 frames and the first",
        "circle3": "6 frames, a circle of 3 tokens",
        "square3": "the same, a square",
        "circle_half_context2": "a circle of half a token, 2 frames and the first",
        "circle12_T01": "temperature 0.1",
        "vanished": "an object that no token shows",
        "frame_sizes": "sizes of frames of 7 videos for patches of 8, 14 and 16 pixels",
        "decode_constant_channel": "a map of which one channel is constant",
        "jf_ceilings": "boxes, on the borders of tokens and beside them, seeded and decoded at once",
        "nearest_indices": "pixels that tokens take, and tokens that pixels take",
    },
    compare=compare,
    notes=(),
    sources=("facebookresearch/dinov3 at `6876159`",),
)
