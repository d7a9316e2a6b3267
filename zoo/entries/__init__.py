"""The families: their backbones, the architecture of their networks, and the authors' names of the parts.

Each file has explicit tuples of frozen data; the lists here are collected from them. Imports nothing heavy.
"""

from layerboard.zoo.entries import contrastive, distilled, masked, mini, supervised, teachers
from layerboard.zoo.entries.architecture import Architecture
from layerboard.zoo.spec import FAMILIES, BackboneSpec

_FILES = (supervised, contrastive, distilled, masked, teachers)

SPECS: tuple[BackboneSpec, ...] = (
    *sorted((spec for file in _FILES for spec in file.ENTRIES), key=lambda spec: FAMILIES.index(spec.family)),
    teachers.floor("random", 768, 16, 224),
    teachers.raw_pixels("raw-pixels", 16, 224),
    *mini.ENTRIES,
)
"""Every backbone in the order of the tables: family by family, as its file has them; then the mini suites."""

ARCHITECTURES: tuple[Architecture, ...] = tuple(each for file in _FILES for each in file.ARCHITECTURES)
"""Every supported architecture; of two with one model type the one for a single class comes first."""
