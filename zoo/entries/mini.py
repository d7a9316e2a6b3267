"""The mini suites: one small backbone per family for 64 px images, variants, and the random floor.

Trained weights come with the package, each with a card that tells how they were made (`workshop.training`);
those of untrained networks are generated from a seed.
"""

from dataclasses import replace

from layerboard.zoo.entries.family import FAMILY, NetworkSize, entry, normalised
from layerboard.zoo.entries.teachers import floor, raw_pixels
from layerboard.zoo.spec import CLIP, HALF, UNTRAINED, BackboneSpec, Retraining
from layerboard.zoo.spec.origin import GENERATED, PACKAGED
from layerboard.zoo.spec.seen import NOTHING

SIDE = 64
PATCH = 8
_MINI = NetworkSize((12,), (96,), 3)
_NARROW = NetworkSize((12,), (64,), 4)
_LABELS = "labels (24 classes)"

_ALONE = replace(
    FAMILY,
    supervision="images alone",
    data="rendered images",
    seen=NOTHING,
    repository="layerboard.mini.checkpoints:packaged",
    origin=PACKAGED,
    input_size=SIDE,
)
_LABELLED = replace(
    normalised(_ALONE, HALF),
    family="FS",
    supervision=_LABELS,
    paper="Dosovitskiy et al., ICLR 2021, arXiv:2010.11929",
)
_TEXTS = replace(
    normalised(_ALONE, CLIP),
    family="CLIP",
    supervision="image-text pairs",
    paper="Radford et al., ICML 2021, arXiv:2103.00020",
    model_types=("clip_vision_model",),
)
_DINO = replace(_ALONE, family="DINO", paper="Caron et al., ICCV 2021, arXiv:2104.14294")
_MOCO = replace(_ALONE, family="MoCo", paper="Chen et al., ICCV 2021, arXiv:2104.02057")
_MAE = replace(_ALONE, family="MAE", paper="He et al., CVPR 2022, arXiv:2111.06377")
_MASKED = replace(
    normalised(_ALONE, HALF),
    family="BEiT",
    paper="Bao et al., ICLR 2022, arXiv:2106.08254",
    model_types=("beit",),
)
_CONVOLUTIONAL = replace(
    _ALONE,
    family="ResNet",
    supervision=_LABELS,
    paper="He et al., CVPR 2016, arXiv:1512.03385",
    model_types=("resnet",),
    prefix_tokens=0,
    has_final=False,
    stem_width=32,
)
_FS = entry(_LABELLED, "mini-fs", "", _MINI, PATCH, 1_367_136)
_CLIP = entry(_TEXTS, "mini-clip", "", _MINI, PATCH, 1_367_232)
_BEIT = entry(_MASKED, "mini-beit", "", _MINI, PATCH, 1_362_828)
_RESNET = entry(_CONVOLUTIONAL, "mini-resnet", "", NetworkSize((4, 4, 4), (64, 128, 256)), 4, 408_864)
# The network on which variants of one training are compared: narrower, so that all fit into the package.
_FS64 = entry(_LABELLED, "mini-fs64", "", _NARROW, PATCH, 616_512)


def _again(name: str, change: str, without_skips: int = 0) -> BackboneSpec:
    """Another training of `_FS64`."""
    again = Retraining(_FS64.name, change, without_skips)
    return replace(_FS64, name=f"{_FS64.name}-{name}", supervision=f"{_LABELS}, {change}", retrained=again)


ENTRIES: tuple[BackboneSpec, ...] = (
    _FS,
    _CLIP,
    entry(_DINO, "mini-dino", "", _MINI, PATCH, 1_367_136),
    entry(_MOCO, "mini-moco", "", _MINI, PATCH, 1_367_136),
    entry(_MAE, "mini-mae", "", _MINI, PATCH, 1_367_136),
    _BEIT,
    _RESNET,
    _FS64,
    _again("seed1", "another seed"),
    _again("mean", "class from the mean token"),
    *(_again(f"noskip{block}", f"block {block} without skips", block) for block in (6, 10)),
    *(
        replace(
            _again(f"{share}pct", f"{share} % of the data"),
            supervision=_LABELS,
            data=f"{share} % of the rendered images",
        )
        for share in (30, 10, 3)
    ),
    *(  # with weights from a seed
        replace(
            spec,
            name=f"{spec.name}-untrained",
            supervision="none",
            data="none",
            repository="layerboard.mini.checkpoints:generated",
            origin=GENERATED,
            paper="",
            trained=False,
            retrained=Retraining(spec.name, UNTRAINED),
        )
        for spec in (_FS, _FS64, _CLIP, _BEIT, _RESNET)
    ),
    floor("mini-random", 96, PATCH, SIDE),
    raw_pixels("mini-pixels", PATCH, SIDE),
)
