"""Hiera: plain attention in stages, inside mask units of 32 px first; masked autoencoders on ImageNet-1k.

Tokens are kept unit by unit; their grids are put back into rows and columns. Before all stages but the first
four tokens become one, their maximum, so that sides must be multiples of 32 px. In the pre-training the last
stage was not pooled (``hiera_mae.py`` of the authors, q_pool 2). It is here, as in the authors' own model of
these checkpoints and in their repositories without ``-mae``, so that its blocks see a coarser grid than they
learned on. The norm comes after the mean over tokens, as in BEiT's classifiers, so that no layer is behind
it; in the files that were not fine-tuned it is untrained.

The authors' code takes 224 px only. At other sizes positions are resized bicubically, as transformers does
it; Bolya et al., Window Attention is Bugged, ICLR 2024, arXiv:2311.05613, found that this hurts, since the
table repeats from unit to unit. Attention heads are those of the last stage.
"""

from dataclasses import replace

from zoo.entries.shapes import PyramidFamily
from zoo.seen import IMAGENET_1K, IMAGENET_1K_LABELS
from zoo.spec import IMAGENET, BackboneSpec

_MAE = PyramidFamily(
    family="Hiera",
    supervision="images of ImageNet-1k",
    data="ImageNet-1k",
    seen=IMAGENET_1K,
    normalisation=IMAGENET,
    licence="CC-BY-NC-4.0",  # LICENSE.models of the authors; their code alone is Apache-2.0
    paper="Ryali et al., Hiera: A Hierarchical Vision Transformer without the Bells-and-Whistles, ICML 2023, "
    "arXiv:2306.00989",
    has_final=False,
    model_types=("hiera",),
)
_TUNED = replace(_MAE, supervision="images, then labels of ImageNet-1k", seen=IMAGENET_1K_LABELS)
_T = (96, 192, 384, 768)
_B_PLUS = (112, 224, 448, 896)
_L = (144, 288, 576, 1152)
_H = (256, 512, 1024, 2048)
_BLOCKS = {"t": (1, 2, 7, 2), "s": (1, 2, 11, 2), "b": (2, 3, 16, 3), "l": (2, 6, 36, 4)}

ENTRIES: tuple[BackboneSpec, ...] = (
    _MAE.entry("hiera-t", "facebook/hiera-tiny-224-hf", _BLOCKS["t"], _T, 27_139_680, heads=8),
    _MAE.entry("hiera-s", "facebook/hiera-small-224-hf", _BLOCKS["s"], _T, 34_237_536, heads=8),
    _MAE.entry("hiera-b", "facebook/hiera-base-224-hf", _BLOCKS["b"], _T, 50_754_432, heads=8),
    _MAE.entry("hiera-bplus", "facebook/hiera-base-plus-224-hf", _BLOCKS["b"], _B_PLUS, 68_997_824, heads=16),
    _MAE.entry("hiera-l", "facebook/hiera-large-224-hf", _BLOCKS["l"], _L, 212_584_608, heads=16),
    _MAE.entry("hiera-h", "facebook/hiera-huge-224-hf", _BLOCKS["l"], _H, 670_726_656, heads=32),
    _TUNED.entry("hiera-t-ft1k", "facebook/hiera-tiny-224-in1k-hf", _BLOCKS["t"], _T, 27_139_680, heads=8),
    _TUNED.entry("hiera-b-ft1k", "facebook/hiera-base-224-in1k-hf", _BLOCKS["b"], _T, 50_754_432, heads=8),
    _TUNED.entry(
        "hiera-bplus-ft1k",
        "facebook/hiera-base-plus-224-in1k-hf",
        _BLOCKS["b"],
        _B_PLUS,
        68_997_824,
        heads=16,
    ),
    _TUNED.entry("hiera-l-ft1k", "facebook/hiera-large-224-in1k-hf", _BLOCKS["l"], _L, 212_584_608, heads=16),
)
