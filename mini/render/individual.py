"""What makes one individual of a class: proportions, colours and textures, whatever the view."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mini.render.colours import Colour, draw_colour, draw_dark, draw_light, draw_unlike
from mini.render.habits import HABITS, Habit, draw_coat, draw_kind
from mini.render.templates import TEMPLATES, Part, Slot, Template
from mini.render.textures import Texture, draw_texture

_ROUND = frozenset({"wheel", "hub", "eye", "joint", "fruit", "handle", "stem"})
"""Part types that keep their aspect, so that circles stay circles."""

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
    """One individual of a class, whatever the view.

    Attributes:
        class_index: Its class.
        stretch: For each part type, factors along and across the bone.
        materials: One for each Slot, in order.
    """

    class_index: int
    stretch: Mapping[str, tuple[float, float]] = field(hash=False)
    materials: tuple[Material, ...]

    @property
    def template(self) -> Template:
        """The parts of the individual's class."""
        return TEMPLATES[self.class_index]

    def factors(self, part: Part) -> tuple[float, float]:
        """How much the part is stretched along and across."""
        return self.stretch[part.kind]


def draw_materials(rng: np.random.Generator, habit: Habit) -> tuple[Material, ...]:
    """Random materials for all slots; main colours and textures keep to the habit more often than not."""
    main, kind = draw_coat(rng, habit), draw_kind(rng, habit)
    second = draw_unlike(rng, main, 0.25, draw_colour)
    accent = draw_unlike(rng, main, 0.35, draw_colour)
    gloss = float(rng.uniform(0, 0.5))
    patterned = draw_unlike(rng, main, 0.3, draw_colour if rng.uniform() < 0.7 else draw_dark)
    return (
        Material(main, patterned, draw_texture(rng, (14, 55), kind), gloss),
        Material(
            second, draw_unlike(rng, second, 0.3, draw_colour), draw_texture(rng, (14, 55), kind), gloss
        ),
        Material(accent, accent, gloss=gloss),
        Material(draw_dark(rng), (0.1, 0.1, 0.1), gloss=gloss),
        Material(draw_light(rng), (0.9, 0.9, 0.9), gloss=gloss),
    )


def draw_individual(
    rng: np.random.Generator, class_index: int, materials: tuple[Material, ...] | None = None
) -> Individual:
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


def material_of(individual: Individual, part: Part) -> Material:
    """What covers a part."""
    return individual.materials[Slot(part.slot)]
