"""Backbones that are anybody's own Python objects, named ``module:function``."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from typing import Any

import torch

from zoo.errors import InputError
from zoo.features import Visitable
from zoo.look.own import OwnBackbone, shows_attention
from zoo.references import current_directory, find_object
from zoo.spec import SUBLAYER_TAPS, BackboneSpec

_ATTRIBUTES: dict[str, type] = {
    "spec": BackboneSpec,
    "revision": str,
    "fingerprint": str,
    "device": torch.device,
    "dtype": torch.dtype,
}


def own_spec(reference: str) -> BackboneSpec:
    """Spec of the backbone that a function gives, its repository and checkpoint set to say where it is from.

    Args:
        reference: ``module:function``; the module is looked for in the current directory and among those that
            are installed, the function is called without arguments, once a process.

    Raises:
        InputError: There is no such function, it fails, or what it gives is no backbone (`zoo.features`).
    """
    return replace(make_own(reference).spec, repository=reference, checkpoint="object")


def own_backbone(spec: BackboneSpec, device: torch.device, dtype: torch.dtype) -> OwnBackbone:
    """The backbone that an entry of `own_spec` is about.

    Raises:
        InputError: As in `own_spec`; or it runs on another device or in another dtype.
    """
    found = make_own(spec.repository)
    for what, has, wants in (("device", found.device.type, device.type), ("dtype", found.dtype, dtype)):
        if has != wants:
            has, wants = (str(one).removeprefix("torch.") for one in (has, wants))
            raise InputError(
                f"{spec.name} runs with {what} {has}, the run with {wants}; give --{what} {has}, or let "
                f"{spec.repository} give a backbone for {wants}."
            )
    return OwnBackbone(spec, found)


@lru_cache(maxsize=64)
def make_own(reference: str) -> Visitable:
    """The backbone that a function gives, as it is; the function is called once in a process.

    Raises:
        InputError: As in `own_spec`.
    """
    function = find_object(reference)
    if not callable(function):
        module, _, name = reference.partition(":")
        raise InputError(f"{reference}: module {module} has no function {name}.")
    with current_directory():
        try:
            found = function()
        except Exception as error:
            raise InputError(f"{reference}() failed: {type(error).__name__}: {error}.") from error
    return _checked(reference, found)


def _checked(reference: str, found: Any) -> Visitable:  # noqa: ANN401  # whatever a function gives
    for name, kind in _ATTRIBUTES.items():
        value = getattr(found, name, None)
        if not isinstance(value, kind) or value == "":
            raise InputError(
                f"{reference}() gives a {type(found).__name__} that should have an attribute {name} of type "
                f"{kind.__name__}; found {value!r}."
            )
    if not callable(getattr(found, "visit", None)):
        raise InputError(f"{reference}() gives a {type(found).__name__} without a method visit.")
    backbone: Visitable = found
    wrong = wrong_with(backbone.spec)
    if wrong is None and shows_attention(backbone) and backbone.spec.heads is None:
        wrong = "says nothing of heads, and the backbone has attention = True"
    if wrong:
        raise InputError(f"{reference}: its spec {backbone.spec.name!r} {wrong}.")
    return backbone


def wrong_with(spec: BackboneSpec) -> str | None:
    """The first thing that is wrong with a spec that somebody wrote, in words; None where nothing is."""
    return next(_wrong(spec), None)


def _wrong(spec: BackboneSpec) -> Iterator[str]:
    """What is wrong with a spec that somebody wrote, in words."""
    if not re.fullmatch(r"[\w.@/+-]+", spec.name):
        yield "needs a name of letters, digits and .-_@/+"
    if not re.fullmatch(r"[\w.@/+-]+( [\w.@/+-]+)*", spec.family):
        yield f"has the family {spec.family!r}; take a word of letters, digits and .-_@/+"
    if spec.is_floor:
        yield f"has the family {spec.family!r}, which is that of the random floor; take another word"
    if wrong := [tap for tap in spec.taps or () if tap not in SUBLAYER_TAPS]:
        yield f"has the tap {wrong[0]!r}; taps inside blocks are {', '.join(SUBLAYER_TAPS)}"
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
