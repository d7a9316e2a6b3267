"""DINOv2: self-distillation and masked tokens on 142 M curated images; without and with four registers.

S, B and L are distilled from g. Trained at 518 px at the end, and evaluated at 224 px here as in its paper.
The revisions are those that mteb pins.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, GIANT, LARGE, SMALL, ViTFamily
from zoo.seen import LVD_142M
from zoo.spec import IMAGENET, BackboneSpec

_DINOV2 = ViTFamily(
    family="DINOv2",
    supervision="images alone",
    data="LVD-142M",
    seen=LVD_142M,
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Oquab et al., DINOv2: Learning Robust Visual Features without Supervision, TMLR 2024, "
    "arXiv:2304.07193",
    model_types=("dinov2",),
    # The authors' hub of models: interpolate_offset 0.1, no antialiasing.
    interpolation="dino",
)
_REGISTERS = replace(
    _DINOV2,
    model_types=("dinov2_with_registers",),
    # There: no offset, antialiased, which is what the class of transformers does.
    interpolation="huggingface",
    prefix_tokens=5,
    paper="Darcet et al., Vision Transformers Need Registers, ICLR 2024, arXiv:2309.16588",
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _DINOV2.entry(
        "dinov2-s14",
        "facebook/dinov2-small",
        SMALL,
        14,
        22_056_576,
        "ed25f3a31f01632728cabb09d1542f84ab7b0056",
    ),
    _DINOV2.entry(
        "dinov2-b14", "facebook/dinov2-base", BASE, 14, 86_580_480, "f9e44c814b77203eaa57a6bdbbd535f21ede1415"
    ),
    _DINOV2.entry(
        "dinov2-l14",
        "facebook/dinov2-large",
        LARGE,
        14,
        304_368_640,
        "47b73eefe95e8d44ec3623f8890bd894b6ea2d6c",
    ),
    _DINOV2.entry(
        "dinov2-g14",
        "facebook/dinov2-giant",
        GIANT,
        14,
        1_136_480_768,
        "611a9d42f2335e0f921f1e313ad3c1b7178d206d",
    ),
    _REGISTERS.entry("dinov2-s14-reg", "facebook/dinov2-with-registers-small", SMALL, 14, 22_058_112),
    _REGISTERS.entry("dinov2-b14-reg", "facebook/dinov2-with-registers-base", BASE, 14, 86_583_552),
    _REGISTERS.entry("dinov2-l14-reg", "facebook/dinov2-with-registers-large", LARGE, 14, 304_372_736),
    _REGISTERS.entry("dinov2-g14-reg", "facebook/dinov2-with-registers-giant", GIANT, 14, 1_136_486_912),
)
