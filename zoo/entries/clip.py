"""CLIP: the vision towers of OpenAI's contrastive image-text models."""

from zoo.entries.shapes import BASE, LARGE, ViTFamily
from zoo.normalisation import CLIP
from zoo.spec import BackboneSpec

_CLIP = ViTFamily(
    family="CLIP",
    supervision="400 M image-text pairs",
    normalisation=CLIP,
    licence="MIT",
    paper="Radford et al., Learning Transferable Visual Models From Natural Language Supervision, "
    "ICML 2021, arXiv:2103.00020",
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _CLIP.entry("clip-b32", "openai/clip-vit-base-patch32", BASE, 32),
    _CLIP.entry("clip-b16", "openai/clip-vit-base-patch16", BASE, 16),
    _CLIP.entry("clip-l14", "openai/clip-vit-large-patch14", LARGE, 14),
)
