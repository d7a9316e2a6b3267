"""Networks that predict masked content: MAE, BEiT, data2vec, I-JEPA, CAPI, Hiera, Pixio, V-JEPA."""

from dataclasses import replace

from layerboard.zoo.entries.architecture import Architecture, AuthorsNames, Sublayers, affine
from layerboard.zoo.entries.distilled import DINO, DINOV2_PARTS
from layerboard.zoo.entries.family import CENTRED, FAMILY
from layerboard.zoo.entries.supervised import HIERARCHY, VIT, VIT_NAMES
from layerboard.zoo.spec import HALF, seen

# MAE: masked autoencoders on ImageNet-1k; the encoder only, no token masked.
MAE = replace(
    DINO,
    family="MAE",
    licence="CC-BY-NC-4.0 (copy on the Hub: Apache-2.0)",
    paper="He et al., Masked Autoencoders Are Scalable Vision Learners, CVPR 2022, arXiv:2111.06377",
    recipe="1,600 epochs at 224 px, 75 % masked, normalised pixels (FINETUNE.md, PRETRAIN.md of its code)",
    code="facebookresearch/mae",
    network="",
    interpolation="huggingface",  # util/pos_embed.py of the authors: bicubic, size given, not antialiased
    model_types=("vit_mae", "vit"),  # the latter is the encoder alone
)

# BEiT: visual tokens, pre-trained on ImageNet-22k without labels (``pt22k``). One more entry has seen labels
# since: fine-tuned on ImageNet-22k, then on ImageNet-1k. It averages patch tokens before its last norm, so it
# has no norm over all tokens.
BEIT = replace(
    CENTRED,
    family="BEiT",
    supervision="images of ImageNet-22k",
    data="ImageNet-22k",
    seen=replace(seen.IMAGENET_21K, listed=False),  # Its tokenizer is DALL-E's, trained on images of the web.
    paper="Bao et al., BEiT: BERT Pre-Training of Image Transformers, ICLR 2022, arXiv:2106.08254",
    licence="Apache-2.0 (authors' repository: MIT)",
    recipe="ImageNet-22k at 224 px, B for 150 epochs (beit/README.md of its code)",
    code="microsoft/unilm",
    model_types=("beit",),
    trained_size=224,
)
BEIT_TUNED = replace(
    BEIT,
    supervision="images, then labels of ImageNet-22k and ImageNet-1k",
    recipe="ImageNet-22k for 150 epochs, its labels for 90, then those of ImageNet-1k, at 224 px "
    "(beit/README.md of its code)",
    data="ImageNet-22k, ImageNet-1k",
    seen=replace(seen.IMAGENET_21K_LABELS, listed=False),
    has_final=False,
)
_BEIT_PARTS = Sublayers(attention_scale="lambda_1", mlp_scale="lambda_2")
_BEIT_NETWORK = Architecture(
    model_type="beit",
    blocks="layers",
    final_norm="layernorm",
    interpolates=False,
    unused=(r"^layernorm\.",),
    parts=_BEIT_PARTS,
    family="BEiT",
    normalisation=HALF,
)
_TABLE = "relative_position_bias_table"
BEIT_TABLES = (f"attn.{_TABLE}", f"rel_pos_bias.{_TABLE}")  # of a block, and shared by all
BEIT_NAMES = replace(
    VIT_NAMES,
    layout="BEiT",
    fixed={
        **{old: new for old, new in VIT_NAMES.fixed.items() if old not in ("dist_token", "pos_embed")},
        BEIT_TABLES[1]: f"shared_position_bias.{_TABLE}",
    },
    block={
        **{name: new for name, new in VIT_NAMES.block.items() if not name.startswith("attn.qkv")},
        "attn.qkv.weight": tuple(f"attention.{part}_proj.weight" for part in "qkv"),
        "attn.q_bias": "attention.q_proj.bias",
        "attn.v_bias": "attention.v_proj.bias",
        "gamma_1": "lambda_1",
        "gamma_2": "lambda_2",
        BEIT_TABLES[0]: f"relative_position_bias.{_TABLE}",
    },
    optional=(*affine({"norm": "layernorm"}), *BEIT_TABLES),
    unused=(r"^(head|lm_head|fc_norm)\.", r"^mask_token$", r"relative_position_index$"),
)

