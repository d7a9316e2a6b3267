"""Receptive fields of a backbone over the images of a source: the one pass that needs gradients."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.extraction.failures import free_unused, is_out_of_memory
from benchmark.extraction.loading import Batch, ShardEnd, Unreadable, batches
from benchmark.extraction.one_pass import Pace, PassCallbacks
from tasks.base import Source
from zoo.errors import InputError
from zoo.features import Channels, ReceptiveField
from zoo.features.backbone import Backbone
from zoo.spec import Layer
from zoo.view.views import View


@dataclass
class FieldSums:
    """Receptive fields, summed over images.

    Attributes:
        strength: For each layer, [height width].
        cells: For each layer, rows and columns of its grid.
        size: Height and width of the images in pixels.
        images: Images that are in the sums.
        unreadable: Why each of the images that could not be read was left out.
    """

    strength: dict[Layer, NDArray[np.float64]] = field(default_factory=dict)
    cells: dict[Layer, tuple[int, int]] = field(default_factory=dict)
    size: tuple[int, int] = (0, 0)
    images: int = 0
    unreadable: list[str] = field(default_factory=list)

    def add(self, pixels: Tensor, fields: Sequence[ReceptiveField]) -> None:
        """Take the fields of a batch of images."""
        self.images += len(pixels)
        self.size = (pixels.shape[2], pixels.shape[3])
        for receptive in fields:
            strength = receptive.strength.detach().cpu().double().numpy()
            self.strength[receptive.layer] = self.strength.get(receptive.layer, 0.0) + strength
            self.cells[receptive.layer] = receptive.cells


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a backbone.

    Attributes:
        layers: Layers whose fields are wanted, which it has.
        channels: Which channels of each.
    """

    layers: tuple[Layer, ...]
    channels: Channels


def sum_fields(
    source: Source, view: View, asked: Asked, backbone: Backbone, pace: Pace, callbacks: PassCallbacks
) -> FieldSums:
    """Show every image of a source to a backbone, once, and add its receptive fields up.

    A batch whose gradients do not fit into memory is shown in halves, down to one image.

    Args:
        source: Images of which those that cannot be read are left out; all views of them have one size.
        view: Its view, scaled to the backbone.
        asked: What is asked.
        backbone: The backbone, which gives gradients.
        pace: Sizes of batches, and decoding threads.
        callbacks: What is told meanwhile.

    Raises:
        InputError: The gradients of a single image do not fit into memory.
    """
    sums, side = FieldSums(), backbone.spec.input_size
    size = pace.batch_size
    for event in batches(source, view, range(source.shards), size, side, pace.workers):
        match event:
            case Batch():
                waiting = [event.pixels]
                while waiting:
                    pixels = waiting.pop(0)
                    pieces = torch.split(pixels, size)
                    if len(pieces) > 1:
                        waiting = [*pieces, *waiting]
                    elif _add(sums, pixels, asked, backbone):
                        callbacks.advance(len(pixels))
                    else:
                        size = _smaller(len(pixels), backbone)
                        waiting.insert(0, pixels)
            case Unreadable():
                sums.unreadable.append(event.reason)
                callbacks.advance(1)
            case ShardEnd():
                pass
    return sums


def _add(sums: FieldSums, pixels: Tensor, asked: Asked, backbone: Backbone) -> bool:
    """Add the fields of some images; whether memory was enough."""
    try:
        fields = backbone.receptive_fields(pixels, asked.layers, asked.channels)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return False
    sums.add(pixels, fields)
    return True


def _smaller(images: int, backbone: Backbone) -> int:
    """Half as many images, where there is more than one."""
    free_unused(backbone.device)
    if images == 1:
        raise InputError(
            f"the gradients of one image do not fit into the memory of {backbone.device} beside "
            f"{backbone.spec.name}; take a smaller --input-size, fewer --workers, or another --device"
        )
    return images // 2
