"""Networks trained by self-distillation or contrast: DINO, MoCo, iBOT, MSN, DINOv2, DINOv3, Franca."""

from dataclasses import replace

from layerboard.zoo.entries import supervised
from layerboard.zoo.entries.architecture import Architecture, Sublayers, affine, split_affine
from layerboard.zoo.entries.family import FAMILY
from layerboard.zoo.spec.origin import ORIGINAL
from layerboard.zoo.spec.seen import IMAGENET_1K, IMAGENET_21K, LVD_142M, LVD_1689M, WEB

# DINO: self-distillation on ImageNet-1k. The Hub's S/8 is the file of ``torch.hub``; the numbers of Teaching
# Matters belong to another one, trained for 300 epochs, which no repository has. Nor has any the authors'
# ResNet-50, whose file has torchvision's names.
DINO = replace(
    FAMILY,
    family="DINO",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    paper="Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021, "
    "arXiv:2104.14294",
    recipe="crops of 224 and 96 px; epochs and options in args.txt beside the authors' files (README of its "
    "code)",
    code="facebookresearch/dino",
    network="average",  # the teacher's features, section 3 of the paper
    interpolation="dino",  # interpolate_pos_encoding in the authors' vision_transformer.py
    trained_size=224,
)
DINO_FILES = replace(DINO, original="https://dl.fbaipublicfiles.com/dino/{0}/{0}.pth")
DINO_RESNET = supervised.as_resnet(DINO_FILES)

# MoCo-v3: momentum contrast on ImageNet-1k. The B/16 on the Hub is a third party's copy of the original file,
# with timm's key names. S/16 is on no Hub repository; it has 12 heads, and its file would load with 6 without
# an error. Nor is the ResNet-50, trained for 1000 epochs.
MOCO = replace(
    DINO,
    family="MoCo",
    licence="CC-BY-NC-4.0",
    paper="Chen et al., An Empirical Study of Training Self-Supervised Vision Transformers, ICCV 2021, "
    "arXiv:2104.02057",
    recipe="300 epochs at 224 px (README of its code)",
    code="facebookresearch/moco-v3",
    origin=ORIGINAL,
    network="trained",  # the authors evaluate the query encoder, ``base_encoder``
    # The authors' vits.py has fixed sines and cosines and fits no others; they transfer with DeiT's code.
    interpolation="huggingface",
)
MOCO_FILES = replace(MOCO, original="https://dl.fbaipublicfiles.com/moco-v3/{0}/{0}.pth.tar")
MOCO_RESNET = replace(supervised.as_resnet(MOCO_FILES), recipe="1,000 epochs at 224 px (README of its code)")

# iBOT's files are the teachers', under timm's names, and in no repository.
IBOT = replace(
    DINO,
    family="iBOT",
    paper="Zhou et al., iBOT: Image BERT Pre-Training with Online Tokenizer, ICLR 2022, arXiv:2111.07832",
    recipe="epochs and options in the args beside the authors' files (README of its code)",
    code="bytedance/ibot",
    original="https://lf3-nlp-opensource.bytetos.com/obj/nlp-opensource/archive/2022/ibot/{0}/checkpoint_teacher.pth",
    # models/vision_transformer.py of the authors, with its rule of interpolation, is DINO's.
)
MSN = replace(
    DINO,
    family="MSN",
    licence="CC-BY-NC-4.0 (copy on the Hub: Apache-2.0)",
    paper="Assran et al., Masked Siamese Networks for Label-Efficient Learning, ECCV 2022, arXiv:2204.07141",
    recipe="options in configs/pretrain (README of its code)",
    code="facebookresearch/msn",
    # src/deit.py of the authors: one factor for both sides and no offset; for squares the same.
    interpolation="huggingface",
    model_types=("vit_msn",),
    trained_size=None,
)

