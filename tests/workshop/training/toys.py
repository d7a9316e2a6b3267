"""Toy images and toy networks: trainings that take a second."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Stage
from workshop.training.augment import TrainingView
from workshop.training.data import Pictures
from workshop.training.methods import Method, method
from workshop.training.objective import Objective
from workshop.training.train import HistoryRow

SIDE = 32
SHAPES = ("disc", "square", "cross", "ring", "stripes", "triangle")


class Notes:
    """A watcher that keeps everything, and stops a training after some steps if told so."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.steps: list[int] = []
        self.rows: list[HistoryRow] = []
        self._stop_after = stop_after

    def stepped(self, step: int) -> None:
        self.steps.append(step)
        if step == self._stop_after:
            raise KeyboardInterrupt

    def noted(self, row: HistoryRow) -> None:
        self.rows.append(row)


@cache
def shapes(count: int, seed: int = 0) -> Pictures:
    """Shapes of random size, place and colour on random ground, uint8 [count 3 40 40]."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(SHAPES)
    images = np.empty((count, 3, 40, 40), np.uint8)
    captions = []
    for number, label in enumerate(labels):
        ground, colour = rng.integers(0, 120, 3), rng.integers(130, 256, 3)
        if rng.uniform() < 0.5:
            ground, colour = colour, ground
        mask = _mask(SHAPES[label], rng.uniform(14, 26, 2), rng.uniform(8, 15))
        noise = rng.normal(0, 8, (3, 40, 40))
        pixels = np.where(mask, colour[:, None, None], ground[:, None, None]) + noise
        images[number] = pixels.clip(0, 255)
        word = ("red", "green", "blue")[int(colour.argmax())]
        captions.append(f"a {word} {SHAPES[label]}, {'dark' if colour.sum() < ground.sum() else 'bright'}")
    return Pictures(images, labels.astype(np.int64), tuple(captions))


def _mask(shape: str, centre: np.ndarray, radius: float) -> np.ndarray:
    y, x = np.mgrid[:40, :40] + 0.5
    x, y = (x - centre[0]) / radius, (y - centre[1]) / radius
    far, side = np.hypot(x, y), np.maximum(abs(x), abs(y))
    masks = {
        "disc": far < 1,
        "square": side < 0.85,
        "cross": (side < 1) & (np.minimum(abs(x), abs(y)) < 0.3),
        "ring": (far < 1) & (far > 0.65),
        "stripes": (side < 1) & (np.floor(4 * y) % 2 == 0),
        "triangle": (y < 0.8) & (abs(x) < (y + 1) / 1.8),
    }
    return masks[shape]


def toy_spec(name: str, depth: int = 3, width: int = 48) -> BackboneSpec:
    """A mini entry with few and narrow blocks, for images of 32 px."""
    spec = replace(find([f"mini-{name}"])[0], input_size=SIDE)
    if name == "resnet":
        return replace(spec, stages=(Stage(1, 32, 4), Stage(1, 64, 8)), stem_width=16)
    return replace(spec, stages=(Stage(depth, width, 8),), heads=3)


def toy_method(name: str, **changes: Any) -> Method:
    """A method with small views, small heads and gentle changes of colour."""
    chosen = method(name)
    views = {
        key: replace(value, side=SIDE // 2 if key == "small" else SIDE)
        for key in ("view", "first", "second", "small")
        if isinstance(value := getattr(chosen.recipe, key, None), TrainingView)
    }
    small = {
        "dino": {"hidden": 64, "bottleneck": 32, "outputs": 128, "small_views": 2},
        "moco": {"hidden": 64, "shared": 32},
        "clip": {"text_width": 48, "text_depth": 1, "shared": 48},
    }
    return chosen.tuned(**(views | small.get(name, {}) | changes))


def toy(name: str, data: Pictures, seed: int = 0, **changes: Any) -> Objective:
    """A toy objective with fresh weights."""
    return toy_method(name, **changes).objective(toy_spec(name), data, seed)
