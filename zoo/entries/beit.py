"""BEiT: masked image modelling with visual tokens, pre-trained on ImageNet-22k without labels (``pt22k``).

One more entry has seen labels since: fine-tuned on ImageNet-22k, then on ImageNet-1k. It averages patch
tokens before its last norm, so it has no norm over all tokens.
"""

from dataclasses import replace

from zoo.entries.shapes import BASE, LARGE, ViTFamily
from zoo.seen import IMAGENET_21K, IMAGENET_21K_LABELS
from zoo.spec import HALF, BackboneSpec

_BEIT = ViTFamily(
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
_FINE_TUNED = replace(
    _BEIT,
    supervision="images, then labels of ImageNet-22k and ImageNet-1k",
    data="ImageNet-22k, ImageNet-1k",
    seen=replace(IMAGENET_21K_LABELS, listed=False),
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _BEIT.entry("beit-b16", "microsoft/beit-base-patch16-224-pt22k", BASE, 16, 85_666_128),
    _BEIT.entry("beit-l16", "microsoft/beit-large-patch16-224-pt22k", LARGE, 16, 303_137_216),
    replace(
        _FINE_TUNED.entry("beit-b16-ft22k-ft1k", "microsoft/beit-base-patch16-224", BASE, 16, 85_760_448),
        has_final=False,
    ),
)
