"""Networks trained on images and texts: CLIP, SigLIP, AIMv2, the Perception Encoder, TIPS."""

from dataclasses import replace

from layerboard.zoo.entries.architecture import Architecture, AuthorsNames, Sublayers, affine
from layerboard.zoo.entries.distilled import DINOV2, DINOV2_PARTS
from layerboard.zoo.entries.family import CENTRED, FAMILY, normalised
from layerboard.zoo.spec import CLIP, HALF, UNIT
from layerboard.zoo.spec.seen import WEB_TEXTS


def _openai_block(norm1: str, norm2: str, attention: str, out: str) -> dict[str, str | tuple[str, ...]]:
    """Names inside a block of OpenAI's code, old to new."""
    parts = tuple(f"{attention}.{part}_proj" for part in "qkv")
    return {
        **affine({"ln_1": norm1, "ln_2": norm2, "attn.out_proj": f"{attention}.{out}"}),
        **affine({"mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2"}),
        **{f"attn.in_proj_{kind}": tuple(f"{p}.{kind}" for p in parts) for kind in ("weight", "bias")},
    }


# CLIP: the vision towers of contrastive image-text models, by OpenAI, LAION (OpenCLIP) and Meta (MetaCLIP).
# OpenAI's revisions are those that mteb pins. LAION's L/14 was trained with other pixels than the rest: mean
# and std of 0.5, as OpenCLIP's table of checkpoints says.
OPENAI_CLIP = replace(
    normalised(FAMILY, CLIP),
    family="CLIP",
    supervision="400 M image-text pairs",
    data="WIT-400M (OpenAI, not public)",
    seen=WEB_TEXTS,
    licence="MIT",
    paper="Radford et al., Learning Transferable Visual Models From Natural Language Supervision, "
    "ICML 2021, arXiv:2103.00020",
    recipe="32 epochs in batches of 32,768, at 224 px (the paper, section 2.5)",
    code="openai/CLIP",
    model_types=("clip_vision_model",),
    trained_size=224,
)
OPENCLIP = replace(
    OPENAI_CLIP,
    supervision="2 G image-text pairs",
    data="LAION-2B (English)",
    interpolation="timm",  # resize_pos_embed of OpenCLIP: bicubic, size given, antialiased
    paper="Cherti et al., Reproducible scaling laws for contrastive language-image learning, CVPR 2023, "
    "arXiv:2212.07143",
    recipe="at 224 px; pairs seen (s) and pairs a batch (b) are in the name of its repository "
    "(docs/PRETRAINED.md of its code)",
    code="mlfoundations/open_clip",
)
OPENCLIP_HALF = normalised(OPENCLIP, HALF)
METACLIP = replace(
    OPENAI_CLIP,
    supervision="2.5 G image-text pairs",
    data="MetaCLIP, 2.5 G of CommonCrawl",
    # The authors' code fits positions with aligned corners, which no rule of interpolation does.
    licence="CC-BY-NC-4.0",
    paper="Xu et al., Demystifying CLIP Data, ICLR 2024, arXiv:2309.16671",
    recipe="12.8 G pairs seen at 224 px, faces blurred (README of its code)",
    code="facebookresearch/MetaCLIP",
)
METACLIP2 = replace(
    METACLIP,
    supervision="image-text pairs of all languages",
    data="MetaCLIP 2 worldwide",
    paper="Chuang et al., MetaCLIP 2: A Worldwide Scaling Recipe, 2025, arXiv:2507.22062",
    recipe="",
    model_types=("metaclip_2_vision_model",),
)
_CLIP_PARTS = Sublayers(
    norm1="layer_norm1",
    norm2="layer_norm2",
    attention="self_attn",
    attends="self_attn",
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    heads="self_attn.out_proj",
)
_OTHER_TOWER = r"^(text_model|text_projection|visual_projection|logit_scale|logit_bias)\b"
_TOWER = Architecture(
    model_type="clip_vision_model",
    blocks="encoder.layers",
    final_norm="post_layernorm",
    unused=(_OTHER_TOWER,),
    parts=_CLIP_PARTS,
    normalisation=CLIP,
)
# Towers with attention pooling and without a class token.
_POOLED = replace(_TOWER, prefix_tokens=0, unused=(r"^(vision_model\.)?head\.", _OTHER_TOWER))
CLIP_NAMES = AuthorsNames(
    layout="OpenAI's CLIP",
    fixed={
        "class_embedding": "embeddings.class_embedding",
        "positional_embedding": "embeddings.position_embedding.weight",
        "conv1.weight": "embeddings.patch_embedding.weight",
        **affine({"ln_pre": "pre_layrnorm", "ln_post": "post_layernorm"}),
    },
    block=_openai_block("layer_norm1", "layer_norm2", "self_attn", "out_proj"),
    old_block="transformer.resblocks.{}.",
    new_block="encoder.layers.{}.",
    unused=(r"^proj$",),
    patches="conv1.weight",
    hidden="mlp.c_fc.weight",
)

