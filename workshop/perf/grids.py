"""Keypoint matching; a frame of mask propagation against its bare products; J and F of masks."""

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import cycle, permutations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.spair import KeypointPair, Keypoints
from layerboard.tasks.framework.measurers import Measurer
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.tasks.propagation.j_and_f import score_video
from layerboard.tasks.propagation.metric import Propagation
from layerboard.zoo.spec import Layer
from tests.tasks.propagation.official_davis import Mask, dilated_by_scipy, official_scores
from workshop.perf.measuring import Budget, Row, Setting, take_turns
from workshop.perf.networks import SIDE, nothings

POINTS = 12


def keypoint_rows(setting: Setting) -> Iterator[Row]:
    """Pairs of 12 points on grids of 14 x 14 x 384, 12 layers; each target is used in seven pairs."""
    images, layers, dim = (3, 2, 16) if setting.quick else (8, 12, 384)
    problem = KeypointTask(drawn_pairs(images), config_of(STANDARD, "spair"))
    (group,) = problem.source.groups
    view = config_of(STANDARD, "spair").view.scaled(SIDE, 16)
    grids = normal_tensor((layers, images, 14, 14, dim), setting)
    places = [Layer(index + 1) for index in range(layers)]

    def measure() -> None:
        measurer: Measurer[Tensor] = problem.measure(group, view)
        for layer, grid in zip(places, grids, strict=True):
            measurer.update(layer, range(images), grid)
        for layer in places:
            measurer.finish(layer)

    milliseconds = take_turns(setting, {"category": measure}).milliseconds("category")
    pairs = images * (images - 1)
    parts, over = (1, f"all {layers} layers together") if setting.card else (layers, f"a layer of {layers}")
    yield Row(
        f"SPair, a pair, {POINTS} points, 14 x 14 x {dim}, {over}",
        milliseconds / (pairs * parts),
        "ms",
        Budget(0.2 if setting.card else 0.8),
        {"category": milliseconds},
        f"{pairs} pairs of {images} images",
    )


def normal_tensor(shape: Sequence[int], setting: Setting, seed: int = 0) -> Tensor:
    """Standard normal numbers from a seed, on the device."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(setting.device)


def drawn_pairs(images: int) -> Keypoints:
    """Every two images as a pair, with seeded points."""
    size, box = (SIDE, SIDE), (0.0, 0.0, float(SIDE), float(SIDE))
    points = np.random.default_rng(0).uniform(0, SIDE, (images, POINTS, 2))
    pairs = tuple(
        KeypointPair(f"{a}-{b}", "a", a, b, size, size, box, points[a], points[b])
        for a, b in permutations(range(images), 2)
    )
    return Keypoints("pairs", nothings(images), pairs, Coverage(()))


BOUND = "on a CPU products in windows alone take 2.3 x as long as so many in one matrix"


def video_rows(setting: Setting) -> Iterator[Row]:
    """A frame and layer of DAVIS at 480 pixels, patch 16, with the full number of context frames."""
    rule = config_of(STANDARD, "davis")
    height, width, dim = (8, 10, 16) if setting.quick else (28, 49, 384)
    every = normal_tensor((3 * (rule.n_last_frames + 1), height, width, dim), setting)
    frames = every[: rule.n_last_frames + 1]
    propagator = Propagation({0: frames[0]}, object_labels(height, width, setting), {0: (0,)}, [rule])
    for frame in frames[1:]:
        propagator.step({0: frame})
    held = len(frames) * covered(height, rule.radius) * covered(width, rule.radius)
    # as many sources of each token as its window contains
    tokens = frames[-1].flatten(0, 1)
    sources = frames.flatten(0, 2)[: round(held / (height * width))].T.contiguous()
    coming = cycle(every[len(frames) :])  # the first frame, which is kept, would tie with itself
    candidates = {"products": lambda: tokens @ sources, "step": lambda: propagator.step({0: next(coming)})}
    what = f"DAVIS, a frame a layer, {height} x {width} x {dim}, over as many products as its windows hold"
    note = f"{held / 1e6:.1f} million products of {dim} channels; {BOUND}"
    yield take_turns(setting, candidates, 4).row(
        what, ("step", "products"), Budget(3 if setting.card else 2), note
    )


def object_labels(height: int, width: int, setting: Setting) -> Tensor:
    """Labels of the cells of a first frame with three objects, one-hot [height width 4]."""
    labels = torch.nn.functional.one_hot(torch.arange(height * width) % 4).float()
    return labels.view(height, width, -1).to(setting.device)


def covered(length: int, radius: int) -> int:
    """Number of cells that windows of a radius cover along a side, summed over its cells."""
    return sum(min(length, cell + radius + 1) - max(0, cell - radius) for cell in range(length))


def region_rows(setting: Setting) -> Iterator[Row]:
    """J and F of generated moving objects, in frames of DAVIS's size."""
    size, frames, objects = ((60, 80), 4, 2) if setting.quick else ((480, 854), 24, 2)
    truths, predictions = (ellipse_labels(size, frames, objects, shift) for shift in (0, size[0] // 60))
    with_opencv = find_spec("cv2") is not None
    dilated = dilated_by_opencv if with_opencv else dilated_by_scipy
    official = partial(official_scores, predictions, truths, objects, dilated)

    def ours() -> NDArray[np.float64]:
        scores = score_video(predictions, truths)
        return np.stack([scores.j, scores.f])

    note = "exactly equal" if (ours() == official()).all() else "NOT EQUAL"
    if not with_opencv:
        note += "; dilated by scipy, which is slower than the evaluator's OpenCV; not judged"
    what = f"J and F of {frames - 2} frames of {size[1]} x {size[0]}, official functions over ours"
    rounds = take_turns(setting, {"official": official, "ours": ours})
    budget = Budget(8, at_least=True) if with_opencv else None
    yield rounds.row(what, ("official", "ours"), budget, note)


def dilated_by_opencv(mask: Mask, disk: Mask) -> Mask:
    """A mask dilated by a disk, as the official evaluation does it."""
    import cv2

    wide: NDArray[np.uint8] = cv2.dilate(mask.astype(np.uint8), disk.astype(np.uint8))
    return wide.astype(bool)


def ellipse_labels(size: tuple[int, int], frames: int, objects: int, shift: int) -> list[NDArray[np.uint8]]:
    """Label maps of ellipses with wavy borders that move to the right."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    every = []
    for frame in range(frames):
        labels = np.zeros(size, np.uint8)
        for number in range(1, objects + 1):
            centre = size[0] * number / (objects + 1), size[1] * (0.2 + 0.4 * frame / frames) + shift
            down, across = rows - centre[0], columns - centre[1]
            reach = size[0] / 5 * (1 + 0.1 * np.sin(9 * np.arctan2(down, across) + number))
            labels[down**2 + (across / 1.5) ** 2 < reach**2] = number
        every.append(labels)
    return every
