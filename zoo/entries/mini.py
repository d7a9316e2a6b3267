"""The mini suite: one small backbone per family for 64 px images, and their random floor.

Their weights come with the package where they have been trained, and from a seed where they have not.
"""

from zoo.entries.floor import floor
from zoo.entries.shapes import MINI
from zoo.normalisation import CLIP, HALF, IMAGENET, Normalisation
from zoo.spec import BackboneSpec, Family, Stage

SIDE = 64
PATCH = 8


def _vit(
    name: str, family: Family, normalisation: Normalisation, parameters: int = 1_367_136
) -> BackboneSpec:
    return BackboneSpec(
        name=name,
        family=family,
        supervision="none",
        data="none",
        parameters=parameters,
        repository="generated",
        checkpoint="generated",
        stages=MINI.stages(PATCH),
        heads=MINI.heads,
        prefix_tokens=1,
        has_cls=True,
        has_final=True,
        input_size=SIDE,
        mean=normalisation.mean,
        std=normalisation.std,
        licence="Apache-2.0",
        trained=False,
    )


_RESNET = BackboneSpec(
    name="mini-resnet",
    family="ResNet",
    supervision="none",
    data="none",
    parameters=408_864,
    repository="generated",
    checkpoint="generated",
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
    trained=False,
)

ENTRIES: tuple[BackboneSpec, ...] = (
    _vit("mini-fs", "FS", HALF),
    _vit("mini-clip", "CLIP", CLIP, 1_367_232),
    _vit("mini-dino", "DINO", IMAGENET),
    _vit("mini-moco", "MoCo", IMAGENET),
    _vit("mini-mae", "MAE", IMAGENET),
    _vit("mini-beit", "BEiT", HALF, 1_362_828),
    _RESNET,
    floor("mini-random", MINI.width, PATCH, SIDE),
)
