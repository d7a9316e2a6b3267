"""MAE: masked autoencoders on ImageNet-1k; the encoder only, no token masked."""

from zoo.entries.shapes import BASE, HUGE, LARGE, Shape
from zoo.normalisation import IMAGENET
from zoo.spec import BackboneSpec


def _spec(name: str, repository: str, shape: Shape, patch: int) -> BackboneSpec:
    return BackboneSpec(
        name=name,
        family="MAE",
        supervision="images of ImageNet-1k",
        repository=repository,
        stages=shape.stages(patch),
        heads=shape.heads,
        prefix_tokens=1,
        has_cls=True,
        has_final=True,
        mean=IMAGENET.mean,
        std=IMAGENET.std,
        licence="Apache-2.0 (original files: CC-BY-NC-4.0)",
        paper="He et al., Masked Autoencoders Are Scalable Vision Learners, CVPR 2022, arXiv:2111.06377",
    )


ENTRIES: tuple[BackboneSpec, ...] = (
    _spec("mae-b16", "facebook/vit-mae-base", BASE, 16),
    _spec("mae-l16", "facebook/vit-mae-large", LARGE, 16),
    _spec("mae-h14", "facebook/vit-mae-huge", HUGE, 14),
)
