"""The random floor: Gaussian features that know nothing of the image but its identity; ten draws.

Its "blocks" are the draws: layers 1 to 10 are ten independent floors of the shape of a ViT-B/16.
"""

from zoo.seen import NOTHING
from zoo.spec import HALF, BackboneSpec, Stage

DRAWS = 10


def floor(name: str, width: int, patch: int, input_size: int) -> BackboneSpec:
    """The floor of a suite whose backbones have that width, patch size and input size in pixels."""
    return BackboneSpec(
        name=name,
        family="random",
        supervision="none",
        data="none",
        seen=NOTHING,
        parameters=0,
        repository="generated",
        checkpoint="generated",
        stages=(Stage(DRAWS, width, patch),),
        heads=None,
        prefix_tokens=1,
        has_cls=True,
        has_final=False,
        input_size=input_size,
        mean=HALF.mean,
        std=HALF.std,
        licence="none",
        paper="Walmer et al., Teaching Matters, CVPR 2023, arXiv:2212.03862",
        trained=False,
    )


ENTRIES: tuple[BackboneSpec, ...] = (floor("random", 768, 16, 224),)
