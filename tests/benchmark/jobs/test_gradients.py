"""The pass for gradients: every image once, in smaller batches where memory is short."""

from collections.abc import Callable, Collection

import pytest
import torch
from torch import Tensor

from layerboard.benchmark.jobs.backbone_tasks import FieldSums, sum_fields
from layerboard.benchmark.passes.loading import Loader
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import Channels, ReceptiveField
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.doubles import CountingBackbone, source

LAYERS = (Layer(1), Layer(3))
COLOURS = [[10, 20, -1, 30], [40]]


class Gradients(CountingBackbone):
    """A backbone whose fields are the red of the pixels, and that has memory for so many images."""

    most = 100

    def receptive_fields(
        self,
        pixels: Tensor,
        layers: Collection[Layer],
        channels: Channels,
        advance: Callable[[float], None] = lambda share: None,
    ) -> tuple[ReceptiveField, ...]:
        self.batches.append(len(pixels))
        advance(0.5)
        if len(pixels) > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return tuple(ReceptiveField(layer, pixels[:, 0].float().sum(0), (4, 4)) for layer in layers)


def summed(backbone: Gradients, batch: int = 4) -> FieldSums:
    view = ResizeCrop(32, 32)
    shown: list[float] = []
    src = source(COLOURS, view=view)
    events = Loader(1).batches(src, range(src.shards), batch, 32)
    sums = sum_fields(events, batch, backbone, LAYERS, range, shown.append)
    assert sum(shown) == 5  # half of each batch is told while it is shown
    assert len(shown) >= 2 * len(backbone.batches)
    return sums


@pytest.mark.parametrize("batch", [1, 4])
def test_fields_add_up_over_the_images_that_can_be_read(batch: int) -> None:
    sums = summed(Gradients(), batch)
    assert list(sums.strength) == list(LAYERS)
    assert (sums.strength[Layer(1)] == 100).all()
    assert sums.cells == {Layer(1): (4, 4), Layer(3): (4, 4)}
    assert (sums.images, sums.size) == (4, (32, 32))
    assert [reason.split(":")[0] for reason in sums.unreadable] == ["cannot decode image 0-2"]


def test_a_batch_that_does_not_fit_is_halved_and_so_are_those_after_it() -> None:
    backbone = Gradients()
    backbone.most = 2
    sums = summed(backbone)
    assert (sums.strength[Layer(3)] == 100).all()
    assert backbone.batches == [3, 1, 1, 1, 1]


def test_one_image_that_does_not_fit_is_said_in_a_sentence() -> None:
    backbone = Gradients()
    backbone.most = 0
    with pytest.raises(InputError, match="the gradients of one image do not fit into the memory of cpu"):
        summed(backbone)
