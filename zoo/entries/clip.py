"""CLIP: the vision towers of contrastive image-text models, by OpenAI, LAION (OpenCLIP) and Meta (MetaCLIP).

OpenAI's revisions are those that mteb pins. LAION's L/14 was trained with other pixels than the rest: mean
and std of 0.5, as OpenCLIP's table of checkpoints says.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, HUGE, LARGE, ViTFamily
from zoo.seen import WEB_TEXTS
from zoo.spec import CLIP, HALF, BackboneSpec

_CLIP = ViTFamily(
    family="CLIP",
    supervision="400 M image-text pairs",
    data="WIT-400M (OpenAI, not public)",
    seen=WEB_TEXTS,
    normalisation=CLIP,
    licence="MIT",
    paper="Radford et al., Learning Transferable Visual Models From Natural Language Supervision, "
    "ICML 2021, arXiv:2103.00020",
    model_types=("clip_vision_model",),
    sized=True,
)
_OPENCLIP = replace(
    _CLIP,
    supervision="2 G image-text pairs",
    data="LAION-2B (English)",
    interpolation="timm",  # resize_pos_embed of OpenCLIP: bicubic, size given, antialiased
    paper="Cherti et al., Reproducible scaling laws for contrastive language-image learning, CVPR 2023, "
    "arXiv:2212.07143",
)
_METACLIP = replace(
    _CLIP,
    supervision="2.5 G image-text pairs",
    data="MetaCLIP, 2.5 G of CommonCrawl",
    interpolation="huggingface",  # the authors' code aligns corners, which no rule does
    licence="CC-BY-NC-4.0",
    paper="Xu et al., Demystifying CLIP Data, ICLR 2024, arXiv:2309.16671",
)
_METACLIP2 = replace(
    _METACLIP,
    supervision="image-text pairs of all languages",
    data="MetaCLIP 2 worldwide",
    paper="Chuang et al., MetaCLIP 2: A Worldwide Scaling Recipe, 2025, arXiv:2507.22062",
    model_types=("metaclip_2_vision_model",),
)
_INCEPTION = replace(_OPENCLIP, normalisation=HALF)

ENTRIES: tuple[BackboneSpec, ...] = (
    _CLIP.entry(
        "clip-b32",
        "openai/clip-vit-base-patch32",
        BASE,
        32,
        87_456_000,
        "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268",
    ),
    _CLIP.entry(
        "clip-b16",
        "openai/clip-vit-base-patch16",
        BASE,
        16,
        85_799_424,
        "57c216476eefef5ab752ec549e440a49ae4ae5f3",
    ),
    _CLIP.entry(
        "clip-l14",
        "openai/clip-vit-large-patch14",
        LARGE,
        14,
        303_179_776,
        "32bd64288804d66eefd0ccbe215aa642df71cc41",
    ),
    _OPENCLIP.entry("openclip-b32", "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", BASE, 32, 87_456_000),
    _OPENCLIP.entry("openclip-b16", "laion/CLIP-ViT-B-16-laion2B-s34B-b88K", BASE, 16, 85_799_424),
    _INCEPTION.entry("openclip-l14", "laion/CLIP-ViT-L-14-laion2B-s32B-b82K", LARGE, 14, 303_179_776),
    _OPENCLIP.entry("openclip-h14", "laion/CLIP-ViT-H-14-laion2B-s32B-b79K", HUGE, 14, 630_766_080),
    _METACLIP.entry("metaclip-b32", "facebook/metaclip-b32-fullcc2.5b", BASE, 32, 87_456_000),
    _METACLIP.entry("metaclip-b16", "facebook/metaclip-b16-fullcc2.5b", BASE, 16, 85_799_424),
    _METACLIP.entry("metaclip-l14", "facebook/metaclip-l14-fullcc2.5b", LARGE, 14, 303_179_776),
    _METACLIP.entry("metaclip-h14", "facebook/metaclip-h14-fullcc2.5b", HUGE, 14, 630_766_080),
    _METACLIP2.entry("metaclip2-h14", "facebook/metaclip-2-worldwide-huge-quickgelu", HUGE, 14, 630_766_080),
)
