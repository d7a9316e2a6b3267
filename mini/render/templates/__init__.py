"""The 24 classes, in order of class index."""

from mini.render.parts import Template
from mini.render.templates.animals import FISH, REPTILES
from mini.render.templates.birds import BIRDS
from mini.render.templates.buildings import BUILDINGS
from mini.render.templates.craft import CRAFT
from mini.render.templates.household import HOUSEHOLD
from mini.render.templates.insects import INSECTS
from mini.render.templates.quadrupeds import QUADRUPEDS
from mini.render.templates.road import ROAD

TEMPLATES: tuple[Template, ...] = (
    *QUADRUPEDS,
    *BIRDS,
    *FISH,
    *REPTILES,
    *INSECTS,
    *ROAD,
    *CRAFT,
    *HOUSEHOLD,
    *BUILDINGS,
)
"""Sorted by wnid, so that a class index is the rank of the folder name."""

class_names = tuple(template.name for template in TEMPLATES)
supercategories = tuple(dict.fromkeys(template.supercategory for template in TEMPLATES))
part_types = tuple(sorted({part.kind for template in TEMPLATES for part in template.parts}))
keypoint_names = tuple(template.landmarks for template in TEMPLATES)
"""For each class, the names of its landmarks."""


def class_index(name: str) -> int:
    """Index of a class name."""
    return class_names.index(name)
