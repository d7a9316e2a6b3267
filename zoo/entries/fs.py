"""FS: Vision Transformers trained with labels on ImageNet-21k, then on ImageNet-1k."""

from zoo.entries.shapes import BASE, LARGE, SMALL, ViTFamily
from zoo.normalisation import HALF
from zoo.spec import BackboneSpec

_FS = ViTFamily(
    family="FS",
    supervision="labels of ImageNet-21k, then ImageNet-1k",
    normalisation=HALF,
    licence="Apache-2.0",
    paper="Steiner et al., How to train your ViT?, TMLR 2022, arXiv:2106.10270",
    checkpoint="timm",
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _FS.entry("fs-s32", "timm/vit_small_patch32_224.augreg_in21k_ft_in1k", SMALL, 32),
    _FS.entry("fs-s16", "timm/vit_small_patch16_224.augreg_in21k_ft_in1k", SMALL, 16),
    _FS.entry("fs-b32", "timm/vit_base_patch32_224.augreg_in21k_ft_in1k", BASE, 32),
    _FS.entry("fs-b16", "timm/vit_base_patch16_224.augreg_in21k_ft_in1k", BASE, 16),
    _FS.entry("fs-b8", "timm/vit_base_patch8_224.augreg_in21k_ft_in1k", BASE, 8),
    _FS.entry("fs-l16", "timm/vit_large_patch16_224.augreg_in21k_ft_in1k", LARGE, 16),
)
