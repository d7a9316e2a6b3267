"""How the individuals of a class usually look and where they are usually met, as photographs have it.

Without such habits nothing but outlines would tell classes apart, which no photograph asks for, and which
methods that learn without labels could not find. No habit is kept always, and colours are shared between
classes, so that colours alone tell little.
"""

import colorsys
from dataclasses import dataclass

import numpy as np

from mini.render.colours import Colour, draw_colour

COAT = 0.7
"""Share of individuals in a usual main colour; likewise, drawn apart, with a usual texture."""

GROUND = 0.6
"""Share of pictures of one figure with a usual background colour."""


@dataclass(frozen=True, slots=True)
class Habit:
    """What is usual for a class.

    Attributes:
        coat: Hues of its main colour, 0 to 1.
        textures: Of its main and second parts.
        ground: Of the background, a name in ``GROUNDS``.
    """

    coat: tuple[float, ...]
    textures: tuple[str, ...]
    ground: str


GROUNDS: dict[str, tuple[float, tuple[float, float], tuple[float, float]]] = {
    "meadow": (0.29, (0.35, 0.7), (0.35, 0.75)),
    "savanna": (0.13, (0.35, 0.65), (0.55, 0.9)),
    "sky": (0.57, (0.15, 0.5), (0.75, 1.0)),
    "lake": (0.51, (0.35, 0.7), (0.45, 0.8)),
    "sea": (0.63, (0.5, 0.9), (0.3, 0.65)),
    "sand": (0.09, (0.25, 0.5), (0.6, 0.95)),
    "leaves": (0.37, (0.4, 0.8), (0.25, 0.6)),
    "street": (0.65, (0.02, 0.15), (0.35, 0.7)),
    "room": (0.03, (0.1, 0.4), (0.5, 0.9)),
}
"""Hue, range of saturation and range of value."""

HABITS: dict[str, Habit] = {
    "horse": Habit((0.05, 0.08), ("plain", "shaded"), "meadow"),
    "dog": Habit((0.09, 0.13), ("plain", "spotted"), "room"),
    "elephant": Habit((0.62, 0.7), ("plain", "mottled"), "savanna"),
    "giraffe": Habit((0.1, 0.14), ("checked", "spotted"), "savanna"),
    "songbird": Habit((0.0, 0.55), ("plain", "shaded"), "leaves"),
    "heron": Habit((0.58, 0.63), ("plain", "shaded"), "lake"),
    "fish": Habit((0.06, 0.16), ("striped", "zigzag"), "sea"),
    "shark": Habit((0.55, 0.6), ("plain", "shaded"), "sea"),
    "snake": Habit((0.22, 0.3), ("zigzag", "ringed"), "sand"),
    "lizard": Habit((0.33, 0.42), ("mottled", "spotted"), "sand"),
    "butterfly": Habit((0.75, 0.83), ("ringed", "spotted"), "leaves"),
    "beetle": Habit((0.97, 0.42), ("plain", "spotted"), "leaves"),
    "dragonfly": Habit((0.45, 0.52), ("striped", "shaded"), "lake"),
    "car": Habit((0.0, 0.62), ("plain", "shaded"), "street"),
    "truck": Habit((0.13, 0.34), ("plain", "striped"), "street"),
    "bicycle": Habit((0.88, 0.5), ("plain", "striped"), "street"),
    "boat": Habit((0.02, 0.95), ("striped", "plain"), "lake"),
    "plane": Habit((0.6, 0.17), ("plain", "striped"), "sky"),
    "chair": Habit((0.06, 0.92), ("checked", "plain"), "room"),
    "lamp": Habit((0.15, 0.47), ("plain", "shaded"), "room"),
    "mug": Habit((0.8, 0.87), ("ringed", "zigzag"), "room"),
    "house": Habit((0.03, 0.12), ("checked", "plain"), "meadow"),
    "windmill": Habit((0.67, 0.0), ("plain", "striped"), "sky"),
    "tree": Habit((0.27, 0.35), ("mottled", "spotted"), "sky"),
}
"""By class name."""


def draw_coat(rng: np.random.Generator, habit: Habit) -> Colour:
    """A main colour of an individual."""
    if rng.uniform() >= COAT:
        return draw_colour(rng)
    hue = habit.coat[rng.integers(len(habit.coat))] + rng.uniform(-0.03, 0.03)
    return colorsys.hsv_to_rgb(hue % 1, rng.uniform(0.4, 0.95), rng.uniform(0.4, 0.97))


def draw_kind(rng: np.random.Generator, habit: Habit) -> str | None:
    """The texture of an individual; None for any."""
    usual = habit.textures[rng.integers(len(habit.textures))]
    return usual if rng.uniform() < COAT else None


def draw_ground(rng: np.random.Generator, ground: str | None) -> Colour:
    """A colour of a background; any if it is not said where."""
    if ground is None or rng.uniform() >= GROUND:
        return draw_colour(rng)
    hue, saturation, value = GROUNDS[ground]
    return colorsys.hsv_to_rgb(
        (hue + rng.uniform(-0.03, 0.03)) % 1, rng.uniform(*saturation), rng.uniform(*value)
    )
