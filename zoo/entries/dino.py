"""DINO: self-distillation without labels on ImageNet-1k.

The Hub's S/8 is the file of ``torch.hub``; the numbers of Teaching Matters belong to another one, trained for
300 epochs, which no repository has.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, SMALL, ViTFamily
from zoo.normalisation import IMAGENET
from zoo.spec import BackboneSpec

_DINO = ViTFamily(
    family="DINO",
    supervision="images of ImageNet-1k",
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021, "
    "arXiv:2104.14294",
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _DINO.entry("dino-s16", "facebook/dino-vits16", SMALL, 16),
    _DINO.entry("dino-s8", "facebook/dino-vits8", SMALL, 8),
    replace(
        _DINO.entry("dino-s8-300ep", "", SMALL, 8),
        checkpoint="timm",
        original="https://dl.fbaipublicfiles.com/dino/dino_deitsmall8_300ep_pretrain/"
        "dino_deitsmall8_300ep_pretrain.pth",
    ),
    _DINO.entry("dino-b16", "facebook/dino-vitb16", BASE, 16),
    _DINO.entry("dino-b8", "facebook/dino-vitb8", BASE, 8),
)
