"""Check that features of an image are its own: neither of the images beside it in a batch, nor of chance."""

import random
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from layerboard.zoo.errors import InputError

# Features of images, uint8 [batch 3 height width], with the batch as first axis, by a name such as "layer 3".
Show = Callable[[Tensor], Mapping[str, Tensor]]

# Tolerances, as a share of the length of an image's features at a layer. Batches of one size run the same
# operations on each image; those of another size may run others, whose rounding grows from layer to layer.
SAME_SIZE = 1e-5
OTHER_SIZE = 0.05
TRIES = 30  # more passes of a network that draws: a rare event, such as a dropped block, may need many
_DRAWS = "if it is shown once more: the network draws or remembers something, such as dropout that is not off"
_MIXES = (
    "if other images are beside it: the network mixes the images of a batch, such as BatchNorm on statistics "
    "of the batch, a softmax over the wrong axis, or numbers quantised by the range of a whole batch"
)
_PLACE = "in a batch of another size, or at another place in it"
_REMEDY = (
    "Give the network in evaluation mode, or a file quantised with fixed ranges or for batches of one image, "
    "so that features depend on the image alone"
)


def require_own_features(name: str, show: Show, side: int, most: int | None = None) -> float:
    """Raise InputError unless features of an image of that side in pixels depend on nothing but the image.

    It is shown alone, among images that differ much, among others, and alone again. ``most`` is the number of
    images that the network takes at once, None for any number. Returns the largest change of the features
    with the batch, as a share of their length: rounding.
    """
    draw = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (3, side, side), dtype=torch.uint8, generator=draw)
    # none is of one colour, which some networks divide by its deviation
    dark, waves = image // 50, (127 + 99 * torch.linspace(0, 20, side).sin()).to(torch.uint8) + image // 50
    count = min(most or 3, 3)  # images of a batch, the last of the first batch equal to its first
    before = _drawn()
    alone = show(image[None])
    among = show(torch.stack([image, dark, image] if count == 3 else [image] * count))
    others = show(torch.stack([image, 255 - dark, waves][:count]))
    again = show(image[None])
    for _ in range(TRIES if _drawn() != before else 0):
        if all(_difference(alone[layer], again[layer]) <= SAME_SIZE for layer in alone):
            again = show(image[None])
    # in a network that draws, images of a batch differ by chance, too: whether it draws comes first
    pairs = [(layer, first[0], again[layer][0], SAME_SIZE, _DRAWS) for layer, first in alone.items()]
    for layer, first in alone.items():
        here, there, moved = among[layer][0], others[layer][0], among[layer][-1]
        pairs += [
            (layer, here, there, SAME_SIZE, _MIXES),
            (layer, here, moved, OTHER_SIZE, _PLACE),
            (layer, first[0], here, OTHER_SIZE, _PLACE),
        ]
    shares = [0.0]
    for layer, tokens, other, tolerance, reason in pairs:
        share = _difference(tokens, other)
        if share > max(tolerance, torch.finfo(tokens.dtype).eps):
            raise InputError(
                f"{name}: the features of an image change by {share:.2g} of their length at {layer} "
                f"{reason}. {_REMEDY}"
            )
        shares.append(share)
    return max(shares)


def _difference(one: Tensor, other: Tensor) -> float:
    """Length of the difference of two activations, as a share of the first; infinite numbers are 0."""
    first, second = (each.detach().double().nan_to_num(0, 0, 0) for each in (one, other))
    return float((first - second).norm() / first.norm().clamp_min(1e-30))


def _drawn() -> tuple[object, ...]:
    """The states of the generators that code draws from if it names none."""
    cuda = torch.cuda.get_rng_state().tolist() if torch.cuda.is_available() else ()
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002  # read, not drawn from
    return torch.get_rng_state().tolist(), cuda, random.getstate(), repr(numpy)
