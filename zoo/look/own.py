"""Somebody's own backbone, whose layers are compared with what its spec says as it shows them."""

from collections.abc import Callable, Collection, Iterable
from itertools import zip_longest

import torch
from torch import Tensor

from zoo.errors import InputError, shortened
from zoo.features import (
    AttentionMaps,
    Channels,
    LayerFeatures,
    ReceptiveField,
    Shown,
    Visitable,
    Visitor,
    Weights,
)
from zoo.look.layers import require, unknown_layer, wanted_layers
from zoo.look.split import Cells, cells_of, shapes_of
from zoo.look.weights import without_weights
from zoo.spec import BackboneSpec, Layer

ROW_TOLERANCE = 0.01
"""How far from 1 the sum of a row of probabilities may be: bfloat16 rounds each by up to 0.004 of itself."""


class OwnBackbone:
    """A backbone of somebody else, whose features are compared with what its spec says.

    It is asked for attention probabilities only if it has an attribute ``attention`` that is true, and for
    what is inside blocks only if its spec names it in ``taps``.
    """

    def __init__(self, spec: BackboneSpec, backbone: Visitable) -> None:
        self.spec = spec
        self.revision = backbone.revision
        self.fingerprint = backbone.fingerprint
        self.device = backbone.device
        self.dtype = backbone.dtype
        self._backbone = backbone
        self._summed: set[Layer] = set()

    def refusal(self, layers: Collection[Layer]) -> str:
        """Why it cannot show one of these layers, in a sentence; see `zoo.features.Backbone`."""
        if unknown := unknown_layer(self.spec, layers):
            return unknown
        asks = any(layer.tap == "probabilities" for layer in layers)
        if asks and not shows_attention(self._backbone):
            return f"{self.spec.name} shows no attention probabilities; one that does has attention = True."
        return ""

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        """Run one forward and call ``visitor`` once for each layer; see `zoo.features.Backbone`.

        Raises:
            InputError: The pixels, a layer or what the backbone shows is not what the spec says.
        """
        cells = cells_of(self.spec, pixels)
        wanted = wanted_layers(self.spec, layers)
        require(self.refusal(wanted))
        shown: list[Layer] = []

        def show(found: Shown) -> None:
            if shown == list(wanted) or found.layer != wanted[len(shown)]:
                expected = str(wanted[len(shown)]) if len(shown) < len(wanted) else "none any more"
                raise InputError(
                    f"{self.spec.name} shows layer {found.layer} where {expected} is expected: each layer "
                    "that is asked for once, in the order of the forward."
                )
            self._check(found, len(pixels), cells)
            shown.append(found.layer)
            visitor(found)

        self._backbone.visit(pixels, show, wanted)
        if len(shown) < len(wanted):
            raise InputError(
                f"{self.spec.name} does not show layer {wanted[len(shown)]}, which it was asked for."
            )

    def fields_refusal(self) -> str:
        """Why it cannot say which pixels move a cell; see `zoo.features.Backbone`."""
        if callable(getattr(self._backbone, "receptive_fields", None)):
            return ""
        return f"{self.spec.name} gives no gradients; one that does has a method receptive_fields."

    def receptive_fields(
        self, pixels: Tensor, layers: Collection[Layer], channels: Channels
    ) -> tuple[ReceptiveField, ...]:
        """Which pixels move the centre cell of each of these layers; see `zoo.features.Backbone`.

        Raises:
            InputError: The backbone has no such method, or gives something else.
        """
        wanted = wanted_layers(self.spec, layers)
        require(self.refusal(wanted) or self.fields_refusal())
        give: Callable[..., Iterable[ReceptiveField]] = getattr(self._backbone, "receptive_fields")  # noqa: B009
        fields = tuple(give(pixels, wanted, channels))
        for layer, field in zip_longest(wanted, fields):
            if not _is_field(field, layer, pixels):
                raise InputError(
                    f"{self.spec.name}: receptive_fields() should give a ReceptiveField for each layer, here "
                    f"{layer or 'none any more'}, with a strength {list(pixels.shape[2:])}; it gives "
                    f"{shortened(field)}."
                )
        return fields

    def weights(self) -> Weights:
        """Filters, position embeddings and position biases of an object that has a method ``weights``.

        Raises:
            InputError: They are no `zoo.features.Weights`.
        """
        give = getattr(self._backbone, "weights", None)
        if not callable(give):
            return without_weights(f"{self.spec.name} shows no weights; one that does has a method weights.")
        found = give()
        if not isinstance(found, Weights):
            raise InputError(
                f"{self.spec.name}: weights() gives {type(found).__name__}; it should be Weights."
            )
        return found

    def _check(self, found: Shown, batch: int, cells: Cells) -> None:
        """Shapes in every batch; numbers, for which a GPU must be waited for, in the first of each layer."""
        expected = AttentionMaps if found.layer.tap == "probabilities" else LayerFeatures
        if not isinstance(found, expected):
            raise InputError(
                f"{self.spec.name} shows layer {found.layer} as {type(found).__name__}; it should be "
                f"{expected.__name__}."
            )
        if isinstance(found, LayerFeatures):
            _check_features(self.spec, found, batch, cells)
            return
        _check_maps(self.spec, found, batch, cells)
        if found.layer not in self._summed:
            _check_sums(self.spec, found)
            self._summed.add(found.layer)


