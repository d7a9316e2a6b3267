"""How to read what the blocks of a network return: grids, widths and prefix tokens, by shapes alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

import torch
from torch import Tensor, nn

from layerboard.zoo.entries.architecture import Layout
from layerboard.zoo.errors import InputError, ensure, in_brackets
from layerboard.zoo.features.layers import with_batch_first
from layerboard.zoo.own.module.blocks import path_of
from layerboard.zoo.own.module.forward import streams_of
from layerboard.zoo.own.module.options import ModuleOptions, OwnNetwork

LAYOUT_WORDS: Mapping[Layout, str] = {
    "tokens": "tokens [batch tokens dim]",
    "tokens-first": "tokens [tokens batch dim]",
    "maps": "feature maps [batch dim height width]",
    "cells": "feature maps [batch height width dim]",
}
MOST_PREFIX = 64  # maximum prefix tokens
BATCH = 3  # images of a forward pass, all different


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read an activation: axes, prefix tokens (0 for maps), cells per side, channels."""

    layout: Layout
    prefix: int
    side: int
    width: int

    @property
    def is_map(self) -> bool:
        """Whether the activation is a feature map without tokens."""
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
class Structure:
    """How to read the input of the first block of a network and the output of each."""

    subject: OwnNetwork
    readings: tuple[Reading, ...]
    final_norm: str  # its path; "" for none
    other_sizes: str  # why the network takes no images of other sizes; "" if it does


def structure_of(subject: OwnNetwork, options: ModuleOptions) -> Structure:
    """Read the shapes of a forward pass of noise.

    Raises InputError if an activation is no square grid, if options say otherwise, or if blocks do not run in
    order.
    """
    image = subject.draw()
    streams, norm = streams_of(subject, torch.stack([image, image.flip(-1), image.flip(-2)]))
    first = _first_reading(subject, streams, options)
    every = [first]
    for number, stream in enumerate(streams[1:], start=1):
        # in the layout of the input of the first block, or in the only other one
        possible = [r for r in _readings(stream.shape, subject.size) if r.prefix == first.prefix or r.is_map]
        same = [reading for reading in possible if reading.layout == first.layout] or possible
        if len(same) != 1:
            raise _no_grid(f"what block {number} of {subject.name} gives", stream, subject.size)
        every += same
    stride = max(subject.size // reading.side for reading in every)
    nested = not any(stride % (subject.size // reading.side) for reading in every)
    ensure(nested, f"{subject.name} has grids of sizes that do not divide each other, so no view fits all")
    norm = _final_norm(subject, streams[-1], norm, options)
    return Structure(subject, tuple(every), norm, _other_sizes(subject, every, stride))


def _no_grid(where: str, stream: Tensor, size: int) -> InputError:
    return InputError(
        f"{where} is {in_brackets(stream.shape)} for a batch of {BATCH} images of {size} px, which is no "
        "square grid of cells of whole pixels with prefix tokens before it, neither [batch tokens dim] nor "
        "[batch dim height width] nor with other axes"
    )


def _first_reading(subject: OwnNetwork, streams: Sequence[Tensor], options: ModuleOptions) -> Reading:
    """How to read the input of the first block: with the fewest prefix tokens, if nothing says more."""
    where = f"what enters the first block of {subject.name}"
    possible = _readings(streams[0].shape, subject.size)
    if possible and not possible[0].is_map:
        possible = _with_constant_prefix(where, streams[0], possible)
    if not possible:
        raise _no_grid(where, streams[0], subject.size)
    admitted = [
        reading
        for reading in possible
        if options.layout in (None, reading.layout) and options.prefix_tokens in (None, reading.prefix)
    ]
    if not admitted:
        raise InputError(f"{where} is {possible[0]}, which contradicts layout= or prefix_tokens=")
    image, cell = subject.draw(), subject.size // admitted[0].side
    changed = image.clone()
    changed[:, :cell, -cell:] = 1 - image[:, :cell, -cell:]
    before, after = (streams_of(subject, each[None])[0][0].float() for each in (image, changed))
    placed = [reading for reading in admitted if _is_in_place(reading, after - before)]
    ensure(placed or admitted[0].is_map, f"{where} are tokens that do not follow row by row, as all must")
    return (placed or admitted)[0]


def _is_in_place(reading: Reading, moved: Tensor) -> bool:
    """Whether a change at the end of the first row of cells moves none more than those there, if read so."""
    moved = with_batch_first(moved, reading.layout)[0]
    amounts = moved.norm(dim=0) if reading.is_map else moved[reading.prefix :].norm(dim=-1)
    cells = amounts.view(reading.side, reading.side)
    return bool(cells[:2, -2:].max() >= cells.max())


def _with_constant_prefix(where: str, stream: Tensor, possible: Sequence[Reading]) -> list[Reading]:
    """Readings whose prefix tokens are those that are the same for all images, if there are such tokens.

    Raises InputError if such tokens are not the first ones: a class token among or after the patches.
    """
    tokens = with_batch_first(stream, possible[0].layout).float()
    moved = (tokens[1:] - tokens[0]).abs().amax(dim=(0, 2))
    constant = torch.nonzero(moved <= 1e-6 * tokens[0].abs().max()).flatten().tolist()
    if constant and constant != list(range(len(constant))):
        listed = ", ".join(map(str, constant[:5])) + (", ..." if len(constant) > 5 else "")
        raise InputError(
            f"{where} is {in_brackets(stream.shape)}, of which tokens {listed} (from 0) are the same for all "
            "images; such tokens should come first, and then a square of patches"
        )
    return [reading for reading in possible if not constant or reading.prefix == len(constant)]


def _final_norm(subject: OwnNetwork, stream: Tensor, found: str, options: ModuleOptions) -> str:
    """Path of the final norm, which is found if options name none; "" for none.

    Raises InputError unless the module takes the output of the last block and keeps its shape.
    """
    given, net = options.final_norm, subject.net
    path = given.removeprefix("net.") if isinstance(given, str) else found
    if isinstance(given, nn.Module):
        path = path_of(net, given, "final_norm")
    if given is False or not path:
        return ""
    ensure(path in dict(net.named_modules()), f"final_norm={given!r} names no module of {subject.name}")
    try:
        shape = net.get_submodule(path)(stream).shape
    except Exception as error:
        reason = f"fails on the output of the last block: {type(error).__name__}"
        raise InputError(f"final_norm {path} {reason}") from error
    changes = f"makes {list(shape)} of {list(stream.shape)}; a norm keeps the shape"
    ensure(shape == stream.shape, f"final_norm {path} {changes}")
    return path


def _other_sizes(subject: OwnNetwork, every: Sequence[Reading], stride: int) -> str:
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
