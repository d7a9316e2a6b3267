"""FS: Vision Transformers trained with labels on ImageNet-21k, then on ImageNet-1k."""

from zoo.entries.shapes import BASE, LARGE, SMALL, Shape
from zoo.normalisation import HALF
from zoo.spec import BackboneSpec


def _spec(name: str, timm_name: str, shape: Shape, patch: int) -> BackboneSpec:
    return BackboneSpec(
        name=name,
        family="FS",
        supervision="labels of ImageNet-21k, then ImageNet-1k",
        repository=f"timm/{timm_name}_224.augreg_in21k_ft_in1k",
        checkpoint="timm",
        stages=shape.stages(patch),
        heads=shape.heads,
        prefix_tokens=1,
        has_cls=True,
        has_final=True,
        mean=HALF.mean,
        std=HALF.std,
        licence="Apache-2.0",
        paper="Steiner et al., How to train your ViT?, TMLR 2022, arXiv:2106.10270",
    )


ENTRIES: tuple[BackboneSpec, ...] = (
    _spec("fs-s32", "vit_small_patch32", SMALL, 32),
    _spec("fs-s16", "vit_small_patch16", SMALL, 16),
    _spec("fs-b32", "vit_base_patch32", BASE, 32),
    _spec("fs-b16", "vit_base_patch16", BASE, 16),
    _spec("fs-b8", "vit_base_patch8", BASE, 8),
    _spec("fs-l16", "vit_large_patch16", LARGE, 16),
)
