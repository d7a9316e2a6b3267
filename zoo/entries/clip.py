"""CLIP: the vision towers of OpenAI's contrastive image-text models."""

from zoo.entries.shapes import BASE, LARGE, Shape
from zoo.normalisation import CLIP
from zoo.spec import BackboneSpec


def _spec(name: str, repository: str, shape: Shape, patch: int) -> BackboneSpec:
    return BackboneSpec(
        name=name,
        family="CLIP",
        supervision="400 M image-text pairs",
        repository=repository,
        stages=shape.stages(patch),
        heads=shape.heads,
        prefix_tokens=1,
        has_cls=True,
        has_final=True,
        mean=CLIP.mean,
        std=CLIP.std,
        licence="MIT",
        paper="Radford et al., Learning Transferable Visual Models From Natural Language Supervision, "
        "ICML 2021, arXiv:2103.00020",
    )


ENTRIES: tuple[BackboneSpec, ...] = (
    _spec("clip-b32", "openai/clip-vit-base-patch32", BASE, 32),
    _spec("clip-b16", "openai/clip-vit-base-patch16", BASE, 16),
    _spec("clip-l14", "openai/clip-vit-large-patch14", LARGE, 14),
)
