"""The 24 classes, in order of class index."""

from tasks.mini.parts import Template
from tasks.mini.templates.animals import FISH, REPTILES
from tasks.mini.templates.birds import BIRDS
from tasks.mini.templates.buildings import BUILDINGS
from tasks.mini.templates.craft import CRAFT
from tasks.mini.templates.household import HOUSEHOLD
from tasks.mini.templates.insects import INSECTS
from tasks.mini.templates.quadrupeds import QUADRUPEDS
from tasks.mini.templates.road import ROAD

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
