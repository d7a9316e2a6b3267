"""CAPI: masked image modelling by predicting clusters of the teacher's patches; images alone.

No class token: sixteen registers, which are placed along the edge of the image, precede the patches.
Positions are rotary and go from 0 to 1 at any size. The last norm has no weights. The decoder, with which the
authors pool, is left out.
"""

from dataclasses import replace

from zoo.entries.shapes import LARGE, ViTFamily
from zoo.seen import IMAGENET_1K, IMAGENET_21K, LVD_142M, PLACES, Training
from zoo.spec import IMAGENET, BackboneSpec

_FILES = "https://dl.fbaipublicfiles.com/capi"
_CAPI = ViTFamily(
    family="CAPI",
    supervision="images alone",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,  # IMAGENET_NORM in train_capi.py
    licence="Apache-2.0",
    paper="Darcet et al., Cluster and Predict Latent Patches for Improved Masked Image Modeling, 2025, "
    "arXiv:2502.08769",
    checkpoint="original",
    model_types=("capi",),
    prefix_tokens=16,
    has_cls=False,
)
_PARAMETERS = 302_658_560


def _entry(name: str, data: str, file: str, seen: Training) -> BackboneSpec:
    family = replace(_CAPI, data=data, seen=seen)
    return replace(family.entry(name, "", LARGE, 14, _PARAMETERS), original=f"{_FILES}/{file}")


ENTRIES: tuple[BackboneSpec, ...] = (
    _entry("capi-l14-in1k", "ImageNet-1k", "capi_vitl14_in1k.pth", IMAGENET_1K),
    _entry("capi-l14-in22k", "ImageNet-22k", "capi_vitl14_i22k.pth", IMAGENET_21K),
    _entry("capi-l14-lvd142m", "LVD-142M", "capi_vitl14_lvd.pth", LVD_142M),
    _entry("capi-l14-places205", "Places205", "capi_vitl14_p205.pth", PLACES),
)
