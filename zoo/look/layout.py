"""How networks lay out what their blocks pass on, and how it becomes features of a layer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from zoo.features import LayerFeatures
from zoo.look.split import Cells, map_features, token_features
from zoo.spec import BackboneSpec, Layer

Layout = Literal["tokens", "tokens-first", "maps", "cells"]
"""``tokens`` [batch tokens dim], ``tokens-first`` [tokens batch dim], ``maps`` [batch dim height width],
``cells`` [batch height width dim]."""

LAYOUTS: tuple[Layout, ...] = get_args(Layout)

WORDS: Mapping[Layout, str] = {
    "tokens": "tokens [batch tokens dim]",
    "tokens-first": "tokens [tokens batch dim]",
    "maps": "feature maps [batch dim height width]",
    "cells": "feature maps [batch height width dim]",
}
"""Layouts as sentences call them."""


def first_tensor(given: object) -> Tensor | None:
    """The first tensor of what a module is given or gives: itself, or of a sequence or mapping."""
    if isinstance(given, Tensor):
        return given
    if isinstance(given, Mapping):
        given = tuple(given.values())
    if isinstance(given, Iterable) and not isinstance(given, str):
        return next((found for one in given if (found := first_tensor(one)) is not None), None)
    return None


def with_batch_first(stream: Tensor, layout: Layout) -> Tensor:
    """Tokens as [batch tokens dim], maps as [batch dim height width]; a view."""
    if layout == "tokens-first":
        return stream.transpose(0, 1)
    return stream.permute(0, 3, 1, 2) if layout == "cells" else stream


@dataclass(frozen=True, slots=True)
class LayoutSplit:
    """Splits what leaves each block of a network whose layouts are known.

    Attributes:
        layouts: That of layer 0, of each block, in order; the last is that of ``final``, too.
    """

    layouts: tuple[Layout, ...]

    def __call__(
        self, spec: BackboneSpec, layer: Layer, stream: Tensor, batch: int, cells: Cells
    ) -> LayerFeatures:
        """Features of a layer; raises InputError where the stream is not what the spec promises."""
        layout = self.layouts[layer.index]
        split = token_features if layout.startswith("tokens") else map_features
        return split(spec, layer, with_batch_first(stream, layout), batch, cells)