# SigLIP and SigLIP 2: a sigmoid loss; no class token. The repositories of SigLIP 2 with a fixed size hold
# networks of SigLIP's own model type; those called NaFlex are another, which takes patches instead of images
# and is not supported. L/16 and B/32 are evaluated at the 256 px of their training. Revisions are those that
# mteb pins.
SIGLIP = replace(
    CENTRED,
    family="SigLIP",
    supervision="image-text pairs, sigmoid loss",
    data="WebLI (English)",
    seen=WEB_TEXTS,
    paper="Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023, arXiv:2303.15343",
    code="google-research/big_vision",
    model_types=("siglip_vision_model",),
    prefix_tokens=0,
    trained_size=224,
)
SIGLIP2 = replace(
    SIGLIP,
    supervision="image-text pairs, captions, self-distillation",
    data="WebLI",
    paper="Tschannen et al., SigLIP 2: Multilingual Vision-Language Encoders, 2025, arXiv:2502.14786",
)
SIGLIP_AT_256 = replace(SIGLIP, input_size=256, trained_size=256)
SIGLIP2_AT_256 = replace(SIGLIP2, input_size=256, trained_size=256)

# AIMv2: pre-trained to predict the patches and the text that follow; no class token. Its tables of positions
# are for 224 px; for other sizes they are resized here, which the authors' code and transformers do not do.
# Revisions are those of May 2026, whose files have the names of transformers.
AIMV2 = replace(
    normalised(FAMILY, CLIP),
    family="AIMv2",
    supervision="images and texts, autoregressive",
    data="DFN-2B, COYO, HQITP (in part not public)",
    seen=WEB_TEXTS,
    licence="Apple AMLR (authors' repository: Apple sample code)",
    paper="Fini et al., Multimodal Autoregressive Pre-training of Large Vision Encoders, CVPR 2025, "
    "arXiv:2411.14402",
    code="apple/ml-aim",
    model_types=("aimv2_vision_model",),
    prefix_tokens=0,
    trained_size=224,
)

