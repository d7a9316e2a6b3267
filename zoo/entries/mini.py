"""The mini suites: one small backbone per family for 64 px images, variants, and the random floor.

Trained weights come with the package, each with a card that says how they were made (`mini.training`); those
of the untrained networks come from a seed.
"""

from dataclasses import replace

from zoo.entries.family import ViTSize
from zoo.entries.teachers import floor
from zoo.seen import NOTHING
from zoo.spec import CLIP, HALF, IMAGENET, BackboneSpec, Normalisation, Stage

SIDE = 64
PATCH = 8
MINI = ViTSize(12, 96, 3)
MINI_NARROW = ViTSize(12, 64, 4)
_LABELS = "labels (24 classes)"
_ALONE = "images alone"
_TYPES = {"CLIP": ("clip_vision_model",), "BEiT": ("beit",)}


def _vit(
    family: str, supervision: str, normalisation: Normalisation, paper: str, parameters: int = 1_367_136
) -> BackboneSpec:
    return BackboneSpec(
        name=f"mini-{family.lower()}",
        family=family,
        supervision=supervision,
        data="rendered images",
        seen=NOTHING,
        parameters=parameters,
        repository="mini.checkpoints:packaged",
        checkpoint="packaged",
        model_types=_TYPES.get(family, ("vit",)),
        stages=MINI.stages(PATCH),
        heads=MINI.heads,
        prefix_tokens=1,
        has_cls=True,
        has_final=True,
        input_size=SIDE,
        mean=normalisation.mean,
        std=normalisation.std,
        licence="Apache-2.0",
        paper=paper,
    )


_FS = _vit("FS", _LABELS, HALF, "Dosovitskiy et al., ICLR 2021, arXiv:2010.11929")
_CLIP = _vit("CLIP", "image-text pairs", CLIP, "Radford et al., ICML 2021, arXiv:2103.00020", 1_367_232)
_DINO = _vit("DINO", _ALONE, IMAGENET, "Caron et al., ICCV 2021, arXiv:2104.14294")
_MOCO = _vit("MoCo", _ALONE, IMAGENET, "Chen et al., ICCV 2021, arXiv:2104.02057")
_MAE = _vit("MAE", _ALONE, IMAGENET, "He et al., CVPR 2022, arXiv:2111.06377")
_BEIT = _vit("BEiT", _ALONE, HALF, "Bao et al., ICLR 2022, arXiv:2106.08254", 1_362_828)
_RESNET = BackboneSpec(
    name="mini-resnet",
    family="ResNet",
    supervision=_LABELS,
    data="rendered images",
    seen=NOTHING,
    parameters=408_864,
    repository="mini.checkpoints:packaged",
    checkpoint="packaged",
    model_types=("resnet",),
    stages=(Stage(4, 64, 4), Stage(4, 128, 8), Stage(4, 256, 16)),
    heads=None,
    prefix_tokens=0,
    has_cls=False,
    has_final=False,
    stem_width=32,
    input_size=SIDE,
    mean=IMAGENET.mean,
    std=IMAGENET.std,
    licence="Apache-2.0",
    paper="He et al., CVPR 2016, arXiv:1512.03385",
)


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
    """The same network with weights from a seed."""
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
