"""DINO: self-distillation without labels on ImageNet-1k.

The Hub's S/8 is the file of ``torch.hub``; the numbers of Teaching Matters belong to another one, trained for
300 epochs, which no repository has. Nor has any the authors' ResNet-50, whose file has torchvision's names.
"""

from dataclasses import replace

from zoo.entries.resnet import DEPTHS_50, WIDTHS
from zoo.entries.shapes import BASE, SMALL, PyramidFamily, ViTFamily
from zoo.seen import IMAGENET_1K
from zoo.spec import IMAGENET, BackboneSpec

_FILES = "https://dl.fbaipublicfiles.com/dino"
_DINO = ViTFamily(
    family="DINO",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021, "
    "arXiv:2104.14294",
    interpolation="dino",  # interpolate_pos_encoding in the authors' vision_transformer.py
    sized=True,
)
_RESNET = PyramidFamily(
    family="DINO",
    supervision=_DINO.supervision,
    data=_DINO.data,
    seen=_DINO.seen,
    normalisation=IMAGENET,
    licence=_DINO.licence,
    paper=_DINO.paper,
    has_final=False,
    model_types=("resnet",),
    checkpoint="original",
    stem_width=64,
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _DINO.entry("dino-s16", "facebook/dino-vits16", SMALL, 16, 21_665_664),
    _DINO.entry("dino-s8", "facebook/dino-vits8", SMALL, 8, 21_670_272),
    replace(
        _DINO.entry("dino-s8-300ep", "", SMALL, 8, 21_670_272),
        checkpoint="original",
        original=f"{_FILES}/dino_deitsmall8_300ep_pretrain/dino_deitsmall8_300ep_pretrain.pth",
    ),
    _DINO.entry("dino-b16", "facebook/dino-vitb16", BASE, 16, 85_798_656),
    _DINO.entry("dino-b8", "facebook/dino-vitb8", BASE, 8, 85_807_872),
    replace(
        _RESNET.entry("dino-resnet50", "", DEPTHS_50, WIDTHS, 23_508_032),
        original=f"{_FILES}/dino_resnet50_pretrain/dino_resnet50_pretrain.pth",
    ),
)
