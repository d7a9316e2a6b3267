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

MOST_PREFIX = 64
"""Prefix tokens that a guess admits."""

ALIKE = 0.02
"""How far features of equal images may be apart, as a share of the largest: bfloat16 rounds by 0.004."""

NEAR = 1
"""Cells by which the strongest change may be off: stems of overlapping convolutions reach beyond a cell."""

Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read an activation.

    Attributes:
        layout: Its axes.
        prefix: Tokens before the patches; 0 for maps.
        side: Cells a side of its grid.
        width: Its channels.
    """

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


def readings(shape: Sequence[int], batch: int, size: int) -> list[Reading]:
    """All ways to read an activation of square images, the fewest prefix tokens first.

    Args:
        shape: Its shape.
        batch: Images of the batch.
        size: Side of the images in pixels.
    """
    return [one for one in _readings(tuple(shape), batch) if size % one.side == 0]


def _readings(shape: tuple[int, ...], batch: int) -> Iterator[Reading]:
    if len(shape) == 4 and shape[0] == batch:
        _, first, second, third = shape
        if second == third:
            yield Reading("maps", 0, second, first)
        if first == second:
            yield Reading("cells", 0, first, third)
    if len(shape) == 3:
        for layout, one, tokens in (("tokens", shape[0], shape[1]), ("tokens-first", shape[1], shape[0])):
            if one == batch:
                yield from _token_readings(layout, tokens, shape[2])


def _token_readings(layout: str, tokens: int, width: int) -> Iterator[Reading]:
    known: Layout = "tokens" if layout == "tokens" else "tokens-first"
    for side in range(isqrt(tokens), 0, -1):
        if tokens - side**2 > MOST_PREFIX:
            return
        yield Reading(known, tokens - side**2, side, width)


def grid_of(stream: Tensor, reading: Reading) -> Tensor:
    """Cells of an activation, [batch rows columns dim], float32."""
    found = with_batch_first(stream, reading.layout).float()
    if reading.is_map:
        return found.permute(0, 2, 3, 1)
    return found[:, reading.prefix :].reshape(len(found), reading.side, reading.side, -1)


def agrees_with_equal_images(stream: Tensor, reading: Reading) -> bool:
    """Whether the first two images of a batch, which are equal, have equal features, and the third others."""
    images = with_batch_first(stream, reading.layout).float()
    largest = images.abs().max()
    same, other = ((images[0] - images[place]).abs().max() for place in (1, 2))
    return bool(same <= ALIKE * largest) and bool(other > same)


def constant_tokens(stream: Tensor, reading: Reading) -> list[int]:
    """Tokens that are the same for two different images, the first and the third of a batch."""
    tokens = with_batch_first(stream, reading.layout).float()
    moved = (tokens[0] - tokens[2]).abs().amax(-1)
    return torch.nonzero(moved <= 1e-6 * tokens[0].abs().max()).flatten().tolist()


def cells_to_change(side: int) -> tuple[Cell, Cell]:
    """Two cells of a grid that no confusion of rows and columns brings to the same place."""
    return (side // 8, side - 1 - side // 8), (side - 1 - side // 3, side // 3)


def change_cells(image: Tensor, side: int) -> Tensor:
    """The image, and for each of `cells_to_change` the image with that cell inverted: [3 3 height width]."""
    changed = [image]
    length = image.shape[-1] // side
    for row, column in cells_to_change(side):
        other = image.clone()
        rows, columns = (slice(place * length, (place + 1) * length) for place in (row, column))
        other[:, rows, columns] = 1 - other[:, rows, columns]
        changed.append(other)
    return torch.stack(changed)


def distance(stream: Tensor, reading: Reading) -> int:
    """Cells between a change of the image and the strongest change of the features, the larger of two.

    Args:
        stream: Features of what `change_cells` gives.
        reading: How to read them.
    """
    grid = grid_of(stream, reading)
    worst = 0
    for place, (row, column) in enumerate(cells_to_change(reading.side), start=1):
        moved = (grid[place] - grid[0]).abs().sum(-1).flatten()
        found_row, found_column = divmod(int(moved.argmax()), reading.side)
        worst = max(worst, abs(found_row - row), abs(found_column - column))
    return worst


def no_reading(where: str, shape: Sequence[int], size: int) -> InputError:
    """The error of an activation that is no square grid of an image."""
    sides = " ".join(str(length) for length in shape)
    return InputError(
        f"{where} is [{sides}] for a batch of images of {size} px, which is no square grid of cells with "
        "prefix tokens before it, neither [batch tokens dim] nor [batch dim height width] nor with other axes"
    )
