"""Networks trained with labels: FS (ViT and DeiT), ResNet and BiT, ConvNeXt, Swin."""

from dataclasses import replace

from layerboard.zoo.entries.architecture import (
    Architecture,
    AuthorsNames,
    Residual,
    Sublayers,
    affine,
    split_affine,
)
from layerboard.zoo.entries.family import CENTRED, FAMILY, normalised
from layerboard.zoo.spec import HALF, BackboneSpec, Retraining
from layerboard.zoo.spec.origin import ORIGINAL
from layerboard.zoo.spec.seen import IMAGENET_1K_LABELS, IMAGENET_21K_LABELS

VIT = Architecture(model_type="vit", blocks="layers", final_norm="layernorm", parts=Sublayers())
QKV = split_affine("attn.qkv", *(f"attention.{part}_proj" for part in "qkv"))
VIT_NAMES = AuthorsNames(
    layout="a Vision Transformer with timm's names",
    fixed={
        "cls_token": "embeddings.cls_token",
        "dist_token": "embeddings.distillation_token",
        "pos_embed": "embeddings.position_embeddings",
        **affine({"patch_embed.proj": "embeddings.patch_embeddings.projection", "norm": "layernorm"}),
    },
    block={
        **affine({"norm1": "layernorm_before", "norm2": "layernorm_after", "attn.proj": "attention.o_proj"}),
        **affine({"mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"}),
        **QKV,
    },
    old_block="blocks.{}.",
    new_block="layers.{}.",
    optional=("dist_token",),
    unused=(r"^(head|head_dist|pre_logits|fc_norm)\.", r"^(mask_token|masked_embed)$", r"^decoder"),
    patches="patch_embed.proj.weight",
    hidden="mlp.fc1.weight",
)

# FS: trained with labels of ImageNet-21k first, and DeiT with those of ImageNet-1k alone. DeiT's licence is
# that of its repository. Its B/16 with a distillation token has two prefix tokens, the class token first.
_LABELLED = replace(FAMILY, supervision="labels of ImageNet-1k", data="ImageNet-1k", seen=IMAGENET_1K_LABELS)
FS = replace(
    CENTRED,
    family="FS",
    supervision="labels of ImageNet-21k, then ImageNet-1k",
    data="ImageNet-21k, ImageNet-1k",
    seen=IMAGENET_21K_LABELS,
    paper="Steiner et al., How to train your ViT?, TMLR 2022, arXiv:2106.10270",
    recipe="300 epochs of ImageNet-21k, then 20,000 steps of ImageNet-1k, at 224 px (names of the files in "
    "timm's vision_transformer.py)",
    code="google-research/vision_transformer",
    origin=ORIGINAL,
    interpolation="timm",  # the weights and the code are timm's: resample_abs_pos_embed, antialiased
    repository="timm/vit_{0}_224.augreg_in21k_ft_in1k",
    trained_size=224,
)
DEIT = replace(
    _LABELLED,
    family="FS",
    repository="facebook/deit-{0}-patch16-224",
    paper="Touvron et al., Training data-efficient image transformers & distillation through attention, "
    "ICML 2021, arXiv:2012.12877",
    recipe="300 epochs at 224 px (README_deit.md of its code)",
    code="facebookresearch/deit",
    trained_size=224,  # positions are fitted as in the authors' main.py: bicubic, size given, not antialiased
)
# ViT as its authors published it, before and after training on ImageNet-1k at 224 px. Their code resizes
# positions by scipy.ndimage.zoom of order 1: ``--interpolation google``.
VIT_FAMILY = replace(
    CENTRED,
    family="FS",
    supervision="labels of ImageNet-21k",
    data="ImageNet-21k",
    seen=IMAGENET_21K_LABELS,
    paper="Dosovitskiy et al., An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale, "
    "ICLR 2021, arXiv:2010.11929",
    code="google-research/vision_transformer",
    repository="google/vit-{0}-224-in21k",
    interpolation="google",
    trained_size=224,
)
VIT_1K = replace(VIT_FAMILY, supervision=FS.supervision, data=FS.data, repository="google/vit-{0}-224")
WITH_LITTLE_DATA = {
    f"timm:{name}": Retraining(f"vit-{size}-in21k", "on ImageNet-1k alone, by another recipe")
    for name, size in (
        ("vit_base_patch32_224.augreg_in1k", "b32"),
        ("vit_base_patch16_224.augreg_in1k", "b16"),
        ("deit3_large_patch16_224.fb_in1k", "l16"),
        ("deit3_huge_patch14_224.fb_in1k", "h14"),
    )
}
"""Trainings of these architectures on little data, by their names in timm."""
DEIT_DISTILLED = replace(
    DEIT,
    supervision="labels of ImageNet-1k, and a ConvNet teacher's",
    recipe="300 epochs at 224 px, with the labels of a RegNetY-160 (README_deit.md of its code)",
    model_types=("deit",),
    prefix_tokens=2,
)


# ResNet: bottleneck networks (v1.5: the 3x3 convolution strides). Those of the Hub were trained by timm, to
# other features than torchvision's, which most papers mean: these are the entries ``-tv``. BiT-50 is of the
# second version (pre-activation), with group norms and standardised weights, trained with labels of
# ImageNet-21k, then of ImageNet-1k; its last block is followed by a norm and a ReLU, which are ``final``.
def as_resnet(family: BackboneSpec) -> BackboneSpec:
    """The family with ResNets in place of transformers, whose files of any image size fit."""
    kind = replace(family, model_types=("resnet",), interpolation="huggingface", trained_size=None)
    return replace(kind, prefix_tokens=0, has_final=False, stem_width=64)


