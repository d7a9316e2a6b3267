"""How absolute position embeddings are fitted to images of another size than those of the training.

All rules resize the training grid bicubically and leave a grid of the training's size alone. ``huggingface``
is what the network's class in transformers does: it tells the resizing the size of the new grid, so that the
edges of both grids line up (for DINOv2 with registers, antialiased as well). ``dino`` tells it a scale,
(cells + 0.1) / training cells, as the authors of DINO do so that rounding never loses a cell; the source
points shift a little. ``timm`` tells it the size and has it antialiased, as timm does: where the new grid is
coarser, the kernel widens with it, and everywhere it is the kernel of image libraries (a = -0.5 instead of
-0.75). Relative and rotary positions have rules of their own, which none of these changes.
"""

from functools import partial
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from zoo.look.weights import position_table
from zoo.spec import Interpolation

OFFSET = 0.1
"""What DINO adds to the number of cells before it divides; ``vision_transformer.py`` of its repository."""


def fitted_positions(table: Tensor, cells: tuple[int, int], rule: Interpolation) -> Tensor:
    """Position embeddings of a grid by a rule.

    Args:
        table: Those of the training, [1 tokens dim]: prefix tokens, then a square grid in row-major order.
        cells: Rows and columns of the grid that is wanted.
        rule: The rule; ``huggingface`` is here what most classes of transformers do.

    Returns:
        [1 prefix + rows * columns, dim], in the table's dtype; resized in float32.
    """
    side = isqrt(table.shape[1])
    if cells == (side, side):
        return table
    prefix = table.shape[1] - side * side
    grid = table[:, prefix:].reshape(1, side, side, -1).permute(0, 3, 1, 2).float()
    if rule == "dino":
        scale = [(count + OFFSET) / side for count in cells]
        fitted = nn.functional.interpolate(grid, scale_factor=scale, mode="bicubic")
    else:
        fitted = nn.functional.interpolate(grid, size=cells, mode="bicubic", antialias=rule == "timm")
    rows = fitted.to(table.dtype).flatten(2).transpose(1, 2)
    return torch.cat([table[:, :prefix], rows], dim=1)


def use_rule(body: nn.Module, stride: int, rule: Interpolation) -> None:
    """Make a network fit its absolute position embeddings by a rule; one that has none stays as it is.

    Args:
        body: A network of transformers, whose own method is that of ``huggingface``.
        stride: Pixels a side of the cells that it adds them to.
        rule: The rule.
    """
    embeddings = getattr(body, "embeddings", None)
    if rule != "huggingface" and embeddings is not None and position_table(embeddings) is not None:
        embeddings.interpolate_pos_encoding = partial(_fitted, embeddings, stride, rule)


def _fitted(embeddings: nn.Module, stride: int, rule: Interpolation, *given: Any) -> Tensor:  # noqa: ANN401
    """Stands in for the method of transformers, which is told the image's sides in pixels last.

    First come the tokens, and the table in some networks; neither is needed.
    """
    height, width = given[-2:]
    table = position_table(embeddings)
    assert table is not None
    return fitted_positions(table.view(1, -1, table.shape[-1]), (height // stride, width // stride), rule)
