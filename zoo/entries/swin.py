"""Swin and Swin V2: transformers with shifted windows and grids that get coarser; trained with labels.

Any image works whose sides are multiples of 32 px: a grid that is no multiple of the window is padded.
Windows are 7 cells a side for Swin at 224 px, and 8 for Swin V2 at 256 px, so that at those sizes nothing is
padded and the last stage is one window. Attention heads are those of the last stage; each has 32 channels in
every stage.
"""

from zoo.entries.shapes import PyramidFamily
from zoo.seen import IMAGENET_1K_LABELS
from zoo.spec import IMAGENET, BackboneSpec

_SWIN = PyramidFamily(
    family="Swin",
    supervision="labels of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K_LABELS,
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Liu et al., Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, ICCV 2021, "
    "arXiv:2103.14030",
    has_final=True,
    model_types=("swin",),
)
_V2 = PyramidFamily(
    family="Swin",
    supervision=_SWIN.supervision,
    data=_SWIN.data,
    seen=_SWIN.seen,
    normalisation=IMAGENET,
    licence=_SWIN.licence,
    paper="Liu et al., Swin Transformer V2: Scaling Up Capacity and Resolution, CVPR 2022, arXiv:2111.09883",
    has_final=True,
    model_types=("swinv2",),
    input_size=256,
)
_T = (96, 192, 384, 768)
_B = (128, 256, 512, 1024)

ENTRIES: tuple[BackboneSpec, ...] = (
    _SWIN.entry("swin-t", "microsoft/swin-tiny-patch4-window7-224", (2, 2, 6, 2), _T, 27_519_354, heads=24),
    _SWIN.entry("swin-s", "microsoft/swin-small-patch4-window7-224", (2, 2, 18, 2), _T, 48_837_258, heads=24),
    _SWIN.entry("swin-b", "microsoft/swin-base-patch4-window7-224", (2, 2, 18, 2), _B, 86_743_224, heads=32),
    _V2.entry("swinv2-t", "microsoft/swinv2-tiny-patch4-window8-256", (2, 2, 6, 2), _T, 27_578_154, heads=24),
    _V2.entry(
        "swinv2-s", "microsoft/swinv2-small-patch4-window8-256", (2, 2, 18, 2), _T, 48_959_418, heads=24
    ),
    _V2.entry(
        "swinv2-b", "microsoft/swinv2-base-patch4-window8-256", (2, 2, 18, 2), _B, 86_893_816, heads=32
    ),
)
