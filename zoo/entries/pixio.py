"""Pixio: masked autoencoders with a deeper decoder and larger masks, on images of the web.

Eight class tokens precede the patches: the first is read, where the authors take the mean of all. B, L, H and
1B are distilled from 5B. All repositories are gated; their authors' numbers of weights are those here.
"""

from zoo.entries.shapes import BASE, HUGE, LARGE, ViTFamily, ViTSize
from zoo.seen import WEB
from zoo.spec import IMAGENET, BackboneSpec

_PIXIO = ViTFamily(
    family="Pixio",
    supervision="images alone",
    data="MetaCLIP-2B, without its texts",
    seen=WEB,
    normalisation=IMAGENET,
    licence="FAIR Noncommercial Research License",
    gated=True,
    paper="Yang et al., In Pursuit of Pixel Supervision for Visual Pre-training, 2025, arXiv:2512.15715",
    interpolation="huggingface",  # pixio.py of the authors: bicubic, size given, not antialiased
    model_types=("pixio",),
    prefix_tokens=8,
    input_size=256,
    sized=True,
)
_1B = ViTSize(48, 1536, 24)
_5B = ViTSize(48, 3072, 32)

ENTRIES: tuple[BackboneSpec, ...] = (
    _PIXIO.entry("pixio-b16", "facebook/pixio-vitb16", BASE, 16, 85_855_488),
    _PIXIO.entry("pixio-l16", "facebook/pixio-vitl16", LARGE, 16, 303_377_408),
    _PIXIO.entry("pixio-h16", "facebook/pixio-vith16", HUGE, 16, 631_013_120),
    _PIXIO.entry("pixio-1b16", "facebook/pixio-vit1b16", _1B, 16, 1_361_515_008),
    _PIXIO.entry("pixio-5b16", "facebook/pixio-vit5b16", _5B, 16, 5_440_939_008),
)
