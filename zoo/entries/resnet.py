"""ResNet: bottleneck networks trained with labels of ImageNet-1k (v1.5: the 3x3 convolution strides)."""

from zoo.normalisation import IMAGENET
from zoo.spec import BackboneSpec, Stage


def _spec(name: str, repository: str, blocks: tuple[int, int, int, int]) -> BackboneSpec:
    widths, strides = (256, 512, 1024, 2048), (4, 8, 16, 32)
    return BackboneSpec(
        name=name,
        family="ResNet",
        supervision="labels of ImageNet-1k",
        repository=repository,
        stages=tuple(map(Stage, blocks, widths, strides)),
        heads=None,
        prefix_tokens=0,
        has_cls=False,
        has_final=False,
        stem_width=64,
        mean=IMAGENET.mean,
        std=IMAGENET.std,
        licence="Apache-2.0",
        paper="He et al., Deep Residual Learning for Image Recognition, CVPR 2016, arXiv:1512.03385",
    )


ENTRIES: tuple[BackboneSpec, ...] = (
    _spec("resnet50", "microsoft/resnet-50", (3, 4, 6, 3)),
    _spec("resnet101", "microsoft/resnet-101", (3, 4, 23, 3)),
    _spec("resnet152", "microsoft/resnet-152", (3, 8, 36, 3)),
)
