"""Checks and splits of activations: from what a block puts out to the features of a layer."""

import torch
from torch import Tensor

from zoo.errors import InputError
from zoo.features import LayerFeatures
from zoo.spec import BackboneSpec, Layer, Tap

Cells = tuple[int, int]
"""Rows and columns of a grid."""

UNPROMISED: tuple[Tap, ...] = ("query", "key", "value", "heads", "mlp_hidden")
"""Taps whose number of channels no entry promises."""


def cells_of(spec: BackboneSpec, pixels: Tensor) -> Cells:
    """Rows and columns of the coarsest grid for a batch of images, uint8 [batch 3 height width].

    Raises:
        InputError: The pixels have another shape or type, or sides that are no multiples of the patch.
    """
    patch = spec.patch_size
    if pixels.ndim != 4 or pixels.shape[1] != 3 or pixels.dtype != torch.uint8:
        raise InputError(
            f"{spec.name} takes uint8 pixels [batch 3 height width], not "
            f"{pixels.dtype} {tuple(pixels.shape)}."
        )
    height, width = pixels.shape[2:]
    if spec.fixed_size and (height, width) != (spec.input_size, spec.input_size):
        raise InputError(
            f"{spec.name} takes images of {spec.input_size} x {spec.input_size} px only, not {width} x "
            f"{height} px; leave out the tasks that show others."
        )
    if height % patch or width % patch:
        raise InputError(
            f"{spec.name} takes images whose sides are multiples of {patch} px, not {width} x {height} px."
        )
    return height // patch, width // patch


def token_features(
    spec: BackboneSpec, layer: Layer, tokens: Tensor, batch: int, cells: Cells
) -> LayerFeatures:
    """Features of a layer from its tokens [batch tokens dim]; both are views.

    Raises:
        InputError: The tokens are not those that the entry promises.
    """
    shapes = shapes_of(spec, layer, cells, tokens.shape[-1])
    found = tuple(tokens.shape)
    expected: list[tuple[int, ...]] = [
        (batch, spec.prefix_tokens + rows * columns, width) for rows, columns, width in shapes
    ]
    if found not in expected:
        rows, columns, width = shapes[0]
        raise InputError(
            f"{spec.name}: layer {layer} should be {spec.prefix_tokens} prefix tokens and {rows} x {columns} "
            f"patch tokens of width {width}, [batch tokens width] {list(expected[0])}; the network gives "
            f"{list(found)}."
        )
    rows, columns, _ = shapes[expected.index(found)]
    grid = grid_of(tokens, spec.prefix_tokens, (rows, columns))
    return LayerFeatures(layer, tokens[:, 0] if spec.has_cls else None, grid)


def shapes_of(spec: BackboneSpec, layer: Layer, cells: Cells, width: int) -> list[tuple[int, int, int]]:
    """Rows, columns and channels that a layer may have, the likeliest first.

    What enters the first block of a stage is that stage's in some networks, and in others still the last
    one's. Channels inside attention and MLP are promised by no entry: they are what the network gives.

    Args:
        spec: The backbone.
        layer: The layer.
        cells: Rows and columns of the coarsest grid.
        width: Channels that the network gives.
    """
    stages = [spec.stage_of(layer)]
    if layer.tap == "input":
        stages.append(spec.stage_of(Layer(layer.index - 1)))
    free = layer.tap in UNPROMISED
    return [(*finer(spec, stage.stride, cells), width if free else stage.width) for stage in stages]


def finer(spec: BackboneSpec, stride: int, cells: Cells) -> Cells:
    """Rows and columns of the grid of a stage, from those of the coarsest grid."""
    factor = spec.patch_size // stride
    return cells[0] * factor, cells[1] * factor


def grid_of(tokens: Tensor, prefix: int, cells: Cells) -> Tensor:
    """Patch tokens in their places, [batch rows columns dim]: a view of [batch tokens dim]."""
    return tokens[:, prefix:].view(len(tokens), *cells, tokens.shape[-1])


def map_features(spec: BackboneSpec, layer: Layer, maps: Tensor, batch: int, cells: Cells) -> LayerFeatures:
    """Features of a layer from its feature maps [batch dim height width]; a view.

    Raises:
        InputError: The maps are not those that the entry promises.
    """
    shapes = shapes_of(spec, layer, cells, maps.shape[1])
    expected = [(batch, width, rows, columns) for rows, columns, width in shapes]
    if tuple(maps.shape) not in expected:
        raise InputError(
            f"{spec.name}: layer {layer} should be feature maps [batch channels height width] "
            f"{list(expected[0])}; the network gives {list(maps.shape)}."
        )
    return LayerFeatures(layer, None, maps.permute(0, 2, 3, 1))
