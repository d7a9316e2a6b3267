"""Networks that predict what is masked: MAE, BEiT, data2vec, I-JEPA, CAPI, Hiera, Pixio, V-JEPA."""

from dataclasses import replace

from zoo.architecture import Architecture, AuthorsNames, affine
from zoo.entries.distilled import DINOV2_PARTS
from zoo.entries.family import BASE, HUGE, LARGE, WIDTHS_T, Family, ViTSize
from zoo.entries.supervised import HIERARCHY, VIT, VIT_NAMES, VIT_PARTS
from zoo.seen import (
    IMAGENET_1K,
    IMAGENET_1K_LABELS,
    IMAGENET_21K,
    IMAGENET_21K_LABELS,
    LVD_142M,
    PLACES,
    VIDEOMIX,
    WEB,
)
from zoo.spec import HALF, IMAGENET, BackboneSpec

# MAE: masked autoencoders on ImageNet-1k; the encoder only, no token masked.
_MAE = Family(
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

# BEiT: visual tokens, pre-trained on ImageNet-22k without labels (``pt22k``). One more entry has seen labels
# since: fine-tuned on ImageNet-22k, then on ImageNet-1k. It averages patch tokens before its last norm, so it
# has no norm over all tokens.
_BEIT = Family(
    family="BEiT",
    supervision="images of ImageNet-22k",
    data="ImageNet-22k",
    seen=replace(IMAGENET_21K, listed=False),  # Its tokenizer is DALL-E's, trained on images of the web.
    normalisation=HALF,
    licence="Apache-2.0",
    paper="Bao et al., BEiT: BERT Pre-Training of Image Transformers, ICLR 2022, arXiv:2106.08254",
    model_types=("beit",),
    sized=True,
)
_BEIT_TUNED = replace(
    _BEIT,
    supervision="images, then labels of ImageNet-22k and ImageNet-1k",
    data="ImageNet-22k, ImageNet-1k",
    seen=replace(IMAGENET_21K_LABELS, listed=False),
    has_final=False,
)
_BEIT_PARTS = replace(VIT_PARTS, attention_scale="lambda_1", mlp_scale="lambda_2")
_BEIT_NETWORK = Architecture(
    model_type="beit",
    model="BeitModel",
    blocks="layers",
    final_norm="layernorm",
    mean_pooled=True,
    pooling_option=True,
    unused=(r"^layernorm\.",),
    parts=_BEIT_PARTS,
    family="BEiT",
    normalisation=HALF,
)
BEIT_FINAL = affine({"norm": "layernorm"})
BEIT_NAMES = AuthorsNames(
    layout="BEiT",
    fixed={name: new for name, new in VIT_NAMES.fixed.items() if name not in ("pos_embed", *BEIT_FINAL)},
    block={
        **{name: new for name, new in VIT_NAMES.block.items() if not name.startswith("attn.qkv")},
        "attn.qkv.weight": tuple(f"attention.{part}_proj.weight" for part in "qkv"),
        "attn.q_bias": "attention.q_proj.bias",
        "attn.v_bias": "attention.v_proj.bias",
        "gamma_1": "lambda_1",
        "gamma_2": "lambda_2",
    },
    old_block="blocks.{}.",
    new_block="layers.{}.",
    unused=(r"^(head|lm_head|fc_norm)\.", r"^mask_token$", r"relative_position_index$"),
    patches="patch_embed.proj.weight",
    hidden="mlp.fc1.weight",
)

# data2vec's configuration says that its norm comes last and is over all tokens (no mean pooling), as its
# conversion script in transformers has it. Images of data2vec and I-JEPA are normalised as in the authors'
# own training, with ImageNet's mean and std (data2vec trains with ``--imagenet_default_mean_and_std``); the
# preprocessors of the repositories have 0.5.
_DATA2VEC = replace(
    _MAE,
    family="data2vec",
    licence="Apache-2.0",
    paper="Baevski et al., data2vec: A General Framework for Self-supervised Learning in Speech, Vision and "
    "Language, ICML 2022, arXiv:2202.03555",
    model_types=("data2vec-vision",),
    sized=False,
)
_IJEPA = replace(
    _DATA2VEC,
    family="I-JEPA",
    licence="CC-BY-NC-4.0",
    paper="Assran et al., Self-Supervised Learning from Images with a Joint-Embedding Predictive "
    "Architecture, CVPR 2023, arXiv:2301.08243",
    model_types=("ijepa",),
    prefix_tokens=0,
    has_cls=False,
)
_IJEPA_22K = replace(_IJEPA, supervision="images of ImageNet-22k", data="ImageNet-22k", seen=IMAGENET_21K)
_IJEPA_G = ViTSize(40, 1408, 16, mlp=6144)

# CAPI: predicts clusters of the teacher's patches. No class token: sixteen registers, which are placed along
# the edge of the image, precede the patches. Positions are rotary and go from 0 to 1 at any size. The last
# norm has no weights. The decoder, with which the authors pool, is left out.
_CAPI = Family(
    family="CAPI",
    supervision="images alone",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,  # IMAGENET_NORM in train_capi.py
    licence="Apache-2.0",
    paper="Darcet et al., Cluster and Predict Latent Patches for Improved Masked Image Modeling, 2025, "
    "arXiv:2502.08769",
    checkpoint="original",
    files="https://dl.fbaipublicfiles.com/capi/{0}",
    model_types=("capi",),
    prefix_tokens=16,
    has_cls=False,
)
_CAPI_22K = replace(_CAPI, data="ImageNet-22k", seen=IMAGENET_21K)
_CAPI_LVD = replace(_CAPI, data="LVD-142M", seen=LVD_142M)
_CAPI_PLACES = replace(_CAPI, data="Places205", seen=PLACES)
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
_HIERA = replace(
    _MAE,
    family="Hiera",
    licence="CC-BY-NC-4.0",  # LICENSE.models of the authors; their code alone is Apache-2.0
    paper="Ryali et al., Hiera: A Hierarchical Vision Transformer without the Bells-and-Whistles, ICML 2023, "
    "arXiv:2306.00989",
    has_final=False,
    model_types=("hiera",),
    sized=False,
)
_HIERA_FT = replace(_HIERA, supervision="images, then labels of ImageNet-1k", seen=IMAGENET_1K_LABELS)
_TINY, _SMALL, _BASE, _LARGE = (1, 2, 7, 2), (1, 2, 11, 2), (2, 3, 16, 3), (2, 6, 36, 4)
_WIDTHS_PLUS = (112, 224, 448, 896)
_WIDTHS_LARGE = (144, 288, 576, 1152)
_WIDTHS_HUGE = (256, 512, 1024, 2048)

# Pixio: masked autoencoders with a deeper decoder and larger masks, on images of the web. Eight class tokens
# precede the patches: the first is read, where the authors take the mean of all. B, L, H and 1B are distilled
# from 5B. All repositories are gated; their authors' numbers of weights are those here.
_PIXIO = Family(
    family="Pixio",
    supervision="images alone",
    data="MetaCLIP-2B, without its texts",
    seen=WEB,
    normalisation=IMAGENET,
    licence="FAIR Noncommercial Research License",
    gated=True,
    paper="Yang et al., In Pursuit of Pixel Supervision for Visual Pre-training, 2025, arXiv:2512.15715",
    interpolation="huggingface",  # pixio.py of the authors: bicubic, size given, not antialiased
    model_types=("pixio",),
    prefix_tokens=8,
    input_size=256,
    sized=True,
)

# V-JEPA 2: joint-embedding prediction on videos; an image is shown as two equal frames, one patch deep.
# Positions are rotary, so that any size works; evaluated at the 256 px (or 384 px) of the training. There is
# no class token. Queries and keys are rotated inside the attention, so that nothing inside blocks is shown.
_VJEPA_L = Family(
    family="V-JEPA",
    supervision="videos and images alone",
    data="VideoMix22M: videos of the web, ImageNet-1k",
    seen=VIDEOMIX,
    normalisation=IMAGENET,
    licence="MIT",
    paper="Assran et al., V-JEPA 2: Self-Supervised Video Models Enable Understanding, Prediction and "
    "Planning, 2025, arXiv:2506.09985",
    model_types=("vjepa2",),
    prefix_tokens=0,
    has_cls=False,
    input_size=256,
    sized=True,
)
_VJEPA = replace(_VJEPA_L, licence="Apache-2.0")
_VJEPA_G = ViTSize(40, 1408, 22, mlp=6144)

ARCHITECTURES: tuple[Architecture, ...] = (
    replace(VIT, model_type="vit_mae", unused=(r"^decoder\.",), family="MAE"),
    replace(
        _BEIT_NETWORK,
        model="BeitForMaskedImageModeling",
        checkpoint_class="BeitForMaskedImageModeling",
        body="beit",
        blocks="beit.layers",
        mean_pooled=False,
        pooling_option=False,
        unused=(),
    ),
    _BEIT_NETWORK,
    replace(
        _BEIT_NETWORK,
        model_type="data2vec-vision",
        model="Data2VecVisionModel",
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
    replace(VIT, model_type="ijepa", model="IJepaModel", prefix_tokens=0, has_cls=False),
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
        model="HieraModel",
        blocks="encoder.stages.*.layers",
        final_norm=None,
        layout="units",
        family="Hiera",
    ),
    replace(
        VIT, model_type="pixio", model="PixioModel", interpolates=False, pooling_option=False, family="Pixio"
    ),
    Architecture(
        model_type="vjepa2",
        model="VJEPA2Model",
        body="encoder",
        blocks="encoder.layer",
        final_norm="encoder.layernorm",
        prefix_tokens=0,
        has_cls=False,
        unused=(r"^predictor\.",),
        family="V-JEPA",
    ),
)
_HIERA_HUB = "facebook/hiera-{}-hf".format
ENTRIES: tuple[BackboneSpec, ...] = (
    _MAE.vit("mae-b16", "facebook/vit-mae-base", BASE, 16, 85_798_656),
    _MAE.vit("mae-l16", "facebook/vit-mae-large", LARGE, 16, 303_301_632),
    _MAE.vit("mae-h14", "facebook/vit-mae-huge", HUGE, 14, 630_764_800),
    _BEIT.vit("beit-b16", "microsoft/beit-base-patch16-224-pt22k", BASE, 16, 85_666_128),
    _BEIT.vit("beit-l16", "microsoft/beit-large-patch16-224-pt22k", LARGE, 16, 303_137_216),
    _BEIT_TUNED.vit("beit-b16-ft22k-ft1k", "microsoft/beit-base-patch16-224", BASE, 16, 85_760_448),
    _DATA2VEC.vit("data2vec-b16", "facebook/data2vec-vision-base", BASE, 16, 85_665_360),
    _DATA2VEC.vit("data2vec-l16", "facebook/data2vec-vision-large", LARGE, 16, 303_136_192),
    _IJEPA.vit("ijepa-h14", "facebook/ijepa_vith14_1k", HUGE, 14, 630_762_240),
    _IJEPA_22K.vit("ijepa-h14-22k", "facebook/ijepa_vith14_22k", HUGE, 14, 630_762_240),
    _IJEPA_22K.vit("ijepa-g16-22k", "facebook/ijepa_vitg16_22k", _IJEPA_G, 16, 1_011_368_576),
    _CAPI.vit("capi-l14-in1k", "capi_vitl14_in1k.pth", LARGE, 14, 302_658_560),
    _CAPI_22K.vit("capi-l14-in22k", "capi_vitl14_i22k.pth", LARGE, 14, 302_658_560),
    _CAPI_LVD.vit("capi-l14-lvd142m", "capi_vitl14_lvd.pth", LARGE, 14, 302_658_560),
    _CAPI_PLACES.vit("capi-l14-places205", "capi_vitl14_p205.pth", LARGE, 14, 302_658_560),
    _HIERA.pyramid("hiera-t", _HIERA_HUB("tiny-224"), _TINY, WIDTHS_T, 27_139_680, 8),
    _HIERA.pyramid("hiera-s", _HIERA_HUB("small-224"), _SMALL, WIDTHS_T, 34_237_536, 8),
    _HIERA.pyramid("hiera-b", _HIERA_HUB("base-224"), _BASE, WIDTHS_T, 50_754_432, 8),
    _HIERA.pyramid("hiera-bplus", _HIERA_HUB("base-plus-224"), _BASE, _WIDTHS_PLUS, 68_997_824, 16),
    _HIERA.pyramid("hiera-l", _HIERA_HUB("large-224"), _LARGE, _WIDTHS_LARGE, 212_584_608, 16),
    _HIERA.pyramid("hiera-h", _HIERA_HUB("huge-224"), _LARGE, _WIDTHS_HUGE, 670_726_656, 32),
    _HIERA_FT.pyramid("hiera-t-ft1k", _HIERA_HUB("tiny-224-in1k"), _TINY, WIDTHS_T, 27_139_680, 8),
    _HIERA_FT.pyramid("hiera-b-ft1k", _HIERA_HUB("base-224-in1k"), _BASE, WIDTHS_T, 50_754_432, 8),
    _HIERA_FT.pyramid(
        "hiera-bplus-ft1k", _HIERA_HUB("base-plus-224-in1k"), _BASE, _WIDTHS_PLUS, 68_997_824, 16
    ),
    _HIERA_FT.pyramid("hiera-l-ft1k", _HIERA_HUB("large-224-in1k"), _LARGE, _WIDTHS_LARGE, 212_584_608, 16),
    _PIXIO.vit("pixio-b16", "facebook/pixio-vitb16", BASE, 16, 85_855_488),
    _PIXIO.vit("pixio-l16", "facebook/pixio-vitl16", LARGE, 16, 303_377_408),
    _PIXIO.vit("pixio-h16", "facebook/pixio-vith16", HUGE, 16, 631_013_120),
    _PIXIO.vit("pixio-1b16", "facebook/pixio-vit1b16", ViTSize(48, 1536, 24), 16, 1_361_515_008),
    _PIXIO.vit("pixio-5b16", "facebook/pixio-vit5b16", ViTSize(48, 3072, 32), 16, 5_440_939_008),
    _VJEPA_L.vit("vjepa2-l16", "facebook/vjepa2-vitl-fpc64-256", LARGE, 16, 303_885_312),
    _VJEPA.vit("vjepa2-h16", "facebook/vjepa2-vith-fpc64-256", HUGE, 16, 631_648_000),
    _VJEPA.vit("vjepa2-g16", "facebook/vjepa2-vitg-fpc64-256", _VJEPA_G, 16, 1_012_173_952),
    replace(_VJEPA, input_size=384).vit(
        "vjepa2-g16-384", "facebook/vjepa2-vitg-fpc64-384", _VJEPA_G, 16, 1_012_173_952
    ),
)
