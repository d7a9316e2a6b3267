"""Findings of a few trial forward passes: layouts, grids, widths, prefix tokens, supported sizes.

A guess is never based on shapes alone. Two equal images in a batch must have equal features, which shows the
batch axis; an image with one changed cell must change most in that cell, which shows rows, columns and the
first patch; tokens before the first block that no image changes are prefix tokens.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import isqrt

import torch
from torch import Tensor

from layerboard.zoo.entries.architecture import Layout, Sublayers
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.hooked import exact_float32
from layerboard.zoo.features.layers import with_batch_first
from layerboard.zoo.features.taps import FUSED, eager, shows_probabilities, watch_attention
from layerboard.zoo.own.module.blocks import Paths, find_blocks
from layerboard.zoo.own.module.forward import TrialNetwork, in_brackets, streams_of
from layerboard.zoo.own.module.hints import ModuleHints
from layerboard.zoo.own.module.independence import require_own_features

LAYOUT_WORDS: Mapping[Layout, str] = {
    "tokens": "tokens [batch tokens dim]",
    "tokens-first": "tokens [tokens batch dim]",
    "maps": "feature maps [batch dim height width]",
    "cells": "feature maps [batch height width dim]",
}
MOST_PREFIX = 64  # maximum prefix tokens that a guess admits
BATCH = 3  # images of a trial: two equal ones and another one
# Tolerance for features of equal images, as a share of the largest: bfloat16 rounds by 0.004.
ALIKE = 0.02
# Cells by which the strongest change may be off: stems of overlapping convolutions reach beyond a cell.
NEAR = 1


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read an activation: axes, prefix tokens (0 for maps), cells per side, channels."""

    layout: Layout
    prefix: int
    side: int
    width: int

    @property
    def is_map(self) -> bool:
        """Whether it is a feature map without tokens."""
        return not self.layout.startswith("tokens")

    def __str__(self) -> str:
        before = "" if self.is_map else f"{self.prefix} prefix tokens and "
        cells = f"{self.side} x {self.side} cells"
        return f"{before}{cells} of {self.width} channels in {LAYOUT_WORDS[self.layout]}"

    def fits(self, stream: Tensor, rows: int, columns: int) -> bool:
        """Whether this is the output for one image of that many rows and columns of cells."""
        tokens = self.prefix + rows * columns
        shape = (1, self.width, rows, columns) if self.is_map else (1, tokens, self.width)
        return stream.ndim == len(shape) and with_batch_first(stream, self.layout).shape == shape

    def agrees_with_equal_images(self, stream: Tensor) -> bool:
        """Whether the first two images of a batch, which are equal, have equal features, unlike the third."""
        images = with_batch_first(stream, self.layout).float()
        same, other = ((images[0] - images[index]).abs().max() for index in (1, 2))
        return bool(same <= ALIKE * images.abs().max()) and bool(other > same)

    def distance(self, stream: Tensor) -> int:
        """Cells between a change of the image and the strongest change of the features of `_change_cells`."""
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


