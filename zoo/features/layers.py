"""What an entry promises about its layers, and how the output of a block becomes features."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isqrt

import torch
from torch import Tensor

from layerboard.zoo.entries.architecture import Layout, StreamLayout
from layerboard.zoo.errors import InputError, ensure
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.spec import NORMED, BackboneSpec, Layer, Layers, Tap

Cells = tuple[int, int]  # rows and columns of a grid
# Taps whose number of channels no entry promises.
UNPROMISED: tuple[Tap, ...] = ("query", "key", "value", "heads", "mlp_hidden")


def wanted_layers(spec: BackboneSpec, layers: Collection[Layer] | None) -> Layers:
    """The layers to show, each once, in forward order; ``spec.layers`` if None."""
    return spec.layers if layers is None else tuple(sorted(set(layers), key=lambda layer: layer.place))


def unknown_layer(spec: BackboneSpec, layers: Collection[Layer]) -> str:
    """Why a backbone of that spec lacks one of these layers, in a sentence; "" if it has them all."""
    missing = next((layer for layer in wanted_layers(spec, layers) if not spec.has(layer)), None)
    if missing is None:
        return ""
    if missing.tap == "probabilities":
        if spec.heads is None:
            return f"{spec.name} {spec.origin.no_heads}."
        span = f"it has those of {Layer(1, missing.tap)} to {Layer(spec.depth, missing.tap)}"
        return f"{spec.name} has no attention probabilities of layer {missing}; {span}."
    if missing.tap == "final" and not spec.has_final:
        return f"{spec.name} has no final norm, and so no layer 'final'; its last block is {spec.depth}."
    if missing.tap == NORMED:
        return f"{spec.name} has no layer {missing}: {without_norm(spec, missing)}."
    names = ", ".join(str(layer) for layer in spec.layers)
    inside = f", and {taps_in_words(spec.inside)} of every block" if spec.inside else ""
    return f"{spec.name} has no layer {missing}; its layers are {names}{inside}."


def without_norm(spec: BackboneSpec, layer: Layer) -> str:
    """Why a block of a backbone cannot be read behind its final norm, as a phrase."""
    if NORMED in spec.read and 1 <= layer.index <= spec.depth:
        return f"its final norm takes {spec.width} channels, and that block has {spec.stage_of(layer).width}"
    if NORMED in spec.read:
        return f"its blocks are 1 to {spec.depth}"
    return "its final norm cannot be applied to other blocks" if spec.has_final else "it has no final norm"


def taps_in_words(taps: Sequence[str]) -> str:
    """Taps as a sentence lists them."""
    return " and ".join([", ".join(taps[:-1]), taps[-1]] if len(taps) > 1 else taps)


def cells_of(spec: BackboneSpec, pixels: Tensor) -> Cells:
    """Rows and columns of the coarsest grid for a batch of images, uint8 [batch 3 height width]."""
    patch = spec.patch_size
    if pixels.ndim != 4 or pixels.shape[1] != 3 or pixels.dtype != torch.uint8:
        kind = f"{pixels.dtype} {tuple(pixels.shape)}"
        raise InputError(f"{spec.name} takes uint8 pixels [batch 3 height width], not {kind}.")
    height, width = pixels.shape[2:]
    if spec.fixed_size and (height, width) != (spec.input_size, spec.input_size):
        raise InputError(
            f"{spec.name} takes images of {spec.input_size} x {spec.input_size} px only, not {width} x "
            f"{height} px; leave out the tasks that show others."
        )
    multiples = f"takes images whose sides are multiples of {patch} px, not {width} x {height} px."
    ensure(not (height % patch or width % patch), f"{spec.name} {multiples}")
    return height // patch, width // patch


def shapes_of(spec: BackboneSpec, layer: Layer, cells: Cells, width: int) -> list[tuple[int, int, int]]:
    """Rows, columns and channels that a layer may have, the likeliest first.

    The input of the first block of a stage has the shape of that stage in some networks, and of the previous
    one in others. No entry promises the channels inside attention and MLP: they are what the network gives,
    ``width``.
    """
    stages = [spec.stage_of(layer)]
    if layer.tap == "input":
        stages.append(spec.stage_of(Layer(layer.index - 1)))
    finer = [(stage, spec.patch_size // stage.stride) for stage in stages]
    return [
        (cells[0] * times, cells[1] * times, width if layer.tap in UNPROMISED else stage.width)
        for stage, times in finer
    ]


def features_of(
    spec: BackboneSpec, layer: Layer, stream: Tensor, layout: StreamLayout, batch: int, cells: Cells
) -> LayerFeatures:
    """Features of a layer from its activation; ``cells`` are those of the coarsest grid, or of units."""
    stream = in_rows(stream, cells) if layout == "units" else with_batch_first(stream, layout)
    are_maps, prefix = layout in ("maps", "cells"), spec.prefix_tokens
    shapes = shapes_of(spec, layer, cells, stream.shape[1 if are_maps else -1])
    for rows, columns, width in shapes:
        if are_maps and stream.shape == (batch, width, rows, columns):
            return LayerFeatures(layer, None, stream.permute(0, 2, 3, 1))
        if not are_maps and stream.shape == (batch, prefix + rows * columns, width):
            cls = stream[:, 0] if spec.has_cls else None
            return LayerFeatures(layer, cls, grid_of(stream, prefix, (rows, columns)), stream[:, :prefix])
    rows, columns, width = shapes[0]
    if are_maps:
        expected = f"feature maps [batch channels height width] {[batch, width, rows, columns]}"
    else:
        expected = (
            f"{prefix} prefix tokens and {rows} x {columns} patch tokens of width {width}, "
            f"[batch tokens width] {[batch, prefix + rows * columns, width]}"
        )
    gives = f"the network gives {list(stream.shape)}."
    raise InputError(f"{spec.name}: layer {layer} should be {expected}; {gives}")


def with_batch_first(stream: Tensor, layout: Layout) -> Tensor:
    """Tokens as [batch tokens dim], maps as [batch dim height width]; a view."""
    if layout == "tokens-first":
        return stream.transpose(0, 1)
    return stream.permute(0, 3, 1, 2) if layout == "cells" else stream


def grid_of(tokens: Tensor, prefix: int, cells: Cells) -> Tensor:
    """Patch tokens in their places, [batch rows columns dim]: a view of [batch tokens dim]."""
    return tokens[:, prefix:].view(tokens.shape[0], *cells, tokens.shape[-1])


def in_rows(tokens: Tensor, units: Cells) -> Tensor:
    """Tokens of mask units, [batch tokens dim], row by row; unchanged if units are of no power of two.

    So that pooling takes four neighbours by one maximum, Hiera orders the tokens of a cell by the lowest bits
    of its row and column first, which the first pooling removes, then by the next ones, and at last by the
    row and column of its unit. Source: ``Unroll`` in ``hiera_utils.py`` of Ryali et al., Hiera,
    arXiv:2306.00989.
    """
    rows, columns = units
    bits = isqrt(tokens.shape[1] // (rows * columns)).bit_length() - 1
    if bits < 1 or (1 << bits) ** 2 * rows * columns != tokens.shape[1]:
        return tokens
    split = tokens.reshape(tokens.shape[0], *(2, 2) * bits, rows, columns, tokens.shape[2])
    # The axes of a bit are those of its row and its column; the highest bits come last, before the unit's.
    of_rows = (1 + 2 * bits, *range(2 * bits - 1, 0, -2))
    of_columns = (2 + 2 * bits, *range(2 * bits, 0, -2))
    return split.permute(0, *of_rows, *of_columns, 3 + 2 * bits).reshape(tokens.shape)


def first_tensor(content: object) -> Tensor | None:
    """The first tensor of a module's input or output: itself, or the first of a sequence or mapping."""
    if isinstance(content, Tensor):
        return content
    if isinstance(content, Mapping):
        content = tuple(content.values())
    if isinstance(content, Iterable) and not isinstance(content, str):
        return next((tensor for tensor in map(first_tensor, content) if tensor is not None), None)
    return None
