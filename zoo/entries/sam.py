"""SAM: image encoders that were pre-trained by masking (MAE), then with masks of SA-1B.

Blocks attend inside windows of 14 cells a side, four of them to the whole image; relative positions are
fitted linearly, as the authors' code does. It has no rule for the absolute ones at other sizes, where they
are resized here. Evaluated at the 1024 px of the training; ``--input-size`` takes others. No layer is read
behind the last block, where convolutions follow (the neck).
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, HUGE, LARGE, ViTFamily
from zoo.seen import MAE_AND_SA_1B
from zoo.spec import IMAGENET, BackboneSpec

_SAM = ViTFamily(
    family="SAM",
    supervision="images, then masks of SA-1B",
    data="ImageNet-1k (by MAE), SA-1B",
    seen=MAE_AND_SA_1B,
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Kirillov et al., Segment Anything, ICCV 2023, arXiv:2304.02643",
    model_types=("sam_vision_model",),
    prefix_tokens=0,
    has_cls=False,
    input_size=1024,
)


def _unnormed(spec: BackboneSpec) -> BackboneSpec:
    return replace(spec, has_final=False)


ENTRIES: tuple[BackboneSpec, ...] = (
    _unnormed(_SAM.entry("sam-b16", "facebook/sam-vit-base", BASE, 16, 89_670_912)),
    _unnormed(_SAM.entry("sam-l16", "facebook/sam-vit-large", LARGE, 16, 308_278_272)),
    _unnormed(_SAM.entry("sam-h16", "facebook/sam-vit-huge", HUGE, 16, 637_026_048)),
)
