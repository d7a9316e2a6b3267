"""AIMv2: vision encoders pre-trained to predict the patches and the text that follow; no class token.

Their tables of positions are for 224 px; for other sizes they are resized here, which the authors' code and
transformers do not do. Revisions are those of May 2026, whose files have the names of transformers.
"""

from zoo.entries.shapes import ViTFamily, ViTSize
from zoo.seen import WEB_TEXTS
from zoo.spec import CLIP, BackboneSpec

_AIMV2 = ViTFamily(
    family="AIMv2",
    supervision="images and texts, autoregressive",
    data="DFN-2B, COYO, HQITP (in part not public)",
    seen=WEB_TEXTS,
    normalisation=CLIP,
    licence="Apple AMLR",
    paper="Fini et al., Multimodal Autoregressive Pre-training of Large Vision Encoders, CVPR 2025, "
    "arXiv:2411.14402",
    model_types=("aimv2_vision_model",),
    prefix_tokens=0,
    has_cls=False,
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _AIMV2.entry(
        "aimv2-l14",
        "apple/aimv2-large-patch14-224",
        ViTSize(24, 1024, 8, mlp=2816),
        14,
        309_197_824,
        "fcb5093a9c5b3efb7db5acee213849967fd18210",
    ),
    _AIMV2.entry(
        "aimv2-h14",
        "apple/aimv2-huge-patch14-224",
        ViTSize(24, 1536, 12, mlp=4096),
        14,
        680_851_968,
        "172051d9df825cda55607cfe9016da30f249a133",
    ),
)
