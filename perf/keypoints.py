"""Keypoint correspondence, a pair and a layer, as a category of SPair-71k is measured."""

from collections.abc import Iterator

import numpy as np
import torch

from perf.networks import SIDE, nothings
from perf.rounds import Setting, take_turns
from perf.rows import Budget, Row
from tasks.base import Measurer
from tasks.datasets.base import Coverage
from tasks.datasets.spair import KeypointPair, Keypoints
from tasks.keypoints.task import KeypointTask
from tasks.protocols import STANDARD
from tasks.registry import config_of
from zoo.spec import Layer

POINTS = 12


def keypoint_rows(setting: Setting) -> Iterator[Row]:
    """Pairs of 12 points on grids of 14 x 14 x 384, 12 layers; a target serves seven pairs."""
    images, layers, dim = (3, 2, 16) if setting.quick else (8, 12, 384)
    problem = KeypointTask(drawn_pairs(images), config_of(STANDARD, "spair"))
    (group,) = problem.source.groups
    view = config_of(STANDARD, "spair").view.scaled(SIDE, 16)
    seeded = torch.Generator().manual_seed(0)
    grids = torch.randn(layers, images, 14, 14, dim, generator=seeded).to(setting.device)
    places = [Layer(index + 1) for index in range(layers)]

    def measure() -> None:
        measurer: Measurer[torch.Tensor] = problem.measure(group, view)
        for layer, grid in zip(places, grids, strict=True):
            measurer.update(layer, range(images), grid)
        for layer in places:
            measurer.finish(layer)

    rounds = take_turns({"category": measure}, setting.rounds, setting.device)
    pairs = images * (images - 1)
    each = rounds.milliseconds("category") / (pairs * layers)
    cuda = setting.device.type == "cuda"
    what = f"SPair, a pair, {POINTS} points, 14 x 14 x {dim}, "
    what += f"all {layers} layers together" if cuda else f"a layer of {layers}"
    note = f"{pairs} pairs of {images} images"
    value = each * layers if cuda else each
    yield Row(what, value, "ms", Budget(1.0), rounds.figures(), note)


def drawn_pairs(images: int) -> Keypoints:
    """Every two images as a pair, with seeded points."""
    random = np.random.default_rng(0)
    size, box = (SIDE, SIDE), (0.0, 0.0, float(SIDE), float(SIDE))
    points = random.uniform(0, SIDE, (images, POINTS, 2))
    pairs = tuple(
        KeypointPair(f"{one}-{other}", "a", one, other, size, size, box, box, points[one], points[other])
        for one in range(images)
        for other in range(images)
        if one != other
    )
    return Keypoints("pairs", nothings(images), pairs, Coverage(()))
