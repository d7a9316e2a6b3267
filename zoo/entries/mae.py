"""MAE: masked autoencoders on ImageNet-1k; the encoder only, no token masked."""

from zoo.entries.shapes import BASE, HUGE, LARGE, ViTFamily
from zoo.seen import IMAGENET_1K
from zoo.spec import IMAGENET, BackboneSpec

_MAE = ViTFamily(
    family="MAE",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,
    licence="Apache-2.0 (original files: CC-BY-NC-4.0)",
    paper="He et al., Masked Autoencoders Are Scalable Vision Learners, CVPR 2022, arXiv:2111.06377",
    interpolation="huggingface",  # util/pos_embed.py of the authors: bicubic, size given, not antialiased
    model_types=("vit_mae", "vit"),  # the latter is the encoder alone
    sized=True,
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _MAE.entry("mae-b16", "facebook/vit-mae-base", BASE, 16, 85_798_656),
    _MAE.entry("mae-l16", "facebook/vit-mae-large", LARGE, 16, 303_301_632),
    _MAE.entry("mae-h14", "facebook/vit-mae-huge", HUGE, 14, 630_764_800),
)
