"""What a few trial forwards tell of a network: layouts, grids, widths, prefix tokens, sizes that it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from zoo.errors import InputError, first_line
from zoo.load.module.forward import TrialNetwork, streams_of
from zoo.load.module.hints import ModuleHints
from zoo.load.module.readings import NEAR, Reading, change_cells, no_reading, readings
from zoo.spec import Stage


@dataclass(frozen=True, slots=True)
class Trial:
    """How to read what enters the first block and what leaves each; the path of the norm that follows, or "".

    ``size`` is the side of the images in pixels; ``other_sizes`` says why the network takes no others, "" if
    it does.
    """

    readings: tuple[Reading, ...]
    size: int
    final_norm: str
    other_sizes: str

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Blocks of equal width and stride in a row."""
        blocks = groupby((reading.width, self.size // reading.side) for reading in self.readings[1:])
        return tuple(Stage(len(list(row)), width, stride) for (width, stride), row in blocks)

    @property
    def prefix(self) -> int:
        """Tokens before the patches."""
        return self.readings[1].prefix

    @property
    def of_tokens(self) -> bool:
        """Whether all blocks pass on tokens."""
        return not any(reading.is_map for reading in self.readings)


def try_out(subject: TrialNetwork, final_norm: str | None, hints: ModuleHints) -> Trial:
    """Run forwards of noise and tell what the activations are.

    The path of the final norm is "" for none; None to look for it. Raises InputError where blocks do not run
    once each, in order; or what they pass on is no square grid of cells, not of the image alone, or can be
    read in several ways.
    """
    base, other = subject.draw(), subject.draw().flip(-1, -2)
    streams, norms = streams_of(subject, torch.stack([base, base, other]))
    first = _first_reading(subject, streams[0], base, hints)
    every = [first]
    for number, stream in enumerate(streams[1:], start=1):
        every.append(_reading(f"what block {number} of {subject.name} gives", stream, first, subject.size))
    stride = max(subject.size // reading.side for reading in every)
    if any(stride % (subject.size // reading.side) for reading in every):
        raise InputError(f"{subject.name} has grids that do not divide each other, which no view can show")
    norm = (norms[0] if norms else "") if final_norm is None else final_norm
    if norm:
        _require_norm(subject, norm, streams[-1])
    return Trial(tuple(every), subject.size, norm, _other_sizes(subject, every, stride))


def _first_reading(subject: TrialNetwork, stream: Tensor, base: Tensor, hints: ModuleHints) -> Reading:
    """How to read what enters the first block, where a change of the image is still in its place."""
    where = f"what enters the first block of {subject.name}"
    possible = readings(stream.shape, 3, subject.size)
    if not possible:
        raise no_reading(where, stream.shape, subject.size)
    possible = [reading for reading in possible if reading.agrees_with_equal_images(stream)]
    if not possible:
        raise _draws_or_mixes(where)
    if not possible[0].is_map:
        possible = _with_prefix(where, stream, possible, subject.size)
    admitted = [
        reading
        for reading in possible
        if hints.layout in (None, reading.layout) and hints.prefix_tokens in (None, reading.prefix)
    ]
    if not admitted:
        raise InputError(f"{where} is {possible[0]}, which is not what was said of layout and prefix_tokens")
    return _in_place(where, subject, base, admitted)


def _with_prefix(where: str, stream: Tensor, possible: Sequence[Reading], size: int) -> list[Reading]:
    """Readings whose prefix tokens are those that no image changes, where there are such tokens."""
    constant = possible[0].constant_tokens(stream)
    fitting = [reading for reading in possible if not constant or constant == list(range(reading.prefix))]
    if fitting:
        return fitting
    if constant == list(range(len(constant))):
        raise no_reading(where, stream.shape, size)
    tokens = ", ".join(map(str, constant[:5])) + (", ..." if len(constant) > 5 else "")
    raise InputError(
        f"{where} is [{' '.join(map(str, stream.shape))}], of which tokens {tokens} (from 0) are the same "
        "for all images; such tokens should come first, and then a square of patches"
    )


def _in_place(where: str, subject: TrialNetwork, base: Tensor, admitted: Sequence[Reading]) -> Reading:
    """The one reading by which a changed cell of the image is a changed cell of the features."""
    streams = {
        side: streams_of(subject, change_cells(base, side))[0][0]
        for side in {reading.side for reading in admitted}
    }
    near = [
        reading
        for reading in admitted
        if reading.distance(streams[reading.side]) <= (NEAR if reading.side > 3 else 0)
    ]
    if not near:
        raise InputError(
            f"{where} could be {admitted[0]}, but where a cell of the image changes, another one of the "
            "features does: patches should follow the prefix tokens row by row"
        )
    finest = [reading for reading in near if reading.side == max(other.side for other in near)]
    if len(finest) > 1:
        raise InputError(
            f"{where} may be {' or '.join(map(str, finest))}; say which by layout= or prefix_tokens="
        )
    return finest[0]


def _reading(where: str, stream: Tensor, first: Reading, size: int) -> Reading:
    """How to read what leaves a block: in the layout of what enters the first, or in the only other one."""
    possible = [r for r in readings(stream.shape, 3, size) if r.prefix == first.prefix or r.is_map]
    same = [reading for reading in possible if reading.layout == first.layout] or possible
    if len(same) != 1:
        raise no_reading(where, stream.shape, size)
    if not same[0].agrees_with_equal_images(stream):
        raise _draws_or_mixes(where)
    return same[0]


def _draws_or_mixes(where: str) -> InputError:
    return InputError(
        f"{where} is not the same for two equal images of a batch: it draws something, mixes the images of a "
        "batch, or has the batch neither as first nor as second axis"
    )


def _require_norm(subject: TrialNetwork, path: str, stream: Tensor) -> None:
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


def _other_sizes(subject: TrialNetwork, every: Sequence[Reading], stride: int) -> str:
    """Why the network takes images of one size only; "" where a larger oblong one gives the larger grid."""
    sides = (subject.size + stride, subject.size + 2 * stride)
    try:
        streams, _ = streams_of(subject, subject.draw(*sides)[None])
    except InputError as error:
        return first_line(error.__cause__ or error)
    for stream, reading in zip(streams, every, strict=True):
        rows, columns = (length * reading.side // subject.size for length in sides)
        if tuple(stream.shape) != reading.shape(rows, columns):
            return "the grid does not follow the image"
    return ""
