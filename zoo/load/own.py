"""Backbones that are anybody's own Python objects, named ``module:function``."""

import importlib
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.errors import InputError
from zoo.features import Backbone, LayerFeatures, Shown, Visitor
from zoo.look.split import Cells, cells_of, finer, wanted_layers
from zoo.spec import FAMILIES, BackboneSpec, Layer

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


def own_backbone(spec: BackboneSpec, device: torch.device, dtype: torch.dtype) -> "OwnBackbone":
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


class OwnBackbone:
    """A backbone of somebody else, whose features are compared with what its spec says."""

    def __init__(self, spec: BackboneSpec, backbone: Backbone) -> None:
        self.spec = spec
        self.revision = backbone.revision
        self.fingerprint = backbone.fingerprint
        self.device = backbone.device
        self.dtype = backbone.dtype
        self._backbone = backbone

    def refusal(self, layers: Collection[Layer]) -> str:
        """Why it cannot show one of those layers."""
        return ""

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        """Run one forward and call ``visitor`` once for each layer; see `zoo.features.Backbone`.

        Raises:
            InputError: The pixels, a layer or what the backbone shows is not what the spec says.
        """
        cells = cells_of(self.spec, pixels)
        wanted = wanted_layers(self.spec, layers)
        shown: list[Layer] = []

        def show(features: Shown) -> None:
            assert isinstance(features, LayerFeatures)
            if shown == list(wanted) or features.layer != wanted[len(shown)]:
                expected = str(wanted[len(shown)]) if len(shown) < len(wanted) else "none any more"
                raise InputError(
                    f"{self.spec.name} shows layer {features.layer} where {expected} is expected: each layer "
                    "that is asked for once, in the order of the forward."
                )
            _check_features(self.spec, features, len(pixels), cells)
            shown.append(features.layer)
            visitor(features)

        self._backbone.visit(pixels, show, wanted)
        if len(shown) < len(wanted):
            raise InputError(
                f"{self.spec.name} does not show layer {wanted[len(shown)]}, which it was asked for."
            )


def _check_features(spec: BackboneSpec, features: LayerFeatures, batch: int, cells: Cells) -> None:
    stage = spec.stage_of(features.layer)
    expected: dict[str, tuple[int, ...] | None] = {
        "grid [batch height width dim]": (batch, *finer(spec, stage.stride, cells), stage.width),
        "cls [batch dim]": (batch, stage.width) if spec.has_cls else None,
    }
    found = (features.grid, features.cls)
    for (what, shape), tensor in zip(expected.items(), found, strict=True):
        has = None if tensor is None else tuple(tensor.shape)
        if has != shape:
            raise InputError(f"{spec.name}: {what} of layer {features.layer} should be {shape}; it is {has}.")


@lru_cache(maxsize=64)
def make_own(reference: str) -> Backbone:
    """The backbone that a function gives, as it is; the function is called once in a process.

    Raises:
        InputError: As in `own_spec`.
    """
    module, _, name = reference.partition(":")
    with _current_directory():
        try:
            function = getattr(importlib.import_module(module), name, None)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise InputError(f"{reference}: {module} cannot be imported: {error}.") from error
            raise InputError(
                f"{reference}: there is no module {module} in {Path.cwd()} or among those installed."
            ) from error
        except Exception as error:
            raise InputError(
                f"{reference}: {module} cannot be imported: {type(error).__name__}: {error}."
            ) from error
        if not callable(function):
            raise InputError(f"{reference}: module {module} has no function {name}.")
        try:
            found = function()
        except Exception as error:
            raise InputError(f"{reference}() failed: {type(error).__name__}: {error}.") from error
    return _checked(reference, found)


@contextmanager
def _current_directory() -> Iterator[None]:
    """Modules of the current directory can be imported, as by ``python -m``."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path.remove(str(Path.cwd()))


def _checked(reference: str, found: Any) -> Backbone:
    for name, kind in _ATTRIBUTES.items():
        value = getattr(found, name, None)
        if not isinstance(value, kind) or value == "":
            raise InputError(
                f"{reference}() gives a {type(found).__name__} that should have an attribute {name} of type "
                f"{kind.__name__}; found {value!r}."
            )
    if not callable(getattr(found, "visit", None)):
        raise InputError(f"{reference}() gives a {type(found).__name__} without a method visit.")
    wrong = next(_wrong(found.spec), None)
    if wrong:
        raise InputError(f"{reference}: its spec {found.spec.name!r} {wrong}.")
    backbone: Backbone = found
    return backbone


def _wrong(spec: BackboneSpec) -> Iterator[str]:
    """What is wrong with a spec that somebody wrote, in words."""
    if not re.fullmatch(r"[\w.@/+-]+", spec.name):
        yield "needs a name of letters, digits and .-_@/+"
    if spec.family not in FAMILIES or spec.family == "random":
        yield f"has the family {spec.family!r}; take one of {', '.join(FAMILIES[:-1])}"
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
