"""Networks trained by self-distillation or contrast: DINO, MoCo, iBOT, MSN, DINOv2, DINOv3, Franca."""

from dataclasses import replace

from layerboard.zoo.entries import supervised
from layerboard.zoo.entries.architecture import Architecture, Sublayers, affine, split_affine
from layerboard.zoo.entries.family import BASE, FAMILY, GIANT, LARGE, SMALL, NetworkSize, entry
from layerboard.zoo.spec import BackboneSpec
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
_DINO_FILES = replace(DINO, original="https://dl.fbaipublicfiles.com/dino/{0}/{0}.pth")
_DINO_RESNET = supervised.as_resnet(_DINO_FILES)

# MoCo-v3: momentum contrast on ImageNet-1k. The B/16 on the Hub is a third party's copy of the original file,
# with timm's key names. S/16 is on no Hub repository; it has 12 heads, and its file would load with 6 without
# an error. Nor is the ResNet-50, trained for 1000 epochs.
_MOCO = replace(
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
_MOCO_FILES = replace(_MOCO, original="https://dl.fbaipublicfiles.com/moco-v3/{0}/{0}.pth.tar")
_MOCO_RESNET = replace(
    supervised.as_resnet(_MOCO_FILES), recipe="1,000 epochs at 224 px (README of its code)"
)

# iBOT's files are the teachers', under timm's names, and in no repository.
_IBOT = replace(
    DINO,
    family="iBOT",
    paper="Zhou et al., iBOT: Image BERT Pre-Training with Online Tokenizer, ICLR 2022, arXiv:2111.07832",
    recipe="epochs and options in the args beside the authors' files (README of its code)",
    code="bytedance/ibot",
    original="https://lf3-nlp-opensource.bytetos.com/obj/nlp-opensource/archive/2022/ibot/{0}/checkpoint_teacher.pth",
    # models/vision_transformer.py of the authors, with its rule of interpolation, is DINO's.
)
_MSN = replace(
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
_DINOV2 = replace(
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
_REGISTERS = replace(
    _DINOV2,
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
_DINOV3 = replace(
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
_DINOV3_CONV = replace(_DINOV3, model_types=("dinov3_convnext",), prefix_tokens=0)
_SMALL_PLUS = replace(SMALL, gated=True)
_HUGE_PLUS = NetworkSize((32,), (1280,), 20, gated=True)
_7B = NetworkSize((40,), (4096,), 32, mlp=8192, gated=True)

# Franca: nested clustering on public images; DINOv2's networks, all with a gated MLP. RASA, a head in a file
# of its own that takes position out of the last layer's patch tokens, is left out. B and one L end their
# training at 518 px; all are evaluated at 224 px here. The authors trained DINOv2 on ImageNet-21k, too, as
# their baseline: these two differ from Franca by the method alone. Of L on ImageNet-21k they say that the
# file was DINOv2's, and of g on ImageNet-21k that the release is incomplete: neither is here
# (``release_checkpoints.md`` of their repository). The file of g comes in three parts, to be joined and
# unpacked.
_FRANCA = replace(
    _DINOV2,
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
_AT_224 = replace(_FRANCA, trained_size=224, recipe="at 224 px (release_checkpoints.md of its code)")
_WEB = replace(_FRANCA, data="LAION-600M", seen=WEB)
_WEB_224 = replace(_WEB, trained_size=224, recipe=_AT_224.recipe)
_GATED_B = replace(BASE, mlp=2048, gated=True)
_GATED_L = replace(LARGE, mlp=2736, gated=True)
_FRANCA_L = "v1.1.0/franca_vitl14_Laion600M_224.pth"
_FRANCA_G = "v1.0.0/franca_vitg14_Laion600M_chunked.tar.gz.part_aa"
_TWIN = replace(
    _FRANCA,
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
ENTRIES: tuple[BackboneSpec, ...] = (
    entry(DINO, "dino-s16", "facebook/dino-vits16", SMALL, 16, 21_665_664),
    entry(DINO, "dino-s8", "facebook/dino-vits8", SMALL, 8, 21_670_272),
    entry(_DINO_FILES, "dino-s8-300ep", "dino_deitsmall8_300ep_pretrain", SMALL, 8, 21_670_272),
    entry(DINO, "dino-b16", "facebook/dino-vitb16", BASE, 16, 85_798_656),
    entry(DINO, "dino-b8", "facebook/dino-vitb8", BASE, 8, 85_807_872),
    entry(_DINO_RESNET, "dino-resnet50", "dino_resnet50_pretrain", supervised.RESNET_50, 4, 23_508_032),
    entry(_MOCO_FILES, "moco-s16", "vit-s-300ep", replace(SMALL, heads=12), 16, 21_665_664),
    entry(_MOCO, "moco-b16", "nyu-visionx/moco-v3-vit-b", BASE, 16, 85_798_656),
    entry(_MOCO_RESNET, "moco-resnet50", "r-50-1000ep", supervised.RESNET_50, 4, 23_508_032),
    entry(_DINOV2, "dinov2-s14", "facebook/dinov2-small", SMALL, 14, 22_056_576),
    entry(_DINOV2, "dinov2-b14", "facebook/dinov2-base", BASE, 14, 86_580_480),
    entry(_DINOV2, "dinov2-l14", "facebook/dinov2-large", LARGE, 14, 304_368_640),
    entry(_DINOV2, "dinov2-g14", "facebook/dinov2-giant", GIANT, 14, 1_136_480_768),
    entry(_REGISTERS, "dinov2-s14-reg", "facebook/dinov2-with-registers-small", SMALL, 14, 22_058_112),
    entry(_REGISTERS, "dinov2-b14-reg", "facebook/dinov2-with-registers-base", BASE, 14, 86_583_552),
    entry(_REGISTERS, "dinov2-l14-reg", "facebook/dinov2-with-registers-large", LARGE, 14, 304_372_736),
    entry(_REGISTERS, "dinov2-g14-reg", "facebook/dinov2-with-registers-giant", GIANT, 14, 1_136_486_912),
    entry(_DINOV3, "dinov3-s16", "vits16", SMALL, 16, 21_596_544),
    entry(_DINOV3, "dinov3-s16plus", "vits16plus", _SMALL_PLUS, 16, 28_692_864),
    entry(_DINOV3, "dinov3-b16", "vitb16", BASE, 16, 85_660_416),
    entry(_DINOV3, "dinov3-l16", "vitl16", LARGE, 16, 303_129_600),
    entry(_DINOV3, "dinov3-h16plus", "vith16plus", _HUGE_PLUS, 16, 840_592_640),
    entry(_DINOV3, "dinov3-7b16", "vit7b16", _7B, 16, 6_716_035_072),
    entry(_DINOV3_CONV, "dinov3-convnext-t", "convnext-tiny", supervised.NEXT_T, 4, 27_820_128),
    entry(_DINOV3_CONV, "dinov3-convnext-s", "convnext-small", supervised.NEXT_S, 4, 49_454_688),
    entry(_DINOV3_CONV, "dinov3-convnext-b", "convnext-base", supervised.NEXT_B, 4, 87_566_464),
    entry(_DINOV3_CONV, "dinov3-convnext-l", "convnext-large", supervised.NEXT_L, 4, 196_230_336),
    entry(_IBOT, "ibot-s16", "vits_16", SMALL, 16, 21_665_664),
    entry(_IBOT, "ibot-b16", "vitb_16", BASE, 16, 85_798_656),
    entry(_MSN, "msn-s16", "facebook/vit-msn-small", SMALL, 16, 21_665_664),
    entry(_MSN, "msn-b16", "facebook/vit-msn-base", BASE, 16, 85_798_656),
    entry(_MSN, "msn-l16", "facebook/vit-msn-large", LARGE, 16, 303_301_632),
    entry(_FRANCA, "franca-b14-in21k", "v1.0.0/franca_vitb14_In21K.pth", _GATED_B, 14, 86_592_768),
    entry(_AT_224, "franca-b14-in21k-224", "v1.1.0/franca_vitb14_In21K_224.pth", _GATED_B, 14, 85_737_984),
    entry(_WEB, "franca-l14-laion600m", "v1.1.0/franca_vitl14_Laion_518.pth", _GATED_L, 14, 304_794_880),
    entry(_WEB_224, "franca-l14-laion600m-224", _FRANCA_L, _GATED_L, 14, 303_655_168),
    entry(_WEB_224, "franca-g14-laion600m", _FRANCA_G, GIANT, 14, 1_134_771_200),
    entry(_TWIN, "franca-dinov2-b14-in21k", "vitb14_Dinov2_In21K", _GATED_B, 14, 86_592_768),
    entry(_TWIN, "franca-dinov2-l14-in21k", "vitl14_Dinov2_In21K", _GATED_L, 14, 304_794_880),
)
