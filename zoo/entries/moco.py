"""MoCo-v3: momentum contrast on ImageNet-1k.

The B/16 on the Hub is a third party's copy of the original file, with timm's key names. S/16 is on no Hub
repository; it has 12 heads, and its file would load with 6 without an error.
"""

from zoo.entries.shapes import BASE
from zoo.normalisation import IMAGENET
from zoo.spec import BackboneSpec

ENTRIES: tuple[BackboneSpec, ...] = (
    BackboneSpec(
        name="moco-b16",
        family="MoCo",
        supervision="images of ImageNet-1k",
        repository="nyu-visionx/moco-v3-vit-b",
        checkpoint="timm",
        stages=BASE.stages(16),
        heads=BASE.heads,
        prefix_tokens=1,
        has_cls=True,
        has_final=True,
        mean=IMAGENET.mean,
        std=IMAGENET.std,
        licence="unknown (original files: CC-BY-NC-4.0)",
        paper="Chen et al., An Empirical Study of Training Self-Supervised Vision Transformers, ICCV 2021, "
        "arXiv:2104.02057",
    ),
)
