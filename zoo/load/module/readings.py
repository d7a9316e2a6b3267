"""What a network's activations mean, told by experiment: which axis is which, and where the patches begin.

A guess is never taken from shapes alone. Of two equal images of a batch the features must be equal, so the
batch axis shows; an image with one changed cell must change most in that cell, so rows, columns and the first
patch show; what no image changes, before the first block, is a prefix token.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

import torch
from torch import Tensor

from zoo.architecture import Layout
from zoo.errors import InputError
from zoo.features.layers import with_batch_first

LAYOUT_WORDS: Mapping[Layout, str] = {
    "tokens": "tokens [batch tokens dim]",
    "tokens-first": "tokens [tokens batch dim]",
    "maps": "feature maps [batch dim height width]",
    "cells": "feature maps [batch height width dim]",
}
"""Layouts as sentences call them."""

MOST_PREFIX = 64  # prefix tokens that a guess admits
ALIKE = 0.02
"""How far features of equal images may be apart, as a share of the largest: bfloat16 rounds by 0.004."""

NEAR = 1
"""Cells by which the strongest change may be off: stems of overlapping convolutions reach beyond a cell."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read an activation: axes, prefix tokens (0 for maps), cells a side of its grid, channels."""

    layout: Layout
    prefix: int
    side: int
    width: int

    @property
    def is_map(self) -> bool:
        """Whether it is a feature map and has no tokens."""
        return not self.layout.startswith("tokens")

    def __str__(self) -> str:
        before = "" if self.is_map else f"{self.prefix} prefix tokens and "
        return (
            f"{before}{self.side} x {self.side} cells of {self.width} channels in {LAYOUT_WORDS[self.layout]}"
        )

    def shape(self, rows: int, columns: int) -> tuple[int, ...]:
        """Shape of what one image of so many rows and columns would give."""
        match self.layout:
            case "maps":
                return 1, self.width, rows, columns
            case "cells":
                return 1, rows, columns, self.width
            case "tokens":
                return 1, self.prefix + rows * columns, self.width
            case "tokens-first":
                return self.prefix + rows * columns, 1, self.width

    def agrees_with_equal_images(self, stream: Tensor) -> bool:
        """Whether the first two images of a batch, which are equal, have equal features, the third others."""
        images = with_batch_first(stream, self.layout).float()
        largest = images.abs().max()
        same, other = ((images[0] - images[index]).abs().max() for index in (1, 2))
        return bool(same <= ALIKE * largest) and bool(other > same)

    def constant_tokens(self, stream: Tensor) -> list[int]:
        """Tokens that are the same for two different images, the first and the third of a batch."""
        tokens = with_batch_first(stream, self.layout).float()
        moved = (tokens[0] - tokens[2]).abs().amax(-1)
        return torch.nonzero(moved <= 1e-6 * tokens[0].abs().max()).flatten().tolist()

    def distance(self, stream: Tensor) -> int:
        """Cells between a change of the image and the strongest change of the features, the larger of two.

        Args:
            stream: Features of what `change_cells` gives.
        """
        maps = with_batch_first(stream, self.layout).float()
        if self.is_map:
            grid = maps.permute(0, 2, 3, 1)
        else:
            grid = maps[:, self.prefix :].reshape(len(maps), self.side, self.side, -1)
        worst = 0
        for index, (row, column) in enumerate(_cells_to_change(self.side), start=1):
            moved = (grid[index] - grid[0]).abs().sum(-1).flatten()
            moved_row, moved_column = divmod(int(moved.argmax()), self.side)
            worst = max(worst, abs(moved_row - row), abs(moved_column - column))
        return worst


def readings(shape: Sequence[int], batch: int, size: int) -> list[Reading]:
    """All ways to read an activation of square images, the fewest prefix tokens first.

    Args:
        shape: Its shape.
        batch: Images of the batch.
        size: Side of the images in pixels.
    """
    return [reading for reading in _readings(tuple(shape), batch) if size % reading.side == 0]


def _readings(shape: tuple[int, ...], batch: int) -> Iterator[Reading]:
    if len(shape) == 4 and shape[0] == batch:
        _, first, second, third = shape
        if second == third:
            yield Reading("maps", 0, second, first)
        if first == second:
            yield Reading("cells", 0, first, third)
    if len(shape) == 3:
        first, second, width = shape
        if first == batch:
            yield from _token_readings("tokens", second, width)
        if second == batch:
            yield from _token_readings("tokens-first", first, width)


def _token_readings(layout: Layout, tokens: int, width: int) -> Iterator[Reading]:
    for side in range(isqrt(tokens), 0, -1):
        if tokens - side**2 > MOST_PREFIX:
            return
        yield Reading(layout, tokens - side**2, side, width)


def _cells_to_change(side: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Two cells of a grid that no confusion of rows and columns brings to the same place."""
    return (side // 8, side - 1 - side // 8), (side - 1 - side // 3, side // 3)


def change_cells(image: Tensor, side: int) -> Tensor:
    """The image, and for each of two cells the image with that cell inverted: [3 3 height width]."""
    changed = [image]
    length = image.shape[-1] // side
    for row, column in _cells_to_change(side):
        other = image.clone()
        rows, columns = (slice(index * length, (index + 1) * length) for index in (row, column))
        other[:, rows, columns] = 1 - other[:, rows, columns]
        changed.append(other)
    return torch.stack(changed)


def no_reading(where: str, shape: Sequence[int], size: int) -> InputError:
    """The error of an activation that is no square grid of an image."""
    sides = " ".join(str(length) for length in shape)
    return InputError(
        f"{where} is [{sides}] for a batch of images of {size} px, which is no square grid of cells with "
        "prefix tokens before it, neither [batch tokens dim] nor [batch dim height width] nor with other axes"
    )
