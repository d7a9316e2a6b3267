"""Individuals of a class: proportions, colours and textures, independent of the view.

Each class has habits: the usual appearance and background of its individuals, as in photographs. Without them
only outlines would distinguish the classes, unlike in photographs, and self-supervised methods could not find
them. Habits have exceptions, and colours are shared between classes, so colours alone say little about the
class.
"""

import colorsys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from workshop.render.seeds import Rng
from workshop.render.templates import TEMPLATES, Template
from workshop.render.textures import (
    Colour,
    Texture,
    draw_colour,
    draw_dark,
    draw_light,
    draw_texture,
    draw_unlike,
)

COAT = 0.7  # share of individuals with a usual main colour, and, independently, with a usual texture
GROUND = 0.6  # share of pictures of one figure with a usual background colour


class Habit(NamedTuple):
    """Usual appearance and background of a class."""

    coat: tuple[float, ...]  # hues of its main colour, 0 to 1
    textures: tuple[str, ...]  # of its main and second parts
    ground: str  # of the background, a name in ``GROUNDS``


# hue, range of saturation and range of value
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


def draw_coat(rng: Rng, habit: Habit) -> Colour:
    """A main colour of an individual of a class with that habit."""
    if rng.uniform() >= COAT:
        return draw_colour(rng)
    hue = habit.coat[rng.integers(len(habit.coat))] + rng.uniform(-0.03, 0.03)
    return colorsys.hsv_to_rgb(hue % 1, rng.uniform(0.4, 0.95), rng.uniform(0.4, 0.97))


def draw_kind(rng: Rng, habit: Habit) -> str | None:
    """The texture of an individual; None for any."""
    usual = habit.textures[rng.integers(len(habit.textures))]
    return usual if rng.uniform() < COAT else None


def draw_ground(rng: Rng, ground: str | None) -> Colour:
    """A background colour for a ground; any colour if None."""
    if ground is None or rng.uniform() >= GROUND:
        return draw_colour(rng)
    hue, saturation, value = GROUNDS[ground]
    hue = (hue + rng.uniform(-0.03, 0.03)) % 1
    return colorsys.hsv_to_rgb(hue, rng.uniform(*saturation), rng.uniform(*value))


# Part types that keep their aspect, so that circles stay circles.
_ROUND = frozenset({"wheel", "hub", "eye", "joint", "fruit", "handle", "stem"})
PLAIN = Texture("plain", 1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Material:
    """Two colours and the texture that mixes them; gloss is the strength of highlights, 0 to 1."""

    colour: Colour
    other: Colour
    texture: Texture = PLAIN
    gloss: float = 0.0


@dataclass(frozen=True, slots=True)
class Individual:
    """One individual of a class, whatever the view."""

    class_index: int
    # for each part type, factors along and across the bone
    stretch: Mapping[str, tuple[float, float]] = field(hash=False)
    materials: tuple[Material, ...]  # one for each MaterialSlot, in order

    @property
    def template(self) -> Template:
        """The parts of the individual's class."""
        return TEMPLATES[self.class_index]


def draw_materials(rng: Rng, habit: Habit) -> tuple[Material, ...]:
    """Random materials for all slots; main colours and textures keep to the habit more often than not."""
    main, kind = draw_coat(rng, habit), draw_kind(rng, habit)
    second = draw_unlike(rng, main, 0.25, draw_colour)
    accent = draw_unlike(rng, main, 0.35, draw_colour)
    gloss = float(rng.uniform(0, 0.5))
    patterned = draw_unlike(rng, main, 0.3, draw_colour if rng.uniform() < 0.7 else draw_dark)
    texture = draw_texture(rng, (14, 55), kind)
    other = draw_unlike(rng, second, 0.3, draw_colour)
    return (
        Material(main, patterned, texture, gloss),
        Material(second, other, draw_texture(rng, (14, 55), kind), gloss),
        Material(accent, accent, gloss=gloss),
        Material(draw_dark(rng), (0.1, 0.1, 0.1), gloss=gloss),
        Material(draw_light(rng), (0.9, 0.9, 0.9), gloss=gloss),
    )


def draw_individual(rng: Rng, class_index: int, materials: tuple[Material, ...] | None = None) -> Individual:
    """A random individual of a class, in given materials if any."""
    kinds = sorted({part.kind for part in TEMPLATES[class_index].parts})
    along, across = np.exp(rng.uniform(-0.24, 0.24, (2, len(kinds))))
    stretch = {
        kind: (float(a), float(a if kind in _ROUND else b))
        for kind, a, b in zip(kinds, along, across, strict=True)
    }
    if materials is None:
        materials = draw_materials(rng, HABITS[TEMPLATES[class_index].name])
    return Individual(class_index, stretch, materials)