def _is_field(field: object, layer: Layer | None, pixels: Tensor) -> bool:
    """Whether something is the receptive field of a layer for such pixels."""
    if not isinstance(field, ReceptiveField):
        return False
    return field.layer == layer and field.strength.shape == pixels.shape[2:]


def shows_attention(backbone: Visitable) -> bool:
    """Whether an own backbone says that it shows attention probabilities."""
    return getattr(backbone, "attention", False) is True


def _check_features(spec: BackboneSpec, features: LayerFeatures, batch: int, cells: Cells) -> None:
    shapes = shapes_of(spec, features.layer, cells, features.grid.shape[-1])
    found = tuple(features.grid.shape)
    *size, width = next((shape for shape in shapes if found == (batch, *shape)), shapes[0])
    expected: dict[str, tuple[int, ...] | None] = {
        "grid [batch height width dim]": (batch, *size, width),
        "cls [batch dim]": (batch, width) if spec.has_cls else None,
    }
    tensors = (features.grid, features.cls)
    for (what, shape), tensor in zip(expected.items(), tensors, strict=True):
        has = None if tensor is None else tuple(tensor.shape)
        if has != shape:
            raise InputError(f"{spec.name}: {what} of layer {features.layer} should be {shape}; it is {has}.")


def _check_maps(spec: BackboneSpec, maps: AttentionMaps, batch: int, cells: Cells) -> None:
    tokens = spec.prefix_tokens + cells[0] * cells[1]
    expected: dict[str, object] = {
        "probabilities [batch heads queries keys]": (batch, spec.heads, tokens, tokens),
        "prefix_tokens": spec.prefix_tokens,
        "cells [rows columns]": cells,
    }
    found = (tuple(maps.probabilities.shape), maps.prefix_tokens, tuple(maps.cells))
    for (what, wants), has in zip(expected.items(), found, strict=True):
        if has != wants:
            raise InputError(f"{spec.name}: {what} of layer {maps.layer} should be {wants}; found {has}.")


def _check_sums(spec: BackboneSpec, maps: AttentionMaps) -> None:
    sums = maps.probabilities.sum(-1, dtype=torch.float32)
    worst, least = float(sums.flatten()[(sums - 1).abs().argmax()]), float(maps.probabilities.min())
    if not (abs(worst - 1) <= ROW_TOLERANCE and least >= 0):  # true of NaN, too
        raise InputError(
            f"{spec.name}: each row of the probabilities of layer {maps.layer} should be numbers from 0 on "
            f"that sum to 1; a row sums to {worst:.3g}, and the least number is {least:.3g}."
        )
