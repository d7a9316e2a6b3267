"""Other networks that learned from images alone: data2vec, I-JEPA, iBOT and MSN.

data2vec's configuration says that its norm comes last and is over all tokens (no mean pooling), as its
conversion script in transformers has it. Images of data2vec and I-JEPA are normalised as in the authors' own
training, with ImageNet's mean and std (data2vec trains with ``--imagenet_default_mean_and_std``); the
preprocessors of the repositories have 0.5. iBOT's files are the teachers', under timm's names, and in no
repository.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, HUGE, LARGE, SMALL, ViTFamily, ViTSize
from zoo.seen import IMAGENET_1K, IMAGENET_21K
from zoo.spec import IMAGENET, BackboneSpec

_DATA2VEC = ViTFamily(
    family="data2vec",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    # What they were trained with; the preprocessor of the repositories has 0.5.
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Baevski et al., data2vec: A General Framework for Self-supervised Learning in Speech, Vision and "
    "Language, ICML 2022, arXiv:2202.03555",
    model_types=("data2vec-vision",),
)
_IJEPA = ViTFamily(
    family="I-JEPA",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,
    licence="CC-BY-NC-4.0",
    paper="Assran et al., Self-Supervised Learning from Images with a Joint-Embedding Predictive "
    "Architecture, CVPR 2023, arXiv:2301.08243",
    model_types=("ijepa",),
    prefix_tokens=0,
    has_cls=False,
)
_IJEPA_22K = replace(_IJEPA, supervision="images of ImageNet-22k", data="ImageNet-22k", seen=IMAGENET_21K)
_IBOT = ViTFamily(
    family="iBOT",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,
    licence="Apache-2.0",
    paper="Zhou et al., iBOT: Image BERT Pre-Training with Online Tokenizer, ICLR 2022, arXiv:2111.07832",
    checkpoint="original",
    interpolation="dino",  # models/vision_transformer.py of the authors is DINO's
    sized=True,
)
_MSN = ViTFamily(
    family="MSN",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,
    licence="Apache-2.0 (original files: CC-BY-NC-4.0)",
    paper="Assran et al., Masked Siamese Networks for Label-Efficient Learning, ECCV 2022, arXiv:2204.07141",
    # src/deit.py of the authors: one factor for both sides and no offset; for squares the same.
    interpolation="huggingface",
    model_types=("vit_msn",),
)
_IBOT_FILES = "https://lf3-nlp-opensource.bytetos.com/obj/nlp-opensource/archive/2022/ibot"
_GIANT = ViTSize(40, 1408, 16, mlp=6144)

ENTRIES: tuple[BackboneSpec, ...] = (
    _DATA2VEC.entry("data2vec-b16", "facebook/data2vec-vision-base", BASE, 16, 85_665_360),
    _DATA2VEC.entry("data2vec-l16", "facebook/data2vec-vision-large", LARGE, 16, 303_136_192),
    _IJEPA.entry("ijepa-h14", "facebook/ijepa_vith14_1k", HUGE, 14, 630_762_240),
    _IJEPA_22K.entry("ijepa-h14-22k", "facebook/ijepa_vith14_22k", HUGE, 14, 630_762_240),
    _IJEPA_22K.entry("ijepa-g16-22k", "facebook/ijepa_vitg16_22k", _GIANT, 16, 1_011_368_576),
    replace(
        _IBOT.entry("ibot-s16", "", SMALL, 16, 21_665_664),
        original=f"{_IBOT_FILES}/vits_16/checkpoint_teacher.pth",
    ),
    replace(
        _IBOT.entry("ibot-b16", "", BASE, 16, 85_798_656),
        original=f"{_IBOT_FILES}/vitb_16/checkpoint_teacher.pth",
    ),
    _MSN.entry("msn-s16", "facebook/vit-msn-small", SMALL, 16, 21_665_664),
    _MSN.entry("msn-b16", "facebook/vit-msn-base", BASE, 16, 85_798_656),
    _MSN.entry("msn-l16", "facebook/vit-msn-large", LARGE, 16, 303_301_632),
)
