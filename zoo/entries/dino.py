"""DINO: self-distillation without labels on ImageNet-1k.

The Hub's S/8 is the file of ``torch.hub``; the paper's numbers belong to another one, trained for 300 epochs.
"""

from zoo.entries.shapes import BASE, SMALL, Shape
from zoo.normalisation import IMAGENET
from zoo.spec import BackboneSpec


def _spec(name: str, repository: str, shape: Shape, patch: int) -> BackboneSpec:
    return BackboneSpec(
        name=name,
        family="DINO",
        supervision="images of ImageNet-1k",
        repository=repository,
        stages=shape.stages(patch),
        heads=shape.heads,
        prefix_tokens=1,
        has_cls=True,
        has_final=True,
        mean=IMAGENET.mean,
        std=IMAGENET.std,
        licence="Apache-2.0",
        paper="Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021, "
        "arXiv:2104.14294",
    )


ENTRIES: tuple[BackboneSpec, ...] = (
    _spec("dino-s16", "facebook/dino-vits16", SMALL, 16),
    _spec("dino-s8", "facebook/dino-vits8", SMALL, 8),
    _spec("dino-b16", "facebook/dino-vitb16", BASE, 16),
    _spec("dino-b8", "facebook/dino-vitb8", BASE, 8),
)
