"""BEiT: masked image modelling with visual tokens, pre-trained on ImageNet-22k without labels (``pt22k``)."""

from zoo.entries.shapes import BASE, LARGE, ViTFamily
from zoo.normalisation import HALF
from zoo.spec import BackboneSpec

_BEIT = ViTFamily(
    family="BEiT",
    supervision="images of ImageNet-22k",
    normalisation=HALF,
    licence="Apache-2.0",
    paper="Bao et al., BEiT: BERT Pre-Training of Image Transformers, ICLR 2022, arXiv:2106.08254",
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _BEIT.entry("beit-b16", "microsoft/beit-base-patch16-224-pt22k", BASE, 16),
    _BEIT.entry("beit-l16", "microsoft/beit-large-patch16-224-pt22k", LARGE, 16),
)
