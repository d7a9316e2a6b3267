"""TIPS v2: image-text towers that also learn from masked patches, with two class tokens.

The first class token, which is read, learned from the texts of the web, the second from written captions.
Pixels are in [0, 1] and not normalised. Trained at 448 px, evaluated at 224 px here.
"""

from zoo.entries.shapes import BASE, GIANT, LARGE, ViTFamily, ViTSize
from zoo.seen import WEB_TEXTS
from zoo.spec import UNIT, BackboneSpec

_TIPS = ViTFamily(
    family="TIPS",
    supervision="image-text pairs, captions, self-distillation",
    data="image-text pairs (not public)",
    seen=WEB_TEXTS,
    normalisation=UNIT,
    licence="Apache-2.0",
    paper="Cao et al., TIPSv2: Advancing Vision-Language Pretraining with Enhanced Patch-Text Alignment, "
    "CVPR 2026, arXiv:2604.12012",
    model_types=("tipsv2_vision_model",),
    prefix_tokens=2,
)
_SO400M = ViTSize(27, 1152, 16, mlp=4304)

ENTRIES: tuple[BackboneSpec, ...] = (
    _TIPS.entry("tipsv2-b14", "google/tipsv2-b14", BASE, 14, 86_316_288),
    _TIPS.entry("tipsv2-l14", "google/tipsv2-l14", LARGE, 14, 304_016_384),
    _TIPS.entry("tipsv2-so14", "google/tipsv2-so400m14", _SO400M, 14, 413_393_904),
    _TIPS.entry("tipsv2-g14", "google/tipsv2-g14", GIANT, 14, 1_135_952_384),
)
