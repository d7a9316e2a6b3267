"""Tokens in the order of mask units, as Hiera keeps them, put back into rows and columns.

So that pooling takes four neighbours by one maximum, a cell's token stands where the lowest bits of its row
and column say first, those that the first pooling takes away, then the next ones, and at last its unit's row
and column, which no pooling touches. The tokens of the last stage, one a unit, are row by row by themselves.
Source: ``Unroll`` in ``hiera_utils.py`` of Ryali et al., Hiera, ICML 2023, arXiv:2306.00989.
"""

from math import isqrt

from torch import Tensor

from zoo.features import LayerFeatures
from zoo.look.split import Cells, token_features
from zoo.spec import BackboneSpec, Layer


def unit_features(
    spec: BackboneSpec, layer: Layer, stream: Tensor, batch: int, cells: Cells
) -> LayerFeatures:
    """Features of a layer from its tokens [batch tokens dim] in the order of mask units.

    Args:
        spec: The backbone, whose coarsest grid is that of the units.
        layer: The layer.
        stream: Its tokens.
        batch: How many images there are.
        cells: Rows and columns of the coarsest grid.

    Raises:
        InputError: The tokens are not those that the entry promises.
    """
    return token_features(spec, layer, in_rows(stream, cells), batch, cells)


def in_rows(tokens: Tensor, units: Cells) -> Tensor:
    """Tokens row by row, [batch tokens dim]; as they are where they do not fill units of 1, 2, 4, ... a side.

    Args:
        tokens: In the order of mask units, [batch tokens dim].
        units: Rows and columns of the units.
    """
    rows, columns = units
    side = isqrt(tokens.shape[1] // (rows * columns))
    bits = side.bit_length() - 1
    if bits < 1 or (1 << bits) ** 2 * rows * columns != tokens.shape[1]:
        return tokens
    split = tokens.reshape(len(tokens), *(2, 2) * bits, rows, columns, tokens.shape[2])
    # The axes of a bit are those of its row and its column; the highest bits come last, before the unit's.
    of_rows = (1 + 2 * bits, *range(2 * bits - 1, 0, -2))
    of_columns = (2 + 2 * bits, *range(2 * bits, 0, -2))
    return split.permute(0, *of_rows, *of_columns, 3 + 2 * bits).reshape(tokens.shape)
