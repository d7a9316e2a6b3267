"""SigLIP and SigLIP 2: vision towers of image-text models with a sigmoid loss; no class token.

The repositories of SigLIP 2 with a fixed size hold networks of SigLIP's own model type; those called NaFlex
are another, which takes patches instead of images and is not supported. L/16 and B/32 are evaluated at the
256 px of their training. Revisions are those that mteb pins.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, LARGE, ViTFamily, ViTSize
from zoo.seen import WEB_TEXTS
from zoo.spec import HALF, BackboneSpec

_SIGLIP = ViTFamily(
    family="SigLIP",
    supervision="image-text pairs, sigmoid loss",
    data="WebLI (English)",
    seen=WEB_TEXTS,
    normalisation=HALF,
    licence="Apache-2.0",
    paper="Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023, arXiv:2303.15343",
    model_types=("siglip_vision_model",),
    prefix_tokens=0,
    has_cls=False,
    sized=True,
)
_SIGLIP2 = replace(
    _SIGLIP,
    supervision="image-text pairs, captions, self-distillation",
    data="WebLI",
    paper="Tschannen et al., SigLIP 2: Multilingual Vision-Language Encoders, 2025, arXiv:2502.14786",
)
_AT_256 = replace(_SIGLIP, input_size=256)
_SIGLIP2_AT_256 = replace(_SIGLIP2, input_size=256)
_SO400M = ViTSize(27, 1152, 16, mlp=4304)

ENTRIES: tuple[BackboneSpec, ...] = (
    _SIGLIP.entry(
        "siglip-b16",
        "google/siglip-base-patch16-224",
        BASE,
        16,
        85_797_120,
        "7fd15f0689c79d79e38b1c2e2e2370a7bf2761ed",
    ),
    _AT_256.entry(
        "siglip-l16",
        "google/siglip-large-patch16-256",
        LARGE,
        16,
        303_361_024,
        "d0da9f876e7d66b4e250cd2450c3ba2ce735e447",
    ),
    _SIGLIP.entry(
        "siglip-so400m14",
        "google/siglip-so400m-patch14-224",
        _SO400M,
        14,
        412_442_352,
        "d04cf29fca7b6374f74d8bea1969314492266b5e",
    ),
    _SIGLIP2_AT_256.entry("siglip2-b32", "google/siglip2-base-patch32-256", BASE, 32, 87_465_216),
    _SIGLIP2.entry(
        "siglip2-b16",
        "google/siglip2-base-patch16-224",
        BASE,
        16,
        85_797_120,
        "75de2d55ec2d0b4efc50b3e9ad70dba96a7b2fa2",
    ),
    _SIGLIP2_AT_256.entry("siglip2-l16", "google/siglip2-large-patch16-256", LARGE, 16, 303_361_024),
    _SIGLIP2.entry("siglip2-so400m14", "google/siglip2-so400m-patch14-224", _SO400M, 14, 412_442_352),
)
