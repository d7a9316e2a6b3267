"""The mini suites: one small backbone per family for 64 px images, variants, and the random floor.

Trained weights come with the package, each with a card that says how they were made (`mini.training`); those
of the untrained networks come from a seed.
"""

from dataclasses import replace

from zoo.entries.family import Family, ViTSize
from zoo.entries.teachers import floor
from zoo.seen import NOTHING
from zoo.spec import CLIP, HALF, IMAGENET, BackboneSpec

SIDE = 64
PATCH = 8
MINI = ViTSize(12, 96, 3)
MINI_NARROW = ViTSize(12, 64, 4)
_LABELS = "labels (24 classes)"
_PACKAGED = "mini.checkpoints:packaged"

_FAMILY = Family(
    family="FS",
    supervision=_LABELS,
    data="rendered images",
    seen=NOTHING,
    normalisation=HALF,
    licence="Apache-2.0",
    paper="Dosovitskiy et al., ICLR 2021, arXiv:2010.11929",
    checkpoint="packaged",
    input_size=SIDE,
)


def _vit(family: Family, parameters: int = 1_367_136) -> BackboneSpec:
    return family.vit(f"mini-{family.family.lower()}", _PACKAGED, MINI, PATCH, parameters)


_TEXTS = replace(_FAMILY, supervision="image-text pairs", normalisation=CLIP)
_ALONE = replace(_FAMILY, supervision="images alone", normalisation=IMAGENET)
_FS = _vit(_FAMILY)
_CLIP = _vit(
    replace(
        _TEXTS,
        family="CLIP",
        paper="Radford et al., ICML 2021, arXiv:2103.00020",
        model_types=("clip_vision_model",),
    ),
    1_367_232,
)
_DINO = _vit(replace(_ALONE, family="DINO", paper="Caron et al., ICCV 2021, arXiv:2104.14294"))
_MOCO = _vit(replace(_ALONE, family="MoCo", paper="Chen et al., ICCV 2021, arXiv:2104.02057"))
_MAE = _vit(replace(_ALONE, family="MAE", paper="He et al., CVPR 2022, arXiv:2111.06377"))
_BEIT = _vit(
    replace(
        _ALONE,
        family="BEiT",
        normalisation=HALF,
        paper="Bao et al., ICLR 2022, arXiv:2106.08254",
        model_types=("beit",),
    ),
    1_362_828,
)
_RESNET = replace(
    _FAMILY,
    family="ResNet",
    normalisation=IMAGENET,
    paper="He et al., CVPR 2016, arXiv:1512.03385",
    model_types=("resnet",),
    has_final=False,
    stem_width=32,
).pyramid("mini-resnet", _PACKAGED, (4, 4, 4), (64, 128, 256), 408_864)

_FS64 = replace(
    _FS, name="mini-fs64", stages=MINI_NARROW.stages(PATCH), heads=MINI_NARROW.heads, parameters=616_512
)
"""The network that variants of one training are compared on: narrower, so that all fit the package."""

_VARIANTS = (
    _FS64,
    replace(_FS64, name="mini-fs64-seed1", supervision=f"{_LABELS}, another seed"),
    replace(_FS64, name="mini-fs64-mean", supervision=f"{_LABELS}, by the mean of the patch tokens"),
    replace(_FS64, name="mini-fs64-noskip6", supervision=f"{_LABELS}, block 6 without skips"),
    replace(_FS64, name="mini-fs64-10pct", data="10 % of the rendered images"),
)


def _untrained(spec: BackboneSpec) -> BackboneSpec:
    """A network of that spec with weights from a seed."""
    return replace(
        spec,
        name=f"{spec.name}-untrained",
        supervision="none",
        data="none",
        repository="mini.checkpoints:generated",
        checkpoint="generated",
        paper="",
        trained=False,
    )


ENTRIES: tuple[BackboneSpec, ...] = (
    *(_FS, _CLIP, _DINO, _MOCO, _MAE, _BEIT, _RESNET),
    *_VARIANTS,
    *(_untrained(spec) for spec in (_FS, _FS64, _CLIP, _BEIT, _RESNET)),
    floor("mini-random", MINI.width, PATCH, SIDE),
)