# Perception Encoder: contrastive towers (core), tuned for language models or for dense tasks. Tokens have
# learned absolute positions and rotary ones, so that any size works; towers are evaluated at 224 px here,
# where they were trained at 224 to 512 px. G has no class token. Of lang and spatial no norm follows the last
# block, and the blocks of lang and of spatial's G are scaled. Attention pooling and text towers are left out.
# T, S, B and L of spatial are distilled from its G, which was refined with masks of SAM 2.1.
PE_CORE = replace(
    CENTRED,  # core/vision_encoder/transforms.py of the authors
    family="PE",
    supervision="image-text pairs, captioned videos",
    data="5.4 G public image-text pairs, 22 M videos",
    seen=WEB_TEXTS,
    paper="Bolya et al., Perception Encoder: The best visual embeddings are not at the output of the "
    "network, 2025, arXiv:2504.13181",
    recipe="at the size in the name of its file; evaluated at 224 px here (apps/pe/README.md of its code)",
    code="facebookresearch/perception_models",
    original="https://huggingface.co/facebook/{0}/resolve/main/{0}.pt",
    model_types=("perception_encoder",),
)
PE_CORE_G = replace(PE_CORE, prefix_tokens=0)
PE_LANG = replace(
    PE_CORE, supervision="image-text pairs, captioned videos, answers of a language model", has_final=False
)
PE_LANG_G = replace(PE_LANG, prefix_tokens=0)
PE_SPATIAL = replace(PE_CORE, supervision="image-text pairs, captioned videos, masks of SAM", has_final=False)
PE_SPATIAL_G = replace(PE_SPATIAL, prefix_tokens=0)
_PE_SCALES = {"ls_1.gamma": "layer_scale1.lambda1", "ls_2.gamma": "layer_scale2.lambda1"}
PE_NAMES = replace(
    CLIP_NAMES,
    layout="the Perception Encoder",
    fixed={
        "conv1.weight": "embeddings.patch_embeddings.weight",
        "positional_embedding": "embeddings.position_embeddings",
        "class_embedding": "embeddings.cls_token",
        **affine({"ln_pre": "embeddings.norm", "ln_post": "norm"}),
    },
    block={**_openai_block("norm1", "norm2", "attention", "o_proj"), **_PE_SCALES},
    new_block="layers.{}.",
    optional=("class_embedding", *affine({"ln_post": "norm"}), *_PE_SCALES),
    unused=(r"^proj$", r"^attn_pool\."),
)

# TIPS v2: image-text towers that also learn from masked patches, with two class tokens. The first, which is
# read, learned from the texts of the web, the second from written captions. Pixels are in [0, 1] and not
# normalised. Trained at 448 px, evaluated at 224 px here.
TIPS = replace(
    normalised(FAMILY, UNIT),
    family="TIPS",
    supervision="image-text pairs, captions, self-distillation",
    data="image-text pairs (not public)",
    seen=WEB_TEXTS,
    paper="Cao et al., TIPSv2: Advancing Vision-Language Pretraining with Enhanced Patch-Text Alignment, "
    "CVPR 2026, arXiv:2604.12012",
    recipe="at 448 px; evaluated at 224 px here (README of its code)",
    code="google-deepmind/tips",
    licence="CC-BY-4.0 (on the Hub: Apache-2.0)",  # all but code, according to the authors' README
    model_types=("tipsv2_vision_model",),
    prefix_tokens=2,
)

ARCHITECTURES: tuple[Architecture, ...] = (
    replace(_TOWER, tower_of="clip", family="CLIP"),
    replace(
        _TOWER, model_type="metaclip_2_vision_model", tower_of="metaclip_2", model="MetaClip2VisionModel"
    ),
    replace(
        _TOWER, model_type="mlcd_vision_model", parts=replace(_CLIP_PARTS, rotary=True, tokens_first=True)
    ),
    replace(
        _POOLED,
        model_type="siglip_vision_model",
        tower_of="siglip",
        pooling_key="vision_use_head",
        normalisation=HALF,
    ),
    replace(
        _POOLED,
        model_type="aimv2_vision_model",
        tower_of="aimv2",
        pooling_key="use_head",
        final_norm="rms_norm",
        parts=Sublayers(
            norm1="rms_norm1",
            norm2="rms_norm2",
            mlp="ffn",
            heads="attention.out_proj",
            hidden=("ffn.down_proj",),
        ),
    ),
    Architecture(
        model_type="perception_encoder",
        model="PerceptionEncoderModel",
        blocks="layers",
        final_norm="norm",
        parts=replace(DINOV2_PARTS, rotary=True),
        family="PE",
        normalisation=HALF,
    ),
    replace(
        DINOV2,
        model_type="tipsv2_vision_model",
        tower_of="tipsv2",
        unused=(r"^(text_encoder|text_model)\.", r"^temperature$"),
        family="TIPS",
        normalisation=UNIT,
    ),
)
