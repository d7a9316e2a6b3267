"""MoCo-v3: momentum contrast on ImageNet-1k.

The B/16 on the Hub is a third party's copy of the original file, with timm's key names. S/16 is on no Hub
repository; it has 12 heads, and its file would load with 6 without an error.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, SMALL, ViTFamily
from zoo.normalisation import IMAGENET
from zoo.spec import BackboneSpec

_MOCO = ViTFamily(
    family="MoCo",
    supervision="images of ImageNet-1k",
    normalisation=IMAGENET,
    licence="unknown (original files: CC-BY-NC-4.0)",
    paper="Chen et al., An Empirical Study of Training Self-Supervised Vision Transformers, ICCV 2021, "
    "arXiv:2104.02057",
    checkpoint="timm",
)

ENTRIES: tuple[BackboneSpec, ...] = (
    replace(
        _MOCO.entry("moco-s16", "", replace(SMALL, heads=12), 16),
        original="https://dl.fbaipublicfiles.com/moco-v3/vit-s-300ep/vit-s-300ep.pth.tar",
    ),
    _MOCO.entry("moco-b16", "nyu-visionx/moco-v3-vit-b", BASE, 16),
)