# data2vec's configuration says that its norm comes last and is over all tokens (no mean pooling), as its
# conversion script in transformers has it. Images of data2vec and I-JEPA are normalised as in the authors'
# own training, with ImageNet's mean and std (data2vec trains with ``--imagenet_default_mean_and_std``); the
# preprocessors of the repositories have 0.5.
DATA2VEC = replace(
    MAE,
    family="data2vec",
    licence="Apache-2.0 (authors' repository: MIT)",
    paper="Baevski et al., data2vec: A General Framework for Self-supervised Learning in Speech, Vision and "
    "Language, ICML 2022, arXiv:2202.03555",
    recipe="",
    code="facebookresearch/fairseq",
    model_types=("data2vec-vision",),
    trained_size=None,
)
IJEPA = replace(
    DATA2VEC,
    family="I-JEPA",
    licence="CC-BY-NC-4.0",
    paper="Assran et al., Self-Supervised Learning from Images with a Joint-Embedding Predictive "
    "Architecture, CVPR 2023, arXiv:2301.08243",
    recipe="300 epochs at 224 px (README of its code)",
    code="facebookresearch/ijepa",
    model_types=("ijepa",),
    network="average",  # the target encoder
    prefix_tokens=0,
)
IJEPA22K = replace(
    IJEPA,
    supervision="images of ImageNet-22k",
    data="ImageNet-22k",
    seen=seen.IMAGENET_21K,
    recipe="66 epochs at 224 px (README of its code)",
)
IJEPA22K_G = replace(IJEPA22K, recipe="44 epochs at 224 px (README of its code)")

# CAPI: predicts clusters of the teacher's patches. No class token: sixteen registers, which are placed along
# the edge of the image, precede the patches. Positions are rotary and go from 0 to 1 at any size. The last
# norm has no weights. The decoder, with which the authors pool, is left out.
CAPI = replace(
    FAMILY,
    family="CAPI",
    supervision="images alone",
    data="ImageNet-1k",
    seen=seen.IMAGENET_1K,
    # IMAGENET_NORM in train_capi.py
    paper="Darcet et al., Cluster and Predict Latent Patches for Improved Masked Image Modeling, 2025, "
    "arXiv:2502.08769",
    recipe="default_pretrain_config.yaml (README of its code)",
    code="facebookresearch/capi",
    original="https://dl.fbaipublicfiles.com/capi/{0}",
    model_types=("capi",),
    network="average",
    prefix_tokens=16,
    has_cls=False,
)
CAPI_22K = replace(CAPI, data="ImageNet-22k", seen=seen.IMAGENET_21K)
CAPI_LVD = replace(CAPI, data="LVD-142M", seen=seen.LVD_142M)
CAPI_PLACES = replace(CAPI, data="Places205", seen=seen.PLACES)
CAPI_NAMES = AuthorsNames(
    layout="CAPI",
    fixed={
        "registers": "embeddings.register_tokens",
        "patch_embed.weight": "embeddings.patch_embeddings.weight",
        "patch_embed.bias": "embeddings.patch_embeddings.bias",
    },
    block={
        "residual1.norm.weight": "norm1.weight",
        **{f"residual1.fn.{part}_proj.weight": f"attention.{part}_proj.weight" for part in "qkv"},
        "residual1.fn.proj.weight": "attention.o_proj.weight",
        "residual1.fn.rope.freqs": "rotary.frequencies",
        "residual2.norm.weight": "norm2.weight",
        "residual2.fn.fc1.weight": "mlp.fc1.weight",
        "residual2.fn.fc2.weight": "mlp.fc2.weight",
    },
    old_block="encoder.blocks.{}.",
    new_block="layers.{}.",
    unused=(r"^decoder\.", r"^mask_token$"),
    patches="patch_embed.weight",
    hidden="residual2.fn.fc1.weight",
)

# Hiera: plain attention in stages, inside mask units of 32 px first; masked autoencoders on ImageNet-1k.
# Tokens are kept unit by unit; their grids are put back into rows and columns. Before all stages but the
# first four tokens become one, their maximum, so that sides must be multiples of 32 px. In the pre-training
# the last stage was not pooled (``hiera_mae.py`` of the authors, q_pool 2). It is here, as in the authors'
# own model of these checkpoints and in their repositories without ``-mae``, so that its blocks see a coarser
# grid than they learned on. The norm comes after the mean over tokens, as in BEiT's classifiers, so that no
# layer is behind it; in the files that were not fine-tuned it is untrained.
#
# The authors' code takes 224 px only. At other sizes positions are resized bicubically, as transformers does
# it; Bolya et al., Window Attention is Bugged, ICLR 2024, arXiv:2311.05613, found that this hurts, since the
# table repeats from unit to unit. Attention heads are those of the last stage.
HIERA = replace(
    MAE,
    family="Hiera",
    licence="CC-BY-NC-4.0",  # LICENSE.models of the authors; their code alone is Apache-2.0
    paper="Ryali et al., Hiera: A Hierarchical Vision Transformer without the Bells-and-Whistles, ICML 2023, "
    "arXiv:2306.00989",
    recipe="at 224 px, 60 % masked, normalised pixels (README of its code)",
    code="facebookresearch/hiera",
    has_final=False,
    model_types=("hiera",),
    prefix_tokens=0,
    repository="facebook/hiera-{0}-hf",
    trained_size=None,
)
HIERA_FT = replace(
    HIERA,
    supervision="images, then labels of ImageNet-1k",
    seen=seen.IMAGENET_1K_LABELS,
    recipe="masked as without -ft1k, then fine-tuned at 224 px (README of its code)",
)