# DINOv2: self-distillation and masked tokens on 142 M curated images; without and with four registers. S, B
# and L are distilled from g. Trained at 518 px at the end, and evaluated at 224 px here as in its paper. The
# revisions are those that mteb pins.
DINOV2_FAMILY = replace(
    FAMILY,
    family="DINOv2",
    supervision="images alone",
    data="LVD-142M",
    seen=LVD_142M,
    paper="Oquab et al., DINOv2: Learning Robust Visual Features without Supervision, TMLR 2024, "
    "arXiv:2304.07193",
    recipe="g at up to 518 px, S, B and L distilled from it; evaluated at 224 px here (the paper)",
    code="facebookresearch/dinov2",
    model_types=("dinov2",),
    network="average",
    interpolation="dino",  # the authors' hub of models: interpolate_offset 0.1, no antialiasing
    trained_size=518,
)
DINOV2_REGISTERS = replace(
    DINOV2_FAMILY,
    model_types=("dinov2_with_registers",),
    # There: no offset, antialiased, which is what the class of transformers does.
    interpolation="huggingface",
    prefix_tokens=5,
    paper="Darcet et al., Vision Transformers Need Registers, ICLR 2024, arXiv:2309.16588",
)
DINOV2_PARTS = Sublayers(
    norm1="norm1",
    norm2="norm2",
    attention="layer_scale1",
    mlp="layer_scale2",
    hidden=("mlp.fc2", "mlp.down_proj"),
)
DINOV2 = Architecture(model_type="dinov2", blocks="encoder.layer", final_norm="layernorm", parts=DINOV2_PARTS)
_PLAIN_MLP = affine({"mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"})
_GATED_MLP: dict[str, str | tuple[str, ...]] = {
    **split_affine("mlp.w12", "mlp.gate_proj", "mlp.up_proj"),
    **affine({"mlp.w3": "mlp.down_proj"}),
}
DINOV2_NAMES = replace(
    supervised.VIT_NAMES,
    layout="DINOv2",
    fixed={**supervised.VIT_NAMES.fixed, "register_tokens": "embeddings.register_tokens"},
    # Franca's RASA changes only the last layer's tokens.
    unused=(*supervised.VIT_NAMES.unused, r"^(dino|ibot|rasa)_head\."),
    block={
        **affine({"norm1": "norm1", "norm2": "norm2", "attn.proj": "attention.o_proj"}),
        **supervised.QKV,
        "ls1.gamma": "layer_scale1.lambda1",
        "ls2.gamma": "layer_scale2.lambda1",
        **_PLAIN_MLP,
        **_GATED_MLP,
    },
    new_block="encoder.layer.{}.",
    optional=("dist_token", "register_tokens", *_PLAIN_MLP, *_GATED_MLP),
)

# DINOv3: self-distillation on 1.7 G curated images; the others are distilled from the 7 B network. All
# repositories are gated. Positions are rotary, so that any size works; there are four registers. The
# ConvNeXts end in a norm that is applied to every cell.
DINOV3 = replace(
    FAMILY,
    family="DINOv3",
    supervision="images alone",
    data="LVD-1689M",
    seen=LVD_1689M,
    licence="DINOv3",
    repository="facebook/dinov3-{0}-pretrain-lvd1689m",
    paper="Siméoni et al., DINOv3, 2025, arXiv:2508.10104",
    recipe="the 7 B network with Gram anchoring, all others distilled from it (the paper)",
    code="facebookresearch/dinov3",
    model_types=("dinov3_vit",),
    network="average",
    gated=True,
    prefix_tokens=5,
)
DINOV3_CONV = replace(DINOV3, model_types=("dinov3_convnext",), prefix_tokens=0)

# Franca: nested clustering on public images; DINOv2's networks, all with a gated MLP. RASA, a head in a file
# of its own that takes position out of the last layer's patch tokens, is left out. B and one L end their
# training at 518 px; all are evaluated at 224 px here. The authors trained DINOv2 on ImageNet-21k, too, as
# their baseline: these two differ from Franca by the method alone. Of L on ImageNet-21k they say that the
# file was DINOv2's, and of g on ImageNet-21k that the release is incomplete: neither is here
# (``release_checkpoints.md`` of their repository). The file of g comes in three parts, to be joined and
# unpacked.
FRANCA = replace(
    DINOV2_FAMILY,
    family="Franca",
    data="ImageNet-21k",
    seen=IMAGENET_21K,
    licence="RAIL, research only (Franca)",
    paper="Venkataramanan et al., Franca: Nested Matryoshka Clustering for Scalable Visual Representation "
    "Learning, 2025, arXiv:2507.14137",
    recipe="up to 518 px; evaluated at 224 px here (release_checkpoints.md of its code)",
    code="valeoai/Franca",
    original="https://github.com/valeoai/Franca/releases/download/{0}",
    # Its interpolation is DINOv2's, too: FrancaConfig in franca/hub/backbones.py.
)
FRANCA_AT_224 = replace(FRANCA, trained_size=224, recipe="at 224 px (release_checkpoints.md of its code)")
FRANCA_WEB = replace(FRANCA, data="LAION-600M", seen=WEB)
FRANCA_WEB_224 = replace(FRANCA_WEB, trained_size=224, recipe=FRANCA_AT_224.recipe)
FRANCA_DINOV2 = replace(
    FRANCA,
    original="https://github.com/valeoai/Franca/releases/download/v1.1.0/franca_{0}_518.pth",
    paper="Oquab et al., DINOv2, TMLR 2024, arXiv:2304.07193, as trained by Venkataramanan et al., Franca, "
    "2025, arXiv:2507.14137",
)

ARCHITECTURES: tuple[Architecture, ...] = (
    replace(supervised.VIT, model_type="vit_msn"),
    DINOV2,
    replace(DINOV2, model_type="dinov2_with_registers"),
    replace(
        DINOV2,
        model_type="dinov3_vit",
        blocks="model.layer",
        final_norm="norm",
        parts=replace(DINOV2_PARTS, rotary=True),
    ),
    replace(
        supervised.CONVNEXT,
        model_type="dinov3_convnext",
        blocks="model.stages.*.layers",
        final_norm="layer_norm",
    ),
)