def _cells_to_change(side: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Two cells of a grid that remain distinct if rows and columns are confused."""
    return (side // 8, side - 1 - side // 8), (side - 1 - side // 3, side // 3)


def _change_cells(image: Tensor, side: int) -> Tensor:
    """The image, and for each of two cells the image with that cell inverted: [3 3 height width]."""
    changed = [image]
    length = image.shape[-1] // side
    for row, column in _cells_to_change(side):
        other = image.clone()
        rows, columns = (slice(index * length, (index + 1) * length) for index in (row, column))
        other[:, rows, columns] = 1 - other[:, rows, columns]
        changed.append(other)
    return torch.stack(changed)


def _readings(shape: Sequence[int], size: int) -> list[Reading]:
    """All ways to read an activation of images with that many pixels per side, fewest prefix tokens first."""
    every: list[Reading] = []
    if len(shape) == 4 and shape[0] == BATCH:
        _, first, second, third = shape
        every += [Reading("maps", 0, second, first)] if second == third else []
        every += [Reading("cells", 0, first, third)] if first == second else []
    layouts: tuple[tuple[Layout, int], ...] = (("tokens", 0), ("tokens-first", 1))
    for layout, axis in layouts if len(shape) == 3 else ():
        tokens = shape[1 - axis]
        sides = range(isqrt(tokens), 0, -1) if shape[axis] == BATCH else ()
        every += [Reading(layout, tokens - side**2, side, shape[2]) for side in sides]
    return [reading for reading in every if reading.prefix <= MOST_PREFIX and size % reading.side == 0]


@dataclass(frozen=True, slots=True)
class Trial:
    """How to read the input of the first block of a network and the output of each."""

    subject: TrialNetwork
    readings: tuple[Reading, ...]
    final_norm: str  # its path; "" for none
    moved: float  # share of their length by which features of an image change with the batch: rounding
    other_sizes: str  # why the network takes no images of other sizes; "" if it does


def try_out(subject: TrialNetwork, blocks: Paths | None, final_norm: str | None, hints: ModuleHints) -> Trial:
    """Run forward passes of noise with images of the subject's size, and find how to read activations.

    Blocks and norm are searched for if they are None; the norm is "" for none.
    """
    blocks = blocks or find_blocks(subject.net, subject.images(subject.draw()[None]))
    subject = replace(subject, blocks=blocks)
    base, other = subject.draw(), subject.draw().flip(-1, -2)
    streams, norms = streams_of(subject, torch.stack([base, base, other]))
    first = _first_reading(subject, streams[0], base, hints)
    every = [first]
    for number, stream in enumerate(streams[1:], start=1):
        # in the layout of the input of the first block, or in the only other one
        where = f"what block {number} of {subject.name} gives"
        possible = [r for r in _readings(stream.shape, subject.size) if r.prefix == first.prefix or r.is_map]
        same = [reading for reading in possible if reading.layout == first.layout] or possible
        every += _agreeing(where, stream, same if len(same) == 1 else [], subject.size)
    stride = max(subject.size // reading.side for reading in every)
    if any(stride % (subject.size // reading.side) for reading in every):
        raise InputError(
            f"{subject.name} has grids of sizes that do not divide each other, so no view fits all"
        )
    norm = (norms[0] if norms else "") if final_norm is None else final_norm
    if norm:
        _require_norm(subject, norm, streams[-1])
    moved = _require_own_features(subject, every, norm)
    return Trial(subject, tuple(every), norm, moved, _other_sizes(subject, every, stride))


def _agreeing(where: str, stream: Tensor, possible: Sequence[Reading], size: int) -> list[Reading]:
    """Readings by which equal images have equal features; raises InputError if there are none."""
    if not possible:
        raise _no_grid(where, stream, size)
    agreeing = [reading for reading in possible if reading.agrees_with_equal_images(stream)]
    if not agreeing:
        raise InputError(
            f"{where} is not the same for two equal images of a batch: it draws something, mixes the images "
            "of a batch, or has the batch neither as first nor as second axis"
        )
    return agreeing


def _no_grid(where: str, stream: Tensor, size: int) -> InputError:
    return InputError(
        f"{where} is [{in_brackets(stream)}] for a batch of images of {size} px, which is no square grid of "
        "cells with prefix tokens before it, neither [batch tokens dim] nor [batch dim height width] nor "
        "with other axes"
    )


def _first_reading(subject: TrialNetwork, stream: Tensor, base: Tensor, hints: ModuleHints) -> Reading:
    """How to read the input of the first block, where a change of the image is still in its place."""
    where = f"what enters the first block of {subject.name}"
    possible = _agreeing(where, stream, _readings(stream.shape, subject.size), subject.size)
    if not possible[0].is_map:
        possible = _with_prefix(where, stream, possible, subject.size)
    admitted = [
        reading
        for reading in possible
        if hints.layout in (None, reading.layout) and hints.prefix_tokens in (None, reading.prefix)
    ]
    if not admitted:
        raise InputError(f"{where} is {possible[0]}, which contradicts layout= or prefix_tokens=")
    sides = {reading.side for reading in admitted}
    streams = {side: streams_of(subject, _change_cells(base, side))[0][0] for side in sides}
    near = [each for each in admitted if each.distance(streams[each.side]) <= (NEAR if each.side > 3 else 0)]
    if not near:
        raise InputError(
            f"{where} could be {admitted[0]}, but a change in one cell of the image changes another cell of "
            "the features: patches should follow the prefix tokens row by row"
        )
    finest = [reading for reading in near if reading.side == max(other.side for other in near)]
    if len(finest) > 1:
        choice = " or ".join(map(str, finest))
        raise InputError(f"{where} may be {choice}; say which by layout= or prefix_tokens=")
    return finest[0]


def _with_prefix(where: str, stream: Tensor, possible: Sequence[Reading], size: int) -> list[Reading]:
    """Readings whose prefix tokens are exactly those that no image changes, if there are such tokens."""
    tokens = with_batch_first(stream, possible[0].layout).float()
    moved = (tokens[0] - tokens[2]).abs().amax(-1)
    constant = torch.nonzero(moved <= 1e-6 * tokens[0].abs().max()).flatten().tolist()
    fitting = [reading for reading in possible if not constant or constant == list(range(reading.prefix))]
    if fitting:
        return fitting
    if constant == list(range(len(constant))):
        raise _no_grid(where, stream, size)
    listed = ", ".join(map(str, constant[:5])) + (", ..." if len(constant) > 5 else "")
    raise InputError(
        f"{where} is [{in_brackets(stream)}], of which tokens {listed} (from 0) are the same for all images; "
        "such tokens should come first, and then a square of patches"
    )


def _require_norm(subject: TrialNetwork, path: str, stream: Tensor) -> None:
    """Raise InputError unless a module takes the output of the last block and keeps its shape."""
    try:
        with torch.no_grad():
            shape = subject.net.get_submodule(path)(stream).shape
    except Exception as error:
        reason = f"fails on the output of the last block: {type(error).__name__}"
        raise InputError(f"final_norm {path} {reason}") from error
    if shape != stream.shape:
        raise InputError(
            f"final_norm {path} makes {list(shape)} of {list(stream.shape)}; a norm keeps the shape"
        )


def _require_own_features(subject: TrialNetwork, every: Sequence[Reading], norm: str) -> float:
    """Raise InputError unless features of an image depend on nothing but the image; how far they move."""

    def show(pixels: Tensor) -> dict[str, Tensor]:
        streams, _ = streams_of(subject, pixels / 255)
        shown = {f"layer {layer}": stream for layer, stream in enumerate(streams)}
        layouts = [reading.layout for reading in every]
        if norm:
            with torch.no_grad(), exact_float32():
                shown["layer final"] = subject.net.get_submodule(norm)(streams[-1])
            layouts.append(layouts[-1])
        pairs = zip(shown.items(), layouts, strict=True)
        return {layer: with_batch_first(stream, layout) for (layer, stream), layout in pairs}

    return require_own_features(subject.name, show, subject.size)


def _other_sizes(subject: TrialNetwork, every: Sequence[Reading], stride: int) -> str:
    """Why the network takes images of one size only; "" if a larger non-square one gives the larger grid."""
    sides = (subject.size + stride, subject.size + 2 * stride)
    try:
        streams, _ = streams_of(subject, subject.draw(*sides)[None])
    except InputError:
        return f"its forward fails on {sides[1]} x {sides[0]} px"
    for stream, reading in zip(streams, every, strict=True):
        rows, columns = (length * reading.side // subject.size for length in sides)
        if not reading.fits(stream, rows, columns):
            return "the grid does not follow the image"
    return ""


def find_attention(trial: Trial) -> tuple[str, int]:
    """Path in each block of its one attention that can show probabilities, and its heads; "", 0 if none.

    The path is `FUSED` if no module can, but each block calls torch's fused attention once. Each row must sum
    to 1 over the tokens of the block: attention inside windows is not accepted.
    """
    subject, net = trial.subject, trial.subject.net
    blocks = [net.get_submodule(path) for path in subject.blocks]
    names = {name for block in blocks for name, part in block.named_modules() if shows_probabilities(part)}
    if len(names) > 1 or any(reading.is_map for reading in trial.readings):
        return "", 0
    parts = Sublayers(attends=next(iter(names), FUSED))
    shown: list[Tensor | None] = []
    try:
        with ExitStack() as hooks, torch.no_grad(), exact_float32():
            hooks.enter_context(eager(net, parts))
            for block in blocks:
                for hook in watch_attention(parts, block, shown.append):
                    hooks.callback(hook.remove)
            net(subject.images(subject.draw()[None]))
    except Exception:  # any error: the user's network cannot do this
        return "", 0
    tokens = trial.readings[-1].prefix + trial.readings[-1].side ** 2
    heads = 0 if not shown or shown[0] is None else shown[0].shape[1]
    fits = [
        maps is not None
        and maps.shape == (1, heads, tokens, tokens)
        and bool(((maps.sum(-1) - 1).abs() < ALIKE).all())
        for maps in shown
    ]
    return (parts.attends, heads) if len(fits) == len(blocks) and all(fits) else ("", 0)
