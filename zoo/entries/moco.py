"""MoCo-v3: momentum contrast on ImageNet-1k.

The B/16 on the Hub is a third party's copy of the original file, with timm's key names. S/16 is on no Hub
repository; it has 12 heads, and its file would load with 6 without an error. Nor is the ResNet-50, trained
for 1000 epochs.
"""

from dataclasses import replace

from zoo.entries.resnet import DEPTHS_50, WIDTHS
from zoo.entries.shapes import BASE, SMALL, PyramidFamily, ViTFamily
from zoo.seen import IMAGENET_1K
from zoo.spec import IMAGENET, BackboneSpec

_FILES = "https://dl.fbaipublicfiles.com/moco-v3"
_MOCO = ViTFamily(
    family="MoCo",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,
    licence="unknown (original files: CC-BY-NC-4.0)",
    paper="Chen et al., An Empirical Study of Training Self-Supervised Vision Transformers, ICCV 2021, "
    "arXiv:2104.02057",
    checkpoint="original",
    # The authors' vits.py has fixed sines and cosines and fits no others; they transfer with DeiT's code.
    interpolation="huggingface",
    sized=True,
)
_RESNET = PyramidFamily(
    family="MoCo",
    supervision=_MOCO.supervision,
    data=_MOCO.data,
    seen=_MOCO.seen,
    normalisation=IMAGENET,
    licence="CC-BY-NC-4.0",
    paper=_MOCO.paper,
    has_final=False,
    model_types=("resnet",),
    checkpoint="original",
    stem_width=64,
)

ENTRIES: tuple[BackboneSpec, ...] = (
    replace(
        _MOCO.entry("moco-s16", "", replace(SMALL, heads=12), 16, 21_665_664),
        licence="CC-BY-NC-4.0",
        original=f"{_FILES}/vit-s-300ep/vit-s-300ep.pth.tar",
    ),
    _MOCO.entry("moco-b16", "nyu-visionx/moco-v3-vit-b", BASE, 16, 85_798_656),
    replace(
        _RESNET.entry("moco-resnet50", "", DEPTHS_50, WIDTHS, 23_508_032),
        original=f"{_FILES}/r-50-1000ep/r-50-1000ep.pth.tar",
    ),
)
