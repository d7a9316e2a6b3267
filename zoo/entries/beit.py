"""BEiT: masked image modelling with visual tokens, pre-trained on ImageNet-22k without labels (``pt22k``)."""

from zoo.entries.shapes import BASE, LARGE, Shape
from zoo.normalisation import HALF
from zoo.spec import BackboneSpec


def _spec(name: str, repository: str, shape: Shape, patch: int) -> BackboneSpec:
    return BackboneSpec(
        name=name,
        family="BEiT",
        supervision="images of ImageNet-22k",
        repository=repository,
        stages=shape.stages(patch),
        heads=shape.heads,
        prefix_tokens=1,
        has_cls=True,
        has_final=True,
        mean=HALF.mean,
        std=HALF.std,
        licence="Apache-2.0",
        paper="Bao et al., BEiT: BERT Pre-Training of Image Transformers, ICLR 2022, arXiv:2106.08254",
    )


ENTRIES: tuple[BackboneSpec, ...] = (
    _spec("beit-b16", "microsoft/beit-base-patch16-224-pt22k", BASE, 16),
    _spec("beit-l16", "microsoft/beit-large-patch16-224-pt22k", LARGE, 16),
)
