"""FS: Vision Transformers trained with labels; on ImageNet-21k first, and DeiT on ImageNet-1k alone.

DeiT's licence is that of its repository. Its B/16 with a distillation token has two prefix tokens, the class
token first.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, LARGE, SMALL, ViTFamily
from zoo.seen import IMAGENET_1K_LABELS, IMAGENET_21K_LABELS
from zoo.spec import HALF, IMAGENET, BackboneSpec

_FS = ViTFamily(
    family="FS",
    supervision="labels of ImageNet-21k, then ImageNet-1k",
    data="ImageNet-21k, ImageNet-1k",
    seen=IMAGENET_21K_LABELS,
    normalisation=HALF,
    licence="Apache-2.0",
    paper="Steiner et al., How to train your ViT?, TMLR 2022, arXiv:2106.10270",
    checkpoint="original",
    interpolation="timm",  # the weights and the code are timm's: resample_abs_pos_embed, antialiased
    sized=True,
)
_DEIT = ViTFamily(
    family="FS",
    supervision="labels of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K_LABELS,
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Touvron et al., Training data-efficient image transformers & distillation through attention, "
    "ICML 2021, arXiv:2012.12877",
    interpolation="huggingface",  # main.py of the authors: bicubic, size given, not antialiased
    sized=True,
)
_DISTILLED = replace(
    _DEIT,
    supervision="labels of ImageNet-1k, and a ConvNet teacher's",
    model_types=("deit",),
    prefix_tokens=2,
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _FS.entry("fs-s32", "timm/vit_small_patch32_224.augreg_in21k_ft_in1k", SMALL, 32, 22_493_952),
    _FS.entry("fs-s16", "timm/vit_small_patch16_224.augreg_in21k_ft_in1k", SMALL, 16, 21_665_664),
    _FS.entry("fs-b32", "timm/vit_base_patch32_224.augreg_in21k_ft_in1k", BASE, 32, 87_455_232),
    _FS.entry("fs-b16", "timm/vit_base_patch16_224.augreg_in21k_ft_in1k", BASE, 16, 85_798_656),
    _FS.entry("fs-b8", "timm/vit_base_patch8_224.augreg_in21k_ft_in1k", BASE, 8, 85_807_872),
    _FS.entry("fs-l16", "timm/vit_large_patch16_224.augreg_in21k_ft_in1k", LARGE, 16, 303_301_632),
    _DEIT.entry("deit-s16", "facebook/deit-small-patch16-224", SMALL, 16, 21_665_664),
    _DEIT.entry("deit-b16", "facebook/deit-base-patch16-224", BASE, 16, 85_798_656),
    _DISTILLED.entry("deit-b16-distilled", "facebook/deit-base-distilled-patch16-224", BASE, 16, 85_800_192),
)
