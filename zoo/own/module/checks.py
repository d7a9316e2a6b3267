"""Checks of what users give: their specs, and that features of an image are its own."""

import re
from collections.abc import Callable, Iterator, Mapping
from math import isfinite

import torch
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec

# Features of images, uint8 [batch 3 height width], with the batch as first axis, by a name such as "layer 3".
Show = Callable[[Tensor], Mapping[str, Tensor]]

# Tolerances, as a share of the length of an image's features at a layer. Batches of one size run the same
# operations on each image; those of another size may run others, whose rounding grows from layer to layer.
SAME_SIZE = 1e-5
OTHER_SIZE = 0.05


def faults(spec: BackboneSpec) -> Iterator[str]:
    """The errors in a spec that a user wrote, or that a user's options made, in words."""
    if not re.fullmatch(r"[\w.@/+-]+", spec.name):
        yield "needs a name of letters, digits and .-_@/+"
    if not re.fullmatch(r"[\w.@/+-]+( [\w.@/+-]+)*", spec.family):
        yield f"has the family {spec.family!r}; take a word of letters, digits and .-_@/+"
    if spec.is_floor:
        yield f"has the family {spec.family!r}, which is that of the random floor; take another word"
    yield from _wrong_numbers(spec)


def _wrong_numbers(spec: BackboneSpec) -> Iterator[str]:
    numbers = [number for stage in spec.stages for number in (stage.blocks, stage.width, stage.stride)]
    if not numbers or min(numbers) < 1:
        yield "needs stages with blocks, widths and strides from 1 on"
        return
    if any(spec.patch_size % stage.stride for stage in spec.stages):
        yield f"has strides that do not divide the coarsest, {spec.patch_size} px"
    if spec.input_size < 1 or spec.input_size % spec.patch_size:
        yield f"has an input size of {spec.input_size} px, which is no multiple of {spec.patch_size} px"
    if spec.prefix_tokens < int(spec.has_cls):
        yield f"has a class token and {spec.prefix_tokens} prefix tokens"
    if len(spec.mean) != 3 or len(spec.std) != 3 or not all(map(isfinite, (*spec.mean, *spec.std))):
        yield "needs three finite numbers as mean and as std"
    elif min(spec.std) <= 0:
        yield "needs a std above 0"


def require_own_features(name: str, show: Show, side: int) -> None:
    """Raise InputError unless features of an image of that side in pixels depend on nothing but the image.

    It is shown beside a dark image, beside a bright one, and alone.
    """
    draw = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (3, side, side), dtype=torch.uint8, generator=draw)
    dark = image // 50  # not of one colour, which some networks divide by its deviation
    alone = show(image[None])
    beside_dark, beside_bright = (show(torch.stack([image, other])) for other in (dark, 255 - dark))
    for layer, features in beside_dark.items():
        for other, tolerance in ((beside_bright[layer], SAME_SIZE), (alone[layer], OTHER_SIZE)):
            share = _difference(features[0], other[0])
            if share > max(tolerance, torch.finfo(features.dtype).eps):
                raise InputError(
                    f"{name}: the features of an image change by {share:.2g} of their length at {layer} with "
                    "the images beside it, such as by BatchNorm on statistics of the batch, or by chance, "
                    "such as by dropout; give the network in evaluation mode, or a file quantised with fixed "
                    "ranges or for batches of one image"
                )


def _difference(one: Tensor, other: Tensor) -> float:
    """Length of the difference of two activations, as a share of the first; infinite numbers are 0."""
    first, second = (each.detach().double().nan_to_num(0, 0, 0) for each in (one, other))
    return float((first - second).norm() / first.norm().clamp_min(1e-30))
