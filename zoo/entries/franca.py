"""Franca: nested clustering on public images, without labels; DINOv2's networks, all with a gated MLP.

RASA, a head in a file of its own that takes position out of the last layer's patch tokens, is left out. B
and one L end their training at 518 px; all are evaluated at 224 px here. The authors trained DINOv2 on
ImageNet-21k, too, as their baseline: these two differ from Franca by the method alone. Of L on ImageNet-21k
they say that the file was DINOv2's, and of g on ImageNet-21k that the release is incomplete: neither is here
(``release_checkpoints.md`` of their repository). The file of g comes in three parts, to be joined and
unpacked.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, GIANT, LARGE, ViTFamily, ViTSize
from zoo.seen import IMAGENET_21K, WEB
from zoo.spec import IMAGENET, BackboneSpec

_FILES = "https://github.com/valeoai/Franca/releases/download"
_FRANCA = ViTFamily(
    family="Franca",
    supervision="images alone",
    data="ImageNet-21k",
    normalisation=IMAGENET,
    licence="RAIL, research only (Franca)",
    paper="Venkataramanan et al., Franca: Nested Matryoshka Clustering for Scalable Visual Representation "
    "Learning, 2025, arXiv:2507.14137",
    checkpoint="original",
    model_types=("dinov2",),
    interpolation="dino",  # interpolate_offset 0.1, no antialiasing: FrancaConfig in franca/hub/backbones.py
    seen=IMAGENET_21K,
)
_LAION = replace(_FRANCA, data="LAION-600M", seen=WEB)
_DINOV2 = replace(
    _FRANCA,
    paper="Oquab et al., DINOv2, TMLR 2024, arXiv:2304.07193, as trained by Venkataramanan et al., Franca, "
    "2025, arXiv:2507.14137",
)


def _entry(family: ViTFamily, name: str, shape: ViTSize, parameters: int, file: str) -> BackboneSpec:
    return replace(family.entry(name, "", shape, 14, parameters), original=f"{_FILES}/{file}")


ENTRIES: tuple[BackboneSpec, ...] = (
    _entry(_FRANCA, "franca-b14-in21k", BASE, 86_592_768, "v1.0.0/franca_vitb14_In21K.pth"),
    _entry(_FRANCA, "franca-b14-in21k-224", BASE, 85_737_984, "v1.1.0/franca_vitb14_In21K_224.pth"),
    _entry(_LAION, "franca-l14-laion600m", LARGE, 304_794_880, "v1.1.0/franca_vitl14_Laion_518.pth"),
    _entry(_LAION, "franca-l14-laion600m-224", LARGE, 303_655_168, "v1.1.0/franca_vitl14_Laion600M_224.pth"),
    _entry(
        _LAION,
        "franca-g14-laion600m",
        GIANT,
        1_134_771_200,
        "v1.0.0/franca_vitg14_Laion600M_chunked.tar.gz.part_aa",
    ),
    _entry(_DINOV2, "franca-dinov2-b14-in21k", BASE, 86_592_768, "v1.1.0/franca_vitb14_Dinov2_In21K_518.pth"),
    _entry(
        _DINOV2, "franca-dinov2-l14-in21k", LARGE, 304_794_880, "v1.1.0/franca_vitl14_Dinov2_In21K_518.pth"
    ),
)
