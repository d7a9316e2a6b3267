"""Receptive fields of a backbone over the images of a source: the one pass that needs gradients."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.extraction.failures import within_memory
from benchmark.extraction.loading import Batch, Event, Unreadable
from zoo.errors import InputError
from zoo.features import Channels, ReceptiveField
from zoo.features.backbone import Backbone
from zoo.spec import Layer


@dataclass
class FieldSums:
    """Receptive fields, summed over images."""

    strength: dict[Layer, NDArray[np.float64]] = field(default_factory=dict)  # [height width] of each layer
    cells: dict[Layer, tuple[int, int]] = field(default_factory=dict)  # rows and columns of its grid
    size: tuple[int, int] = (0, 0)  # height and width of the images in pixels
    images: int = 0  # that are in the sums
    unreadable: list[str] = field(default_factory=list)  # why other images were left out

    def add(self, pixels: Tensor, fields: Sequence[ReceptiveField]) -> None:
        """Take the fields of a batch of images."""
        self.images += len(pixels)
        self.size = (pixels.shape[2], pixels.shape[3])
        for receptive in fields:
            strength = receptive.strength.detach().cpu().double().numpy()
            self.strength[receptive.layer] = self.strength.get(receptive.layer, 0.0) + strength
            self.cells[receptive.layer] = receptive.cells


def sum_fields(
    events: Iterable[Event],
    batch_size: int,
    backbone: Backbone,
    layers: Sequence[Layer],
    channels: Channels,
    advance: Callable[[int], None],
) -> FieldSums:
    """Show images to a backbone that gives gradients, each once, and add the fields of layers up.

    At most ``batch_size`` images are shown together. A batch whose gradients do not fit into memory is shown
    in halves, down to one image, and so are those after it.

    Raises:
        InputError: The gradients of a single image do not fit into memory.
    """
    sums = FieldSums()
    for event in events:
        if isinstance(event, Unreadable):
            sums.unreadable.append(event.reason)
            advance(1)
        waiting = [event.pixels] if isinstance(event, Batch) else []
        while waiting:
            pixels, *waiting = (*torch.split(waiting[0], batch_size), *waiting[1:])
            show = partial(backbone.receptive_fields, pixels, layers, channels)
            if (fields := within_memory(backbone.device, show)) is not None:
                sums.add(pixels, fields)
                advance(len(pixels))
            elif len(pixels) > 1:
                batch_size, waiting = len(pixels) // 2, [pixels, *waiting]
            else:
                raise InputError(
                    f"the gradients of one image do not fit into the memory of {backbone.device} beside "
                    f"{backbone.spec.name}; take a smaller --input-size, fewer --workers, or another --device"
                )
    return sums
