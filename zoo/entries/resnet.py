"""ResNet: bottleneck networks trained with labels (v1.5: the 3x3 convolution strides), and BiT.

BiT-50 is of the second version (pre-activation), with group norms and standardised weights, trained with
labels of ImageNet-21k, then of ImageNet-1k; its last block is followed by a norm and a ReLU, which are
``final``.
"""

from zoo.entries.shapes import PyramidFamily
from zoo.seen import IMAGENET_1K_LABELS, IMAGENET_21K_LABELS
from zoo.spec import HALF, IMAGENET, BackboneSpec

DEPTHS_50 = (3, 4, 6, 3)
WIDTHS = (256, 512, 1024, 2048)

_RESNET = PyramidFamily(
    family="ResNet",
    supervision="labels of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K_LABELS,
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="He et al., Deep Residual Learning for Image Recognition, CVPR 2016, arXiv:1512.03385",
    has_final=False,
    model_types=("resnet",),
    stem_width=64,
)
_BIT = PyramidFamily(
    family="ResNet",
    supervision="labels of ImageNet-21k, then ImageNet-1k",
    data="ImageNet-21k, ImageNet-1k",
    seen=IMAGENET_21K_LABELS,
    normalisation=HALF,
    licence="Apache-2.0",
    paper="Kolesnikov et al., Big Transfer (BiT): General Visual Representation Learning, ECCV 2020, "
    "arXiv:1912.11370",
    has_final=True,
    model_types=("bit",),
    stem_width=64,
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _RESNET.entry("resnet50", "microsoft/resnet-50", DEPTHS_50, WIDTHS, 23_508_032),
    _RESNET.entry("resnet101", "microsoft/resnet-101", (3, 4, 23, 3), WIDTHS, 42_500_160),
    _RESNET.entry("resnet152", "microsoft/resnet-152", (3, 8, 36, 3), WIDTHS, 58_143_808),
    _BIT.entry("bit-50", "google/bit-50", DEPTHS_50, WIDTHS, 23_500_352),
)
