"""DINOv3: self-distillation on 1.7 G curated images; the others are distilled from the 7 B network.

All repositories are gated. Positions are rotary, so that any size works; there are four registers. The
ConvNeXts end in a norm that is applied to every cell.
"""

from zoo.entries.shapes import BASE, LARGE, SMALL, PyramidFamily, ViTFamily, ViTSize
from zoo.seen import LVD_1689M
from zoo.spec import IMAGENET, BackboneSpec

_DATA = "LVD-1689M"
_LICENCE = "DINOv3"
_PAPER = "Siméoni et al., DINOv3, 2025, arXiv:2508.10104"
_VIT = ViTFamily(
    family="DINOv3",
    supervision="images alone",
    data=_DATA,
    seen=LVD_1689M,
    normalisation=IMAGENET,
    licence=_LICENCE,
    paper=_PAPER,
    model_types=("dinov3_vit",),
    gated=True,
    prefix_tokens=5,
)
_CONVNEXT = PyramidFamily(
    family="DINOv3",
    supervision="images alone",
    data=_DATA,
    seen=LVD_1689M,
    normalisation=IMAGENET,
    licence=_LICENCE,
    paper=_PAPER,
    model_types=("dinov3_convnext",),
    gated=True,
    has_final=True,
)
_HUGE_PLUS = ViTSize(32, 1280, 20)
_7B = ViTSize(40, 4096, 32, mlp=8192)

ENTRIES: tuple[BackboneSpec, ...] = (
    _VIT.entry("dinov3-s16", "facebook/dinov3-vits16-pretrain-lvd1689m", SMALL, 16, 21_596_544),
    _VIT.entry("dinov3-s16plus", "facebook/dinov3-vits16plus-pretrain-lvd1689m", SMALL, 16, 28_692_864),
    _VIT.entry("dinov3-b16", "facebook/dinov3-vitb16-pretrain-lvd1689m", BASE, 16, 85_660_416),
    _VIT.entry("dinov3-l16", "facebook/dinov3-vitl16-pretrain-lvd1689m", LARGE, 16, 303_129_600),
    _VIT.entry("dinov3-h16plus", "facebook/dinov3-vith16plus-pretrain-lvd1689m", _HUGE_PLUS, 16, 840_592_640),
    _VIT.entry("dinov3-7b16", "facebook/dinov3-vit7b16-pretrain-lvd1689m", _7B, 16, 6_716_035_072),
    _CONVNEXT.entry(
        "dinov3-convnext-t",
        "facebook/dinov3-convnext-tiny-pretrain-lvd1689m",
        (3, 3, 9, 3),
        (96, 192, 384, 768),
        27_820_128,
    ),
    _CONVNEXT.entry(
        "dinov3-convnext-s",
        "facebook/dinov3-convnext-small-pretrain-lvd1689m",
        (3, 3, 27, 3),
        (96, 192, 384, 768),
        49_454_688,
    ),
    _CONVNEXT.entry(
        "dinov3-convnext-b",
        "facebook/dinov3-convnext-base-pretrain-lvd1689m",
        (3, 3, 27, 3),
        (128, 256, 512, 1024),
        87_566_464,
    ),
    _CONVNEXT.entry(
        "dinov3-convnext-l",
        "facebook/dinov3-convnext-large-pretrain-lvd1689m",
        (3, 3, 27, 3),
        (192, 384, 768, 1536),
        196_230_336,
    ),
)
