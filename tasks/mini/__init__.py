"""The mini suite's data: a deterministic renderer of creatures and objects made of parts.

``write_mini_datasets`` writes the six evaluation datasets in the official layouts, ``sample_image`` renders
training images; ``counts`` says how much each dataset holds.
"""

from tasks.mini.sample import RenderedImage, sample_image
from tasks.mini.seeds import MINI_VERSION
from tasks.mini.templates import TEMPLATES, class_names, keypoint_names, part_types, supercategories
from tasks.mini.write import is_complete, write_mini_datasets

__all__ = [
    "MINI_VERSION",
    "TEMPLATES",
    "RenderedImage",
    "class_names",
    "is_complete",
    "keypoint_names",
    "part_types",
    "sample_image",
    "supercategories",
    "write_mini_datasets",
]
