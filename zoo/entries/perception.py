"""Perception Encoder: contrastive image-text towers (core), tuned for language models or for dense tasks.

Tokens have learned absolute positions and rotary ones, so that any size works; towers are evaluated at 224 px
here, where they were trained at 224 to 512 px. G has no class token. Of lang and spatial no norm follows the
last block, and the blocks of lang and of spatial's G are scaled. Attention pooling and text towers are left
out. T, S, B and L of spatial are distilled from its G, which was refined with masks of SAM 2.1.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, LARGE, SMALL, ViTFamily, ViTSize
from zoo.seen import WEB_TEXTS
from zoo.spec import HALF, BackboneSpec

_HUB = "https://huggingface.co/facebook"
_CORE = ViTFamily(
    family="PE",
    supervision="image-text pairs, captioned videos",
    data="5.4 G public image-text pairs, 22 M videos",
    seen=WEB_TEXTS,
    normalisation=HALF,  # core/vision_encoder/transforms.py of the authors
    licence="Apache-2.0",
    paper="Bolya et al., Perception Encoder: The best visual embeddings are not at the output of the "
    "network, 2025, arXiv:2504.13181",
    checkpoint="original",
    model_types=("perception_encoder",),
)
_LANG = replace(_CORE, supervision="image-text pairs, captioned videos, answers of a language model")
_SPATIAL = replace(_CORE, supervision="image-text pairs, captioned videos, masks of SAM")
_TINY = ViTSize(12, 192, 3)
_GIGA = ViTSize(50, 1536, 16, mlp=8960)


def _entry(family: ViTFamily, name: str, file: str, shape: ViTSize, parameters: int) -> BackboneSpec:
    patch = 16 if "16-" in file else 14
    return replace(
        family.entry(name, "", shape, patch, parameters), original=f"{_HUB}/{file}/resolve/main/{file}.pt"
    )


def _unnormed(spec: BackboneSpec) -> BackboneSpec:
    return replace(spec, has_final=False)


def _classless(spec: BackboneSpec) -> BackboneSpec:
    return replace(spec, prefix_tokens=0, has_cls=False)


ENTRIES: tuple[BackboneSpec, ...] = (
    _entry(_CORE, "pe-core-t16", "PE-Core-T16-384", _TINY, 5_597_568),
    _entry(_CORE, "pe-core-s16", "PE-Core-S16-384", SMALL, 21_811_968),
    _entry(_CORE, "pe-core-b16", "PE-Core-B16-224", BASE, 85_799_424),
    _entry(_CORE, "pe-core-l14", "PE-Core-L14-336", LARGE, 303_507_456),
    _classless(_entry(_CORE, "pe-core-g14", "PE-Core-G14-448", _GIGA, 1_851_736_576)),
    _unnormed(_entry(_LANG, "pe-lang-l14", "PE-Lang-L14-448", replace(LARGE, depth=23), 291_415_040)),
    _classless(
        _unnormed(_entry(_LANG, "pe-lang-g14", "PE-Lang-G14-448", replace(_GIGA, depth=47), 1_740_922_624))
    ),
    _unnormed(_entry(_SPATIAL, "pe-spatial-t16", "PE-Spatial-T16-512", _TINY, 5_683_200)),
    _unnormed(_entry(_SPATIAL, "pe-spatial-s16", "PE-Spatial-S16-512", SMALL, 21_983_232)),
    _unnormed(_entry(_SPATIAL, "pe-spatial-b16", "PE-Spatial-B16-512", BASE, 86_433_792)),
    _unnormed(_entry(_SPATIAL, "pe-spatial-l14", "PE-Spatial-L14-448", LARGE, 303_964_160)),
    _classless(_unnormed(_entry(_SPATIAL, "pe-spatial-g14", "PE-Spatial-G14-448", _GIGA, 1_851_887_104))),
)
