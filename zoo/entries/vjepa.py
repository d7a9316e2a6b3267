"""V-JEPA 2: joint-embedding prediction on videos; an image is shown as two equal frames, one patch deep.

Positions are rotary, so that any size works; evaluated at the 256 px (or 384 px) of the training. There is no
class token. Queries and keys are rotated inside the attention, so that nothing inside blocks is shown.
"""

from dataclasses import replace

from zoo.entries.shapes import HUGE, LARGE, ViTFamily, ViTSize
from zoo.seen import VIDEOMIX
from zoo.spec import IMAGENET, BackboneSpec

_L = ViTFamily(
    family="V-JEPA",
    supervision="videos and images alone",
    data="VideoMix22M: videos of the web, ImageNet-1k",
    seen=VIDEOMIX,
    normalisation=IMAGENET,
    licence="MIT",
    paper="Assran et al., V-JEPA 2: Self-Supervised Video Models Enable Understanding, Prediction and "
    "Planning, 2025, arXiv:2506.09985",
    model_types=("vjepa2",),
    prefix_tokens=0,
    has_cls=False,
    input_size=256,
    sized=True,
)
_H = replace(_L, licence="Apache-2.0")
_AT_384 = replace(_H, input_size=384)
_GIANT = ViTSize(40, 1408, 22, mlp=6144)

ENTRIES: tuple[BackboneSpec, ...] = (
    _L.entry("vjepa2-l16", "facebook/vjepa2-vitl-fpc64-256", LARGE, 16, 303_885_312),
    _H.entry("vjepa2-h16", "facebook/vjepa2-vith-fpc64-256", HUGE, 16, 631_648_000),
    _H.entry("vjepa2-g16", "facebook/vjepa2-vitg-fpc64-256", _GIANT, 16, 1_012_173_952),
    _AT_384.entry("vjepa2-g16-384", "facebook/vjepa2-vitg-fpc64-384", _GIANT, 16, 1_012_173_952),
)