# Pixio: masked autoencoders with a deeper decoder and larger masks, on images of the web. Eight class tokens
# precede the patches: the first is read, where the authors take the mean of all. B, L, H and 1B are distilled
# from 5B. All repositories are gated; their authors' numbers of weights are those here.
PIXIO = replace(
    FAMILY,
    family="Pixio",
    supervision="images alone",
    data="MetaCLIP-2B, without its texts",
    seen=seen.WEB,
    licence="FAIR Noncommercial Research License",
    gated=True,
    paper="Yang et al., In Pursuit of Pixel Supervision for Visual Pre-training, 2025, arXiv:2512.15715",
    recipe="5B masked, all others distilled from it; shown at 256 px (README of its code)",
    code="facebookresearch/pixio",
    # Positions are fitted as in the authors' pixio.py: bicubic, size given, not antialiased.
    model_types=("pixio",),
    prefix_tokens=8,
    input_size=256,
    trained_size=256,
)

# V-JEPA 2: joint-embedding prediction on videos; an image is shown as two equal frames, one patch deep.
# Positions are rotary, so that any size works; evaluated at the 256 px (or 384 px) of the training. There is
# no class token. Queries and keys are rotated inside the attention, so that nothing inside blocks is shown.
VJEPA_L = replace(
    FAMILY,
    family="V-JEPA",
    supervision="videos and images alone",
    data="VideoMix22M: videos of the web, ImageNet-1k",
    seen=seen.VIDEOMIX,
    licence="MIT",
    paper="Assran et al., V-JEPA 2: Self-Supervised Video Models Enable Understanding, Prediction and "
    "Planning, 2025, arXiv:2506.09985",
    recipe="at 256 px, options in configs/train (README of its code)",
    code="facebookresearch/vjepa2",
    model_types=("vjepa2",),
    network="average",
    prefix_tokens=0,
    input_size=256,
    trained_size=256,
)
VJEPA = replace(VJEPA_L, licence="Apache-2.0")
VJEPA_H = replace(VJEPA, licence="Apache-2.0 (two other sources: MIT)")
VJEPA_384 = replace(
    VJEPA, input_size=384, trained_size=384, recipe="at 384 px, options in configs/train (README of its code)"
)

ARCHITECTURES: tuple[Architecture, ...] = (
    # The encoder as a plain ViT: ViTMAEModel itself shuffles the patches at every call.
    replace(VIT, model_type="vit_mae", model="ViTModel", unused=(r"^decoder\.",), family="MAE"),
    replace(
        _BEIT_NETWORK,
        model="BeitForMaskedImageModeling",
        is_named=True,
        body="beit",
        blocks="beit.layers",
        unused=(),
    ),
    _BEIT_NETWORK,
    replace(
        _BEIT_NETWORK,
        model_type="data2vec-vision",
        blocks="encoder.layer",
        unused=(),
        parts=replace(
            _BEIT_PARTS,
            mlp="output",
            query="attention.attention.query",
            key="attention.attention.key",
            value="attention.attention.value",
            heads="attention.output.dense",
            hidden=("output.dense",),
            gives_probabilities=False,
        ),
        family="other",
    ),
    replace(VIT, model_type="ijepa", prefix_tokens=0),
    Architecture(
        model_type="capi",
        model="CapiModel",
        blocks="layers",
        final_norm="norm",
        parts=replace(DINOV2_PARTS, rotary=True),
        family="CAPI",
    ),
    replace(
        HIERARCHY,
        model_type="hiera",
        blocks="encoder.stages.*.layers",
        final_norm=None,
        layout="units",
        family="Hiera",
    ),
    replace(VIT, model_type="pixio", family="Pixio"),
    Architecture(
        model_type="vjepa2",
        body="encoder",
        blocks="encoder.layer",
        final_norm="encoder.layernorm",
        prefix_tokens=0,
        unused=(r"^predictor\.",),
        family="V-JEPA",
    ),
)
