"""Checks of the specs that users write, or that their options make."""

import re
from collections.abc import Iterator
from math import isfinite

from layerboard.zoo.spec import BackboneSpec


def faults(spec: BackboneSpec) -> Iterator[str]:
    """The errors in a spec that a user wrote, or that a user's options made, in words."""
    if not re.fullmatch(r"[\w.@/+-]+", spec.name):
        yield "needs a name of letters, digits and .-_@/+"
    if not re.fullmatch(r"[\w.@/+-]+( [\w.@/+-]+)*", spec.family):
        yield f"has the family {spec.family!r}; take a word of letters, digits and .-_@/+"
    if spec.is_floor:
        yield f"has the family {spec.family!r}, which is that of the random floor; take another word"
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