RESNET = replace(
    as_resnet(_LABELLED),
    family="ResNet",
    paper="He et al., Deep Residual Learning for Image Recognition, CVPR 2016, arXiv:1512.03385",
)
STRIKES_BACK = replace(
    RESNET,
    paper=f"{RESNET.paper}; trained as in Wightman et al., ResNet strikes back, 2021, arXiv:2110.00476",
    recipe="timm's resnet50_a1_0-14fe96d1: recipe A1, 600 epochs, binary cross-entropy, mixup (what timm "
    "loaded in early 2022; that the converter ran with it is inferred from dates)",
    code="huggingface/pytorch-image-models",
)
STRIKES_BACK_101, STRIKES_BACK_152 = (
    replace(STRIKES_BACK, recipe=STRIKES_BACK.recipe.replace("resnet50_a1_0-14fe96d1: recipe A1", made))
    for made in ("resnet101_a1h-36d3f2aa: A1H", "resnet152_a1h-dc400468: A1H")
)
TORCHVISION = replace(
    RESNET,
    licence="BSD-3-Clause",
    recipe="torchvision's IMAGENET1K_V1: 90 epochs at 224 px (references/classification of its code)",
    code="pytorch/vision",
    original="https://download.pytorch.org/models/{0}.pth",
)
BIT = replace(
    normalised(RESNET, HALF),
    supervision="labels of ImageNet-21k, then ImageNet-1k",
    data="ImageNet-21k, ImageNet-1k",
    seen=IMAGENET_21K_LABELS,
    paper="Kolesnikov et al., Big Transfer (BiT): General Visual Representation Learning, ECCV 2020, "
    "arXiv:1912.11370",
    recipe="ImageNet-21k, then ImageNet-1k at 448 px, where it was tested; evaluated at 224 px here (timm's "
    "settings for the same weights)",
    code="google-research/big_transfer",
    has_final=True,
    model_types=("bit",),
)
_RESNET_NETWORK = Architecture(
    model_type="resnet",
    blocks="encoder.stages.*.layers",
    final_norm=None,
    prefix_tokens=0,
    layout="maps",
    parts=Residual("shortcut", "layer", overwrites=True),
    family="ResNet",
)

# ConvNeXt, trained with labels, and ConvNeXt V2, pre-trained by masking (FCMAE), then with labels. Their last
# norm is applied after the average over the image, so there is none over all cells.
CONVNEXT_FAMILY = replace(
    RESNET,
    family="ConvNeXt",
    licence="Apache-2.0 (authors' repository: MIT)",
    paper="Liu et al., A ConvNet for the 2020s, CVPR 2022, arXiv:2201.03545",
    recipe="300 epochs at 224 px, averaged weights (the paper; names of the files in README of its code)",
    code="facebookresearch/ConvNeXt",
    model_types=("convnext",),
    stem_width=None,
)
CONVNEXT2 = replace(
    CONVNEXT_FAMILY,
    supervision="images, then labels of ImageNet-1k",
    model_types=("convnextv2",),
    licence="CC-BY-NC-4.0 (copy on the Hub: Apache-2.0)",
    paper="Woo et al., ConvNeXt V2: Co-designing and Scaling ConvNets with Masked Autoencoders, CVPR 2023, "
    "arXiv:2301.00808",
    recipe="masked, then fine-tuned at 224 px, averaged weights (README of its code)",
    code="facebookresearch/ConvNeXt-V2",
)
CONVNEXT = replace(_RESNET_NETWORK, model_type="convnext", parts=Residual(None, "drop_path"), family="other")

# Swin and Swin V2: transformers with shifted windows and grids that get coarser. Any image works whose sides
# are multiples of 32 px: a grid that is no multiple of the window is padded. Windows are 7 cells a side for
# Swin at 224 px, and 8 for Swin V2 at 256 px, so that at those sizes nothing is padded and the last stage is
# one window. Attention heads are those of the last stage; each has 32 channels in every stage.
SWIN = replace(
    _LABELLED,
    family="Swin",
    paper="Liu et al., Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, ICCV 2021, "
    "arXiv:2103.14030",
    recipe="300 epochs at 224 px (the paper, section 4.1; MODELHUB.md of its code)",
    code="microsoft/Swin-Transformer",
    prefix_tokens=0,
    model_types=("swin",),
    licence="Apache-2.0 (authors' repository: MIT)",
    repository="microsoft/{0}",
    trained_size=224,
)
SWIN2 = replace(
    SWIN,
    paper="Liu et al., Swin Transformer V2: Scaling Up Capacity and Resolution, CVPR 2022, arXiv:2111.09883",
    recipe="labels of ImageNet-1k at 256 px (MODELHUB.md of its code)",
    model_types=("swinv2",),
    input_size=256,
    trained_size=256,
)
HIERARCHY = Architecture(
    model_type="swin", blocks="encoder.layers.*.blocks", final_norm="layernorm", prefix_tokens=0
)

ARCHITECTURES: tuple[Architecture, ...] = (
    replace(VIT, normalisation=HALF),
    replace(VIT, model_type="deit", prefix_tokens=2),
    HIERARCHY,
    replace(HIERARCHY, model_type="swinv2"),
    replace(HIERARCHY, model_type="focalnet", blocks="encoder.stages.*.layers"),
    _RESNET_NETWORK,
    replace(
        _RESNET_NETWORK,
        model_type="bit",
        final_norm="norm",
        parts=Residual("downsample", "drop_path"),
        normalisation=HALF,
    ),
    CONVNEXT,
    replace(CONVNEXT, model_type="convnextv2"),
)
