"""ConvNeXt, trained with labels, and ConvNeXt V2, pre-trained by masking (FCMAE), then with labels.

Their last norm is applied after the average over the image, so there is none over all cells.
"""

from dataclasses import replace

from zoo.entries.shapes import PyramidFamily
from zoo.seen import IMAGENET_1K_LABELS
from zoo.spec import IMAGENET, BackboneSpec

_CONVNEXT = PyramidFamily(
    family="ConvNeXt",
    supervision="labels of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K_LABELS,
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Liu et al., A ConvNet for the 2020s, CVPR 2022, arXiv:2201.03545",
    has_final=False,
    model_types=("convnext",),
)
_V2 = replace(
    _CONVNEXT,
    supervision="images, then labels of ImageNet-1k",
    model_types=("convnextv2",),
    licence="Apache-2.0 (original files: CC-BY-NC-4.0)",
    paper="Woo et al., ConvNeXt V2: Co-designing and Scaling ConvNets with Masked Autoencoders, CVPR 2023, "
    "arXiv:2301.00808",
)
_T = (96, 192, 384, 768)
_B = (128, 256, 512, 1024)
_L = (192, 384, 768, 1536)

ENTRIES: tuple[BackboneSpec, ...] = (
    _CONVNEXT.entry("convnext-t", "facebook/convnext-tiny-224", (3, 3, 9, 3), _T, 27_820_128),
    _CONVNEXT.entry("convnext-s", "facebook/convnext-small-224", (3, 3, 27, 3), _T, 49_454_688),
    _CONVNEXT.entry("convnext-b", "facebook/convnext-base-224", (3, 3, 27, 3), _B, 87_566_464),
    _CONVNEXT.entry("convnext-l", "facebook/convnext-large-224", (3, 3, 27, 3), _L, 196_230_336),
    _V2.entry("convnextv2-t", "facebook/convnextv2-tiny-1k-224", (3, 3, 9, 3), _T, 27_866_496),
    _V2.entry("convnextv2-b", "facebook/convnextv2-base-1k-224", (3, 3, 27, 3), _B, 87_692_800),
    _V2.entry("convnextv2-l", "facebook/convnextv2-large-1k-224", (3, 3, 27, 3), _L, 196_419_840),
)
