"""What a few trial forwards tell of a network: layouts, grids, widths, prefix tokens, sizes that it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from zoo.architecture import Layout
from zoo.errors import InputError
from zoo.load.module.layouts import (
    NEAR,
    Reading,
    agrees_with_equal_images,
    change_cells,
    constant_tokens,
    distance,
    no_reading,
    readings,
)
from zoo.load.module.streams import Subject, streams_of
from zoo.spec import Stage


@dataclass(frozen=True, slots=True)
class Wishes:
    """What somebody says of a network's tokens; None is found out.

    Attributes:
        layout: How its blocks pass on their features.
        prefix_tokens: Tokens before the patches.
    """

    layout: Layout | None = None
    prefix_tokens: int | None = None

    def admits(self, reading: Reading) -> bool:
        """Whether a reading is what was said."""
        return self.layout in (None, reading.layout) and self.prefix_tokens in (None, reading.prefix)


@dataclass(frozen=True, slots=True)
class Trial:
    """What was found.

    Attributes:
        readings: Of what enters the first block, and of what leaves each block.
        size: Side of the images in pixels.
        final_norm: Path of the norm that follows the last block; "" where none does.
        other_sizes: Why it takes no other sizes than this; "" if it does.
    """

    readings: tuple[Reading, ...]
    size: int
    final_norm: str
    other_sizes: str

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Blocks of equal width and stride in a row."""
        blocks = groupby((one.width, self.size // one.side) for one in self.readings[1:])
        return tuple(Stage(len(list(row)), width, stride) for (width, stride), row in blocks)

    @property
    def prefix(self) -> int:
        """Tokens before the patches."""
        return self.readings[1].prefix

    @property
    def of_tokens(self) -> bool:
        """Whether all blocks pass on tokens."""
        return not any(one.is_map for one in self.readings)


def try_out(subject: Subject, final_norm: str | None, wishes: Wishes) -> Trial:
    """Run forwards of noise and tell what the activations are.

    Args:
        subject: The network.
        final_norm: Path of its final norm, "" for none; None to look for it.
        wishes: What is known of its tokens.

    Raises:
        InputError: Blocks do not run once each, in order; or what they pass on is no square grid of cells,
            not of the image alone, or can be read in several ways.
    """
    base, other = subject.draw(), subject.draw().flip(-1, -2)
    streams, norms = streams_of(subject, torch.stack([base, base, other]))
    first = _first_reading(subject, streams[0], base, wishes)
    found = [first]
    for number, stream in enumerate(streams[1:], start=1):
        found.append(_reading(f"what block {number} of {subject.name} gives", stream, first, subject.size))
    stride = max(subject.size // one.side for one in found)
    if any(stride % (subject.size // one.side) for one in found):
        raise InputError(f"{subject.name} has grids that do not divide each other, which no view can show")
    norm = (norms[0] if norms else "") if final_norm is None else final_norm
    if norm:
        _require_norm(subject, norm, streams[-1])
    return Trial(tuple(found), subject.size, norm, _other_sizes(subject, found, stride))


def _first_reading(subject: Subject, stream: Tensor, base: Tensor, wishes: Wishes) -> Reading:
    """How to read what enters the first block, where a change of the image is still in its place."""
    where = f"what enters the first block of {subject.name}"
    every = readings(stream.shape, 3, subject.size)
    if not every:
        raise no_reading(where, stream.shape, subject.size)
    fitting = [one for one in every if agrees_with_equal_images(stream, one)]
    if not fitting:
        raise _drawn(where)
    fitting = _with_prefix(where, stream, fitting, subject.size)
    admitted = [one for one in fitting if wishes.admits(one)]
    if not admitted:
        raise InputError(f"{where} is {fitting[0]}, which is not what was said of layout and prefix_tokens")
    return _in_place(where, subject, base, admitted)


def _with_prefix(where: str, stream: Tensor, fitting: Sequence[Reading], size: int) -> list[Reading]:
    """Readings whose prefix tokens are those that no image changes, where there are such tokens."""
    if fitting[0].is_map:
        return list(fitting)
    constant = constant_tokens(stream, fitting[0])
    kept = [one for one in fitting if not constant or constant == list(range(one.prefix))]
    if kept:
        return kept
    if constant == list(range(len(constant))):
        raise no_reading(where, stream.shape, size)
    tokens = ", ".join(map(str, constant[:5])) + (", ..." if len(constant) > 5 else "")
    raise InputError(
        f"{where} is [{' '.join(map(str, stream.shape))}], of which tokens {tokens} (from 0) are the same "
        "for all images; such tokens should come first, and then a square of patches"
    )


def _in_place(where: str, subject: Subject, base: Tensor, admitted: Sequence[Reading]) -> Reading:
    """The one reading by which a changed cell of the image is a changed cell of the features."""
    streams: dict[int, Tensor] = {}
    for side in {one.side for one in admitted}:
        streams[side] = streams_of(subject, change_cells(base, side))[0][0]
    near = [one for one in admitted if distance(streams[one.side], one) <= (NEAR if one.side > 3 else 0)]
    found = [one for one in near if one.side == max(every.side for every in near)]
    if not found:
        raise InputError(
            f"{where} could be {admitted[0]}, but where a cell of the image changes, another one of the "
            "features does: patches should follow the prefix tokens row by row"
        )
    if len(found) > 1:
        ways = " or ".join(str(one) for one in found)
        raise InputError(f"{where} may be {ways}; say which by layout= or prefix_tokens=")
    return found[0]


def _reading(where: str, stream: Tensor, first: Reading, size: int) -> Reading:
    """How to read what leaves a block: in the layout of what enters the first, or in the only other one."""
    every = [one for one in readings(stream.shape, 3, size) if one.prefix == first.prefix or one.is_map]
    found = [one for one in every if one.layout == first.layout] or every
    if len(found) != 1:
        raise no_reading(where, stream.shape, size)
    if not agrees_with_equal_images(stream, found[0]):
        raise _drawn(where)
    return found[0]


def _drawn(where: str) -> InputError:
    return InputError(
        f"{where} is not the same for two equal images of a batch: it draws something, mixes the images of a "
        "batch, or has the batch neither as first nor as second axis"
    )


def _require_norm(subject: Subject, path: str, stream: Tensor) -> None:
    """Raise InputError unless a module takes what leaves the last block and keeps its shape."""
    try:
        with torch.no_grad():
            shape = subject.net.get_submodule(path)(stream).shape
    except Exception as error:
        raise InputError(
            f"final_norm {path} does not take what the last block gives: {type(error).__name__}"
        ) from error
    if shape != stream.shape:
        raise InputError(
            f"final_norm {path} makes {list(shape)} of {list(stream.shape)}; a norm keeps the shape"
        )


def _other_sizes(subject: Subject, found: Sequence[Reading], stride: int) -> str:
    """Why the network takes images of one size only; "" where a larger oblong one gives the larger grid."""
    sides = (subject.size + stride, subject.size + 2 * stride)
    try:
        streams, _ = streams_of(subject, subject.draw(*sides)[None])
    except InputError as error:
        return str(error.__cause__ or error).strip().partition("\n")[0] or type(error.__cause__).__name__
    for stream, reading in zip(streams, found, strict=True):
        rows, columns = (length * reading.side // subject.size for length in sides)
        shapes = {
            "tokens": (1, reading.prefix + rows * columns, reading.width),
            "tokens-first": (reading.prefix + rows * columns, 1, reading.width),
            "maps": (1, reading.width, rows, columns),
            "cells": (1, rows, columns, reading.width),
        }
        if tuple(stream.shape) != shapes[reading.layout]:
            return "the grid does not follow the image"
    return ""
