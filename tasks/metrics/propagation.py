"""Propagation of the first frame's labels through a video by the similarity of its tokens.

Source: Jabri et al., Space-Time Correspondence as a Contrastive Random Walk, NeurIPS 2020, and the DAVIS
evaluation of Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from tasks.metrics.arrays import VOID, Integers, Labels
from tasks.metrics.cell_areas import cell_areas
from tasks.metrics.label_map import first_largest

WHOLE = 512  # a grid of up to so many tokens is measured at once on a CPU
WHOLE_GPU = (
    2048  # and elsewhere: as in the paper's protocol and ours at 16 pixels a token, in 134 MB for 8 frames
)
TILE_CPU = (8, 16)  # query tokens measured together: large enough for fast products, small next to the window
TILE_GPU = (16, 32)
SIMILARITIES = 1 << 24  # similarities held at a time where there is no window
CONSTANT = 1e-6


@dataclass(frozen=True, slots=True)
class _Tile:
    """Query tokens [top:bottom, left:right] and the source tokens that some of their windows cover."""

    top: int
    bottom: int
    left: int
    right: int
    rows: slice
    columns: slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Which tokens of the frames before it a token listens to, and how much.

    Attributes:
        n_last_frames: Frames that are sources beside the first one.
        topk: Sources that count for a token.
        radius: Tokens that the window reaches to each side; 0 for no window.
        circle: Whether the window holds tokens whose Euclidean distance is at most the radius, instead of a
            square.
        temperature: Of the weights, positive.

    Raises:
        ValueError: A number is out of range.
    """

    n_last_frames: int
    topk: int
    radius: float
    circle: bool
    temperature: float

    def __post_init__(self) -> None:
        if self.n_last_frames < 0 or self.topk < 1 or self.radius < 0 or not self.temperature > 0:
            found = f"{self.n_last_frames}, {self.topk}, {self.radius}, {self.temperature}"
            raise ValueError(f"n_last_frames, topk, radius or temperature is out of range: {found}")


class Propagation:
    """Carries the label map of one layer from frame to frame, and never asks for a value on the way.

    Sources of a frame are the first frame and the latest ones before it. A token's label is the mean of the
    sources' labels in its window, weighted by exp(cosine / temperature); only sources at least as similar as
    the topk-th best of all frames together count, ties included. A token that is NaN or infinite makes the
    labels of all tokens NaN that have it in their window; `Propagator` refuses it instead.
    """

    def __init__(self, first_features: Tensor, first_labels: Tensor, heard: Neighbourhood) -> None:
        """Start a video.

        Args:
            first_features: [height width dim] tokens of the first frame, any length of vector.
            first_labels: [height width channels], one-hot or soft; channel 0 is background.
            heard: What a token listens to.

        Raises:
            ValueError: Shapes do not fit.
        """
        _check_first(first_features, first_labels)
        self._look(first_features, "tokens")
        self._look(first_labels, "the first labels")
        self._shape = first_features.shape
        self._frames, self._topk = 1 + heard.n_last_frames, heard.topk
        self._temperature = heard.temperature
        tokens = _tokens(first_features)
        height, width, _ = self._shape
        self._radius, self._circle = heard.radius or float(height + width), heard.circle
        reach = min(int(self._radius), max(height, width))
        self._tiles = tuple(_tiles(height, width, reach, self._frames, tokens.is_cpu))
        self._windows: dict[tuple[tuple[int, int, int], ...], Tensor] = {}
        self._bank = tokens[:, :, None].contiguous()
        self._labels = first_labels.to(tokens, non_blocking=True)[:, :, None].contiguous()
        self._oldest = 1

    @torch.no_grad()
    def step(self, features: Tensor) -> Tensor:
        """Soft label map of the next frame: [height width channels], at least float32.

        Args:
            features: [height width dim] tokens of the frame.

        Raises:
            ValueError: Another shape than the first frame's.
        """
        if features.shape != self._shape:
            found = f"{tuple(features.shape)} after {tuple(self._shape)}"
            raise ValueError(f"expected tokens of the first frame's shape, found {found}")
        self._look(features, "tokens")
        tokens = _tokens(features).to(self._bank)
        soft = tokens.new_empty((*self._shape[:2], self._labels.shape[-1]))
        for tile in self._tiles:
            part = soft[tile.top : tile.bottom, tile.left : tile.right]
            part.copy_(self._measure(tokens, tile).view(part.shape))
        self._remember(tokens, soft)
        return soft

    def _look(self, values: Tensor, what: str) -> None:
        """Look whether values are finite: here never, since the host would wait for them."""

    def _measure(self, tokens: Tensor, tile: _Tile) -> Tensor:
        """Label maps of a tile's queries: [queries channels]."""
        query = tokens[tile.top : tile.bottom, tile.left : tile.right].flatten(0, 1).T.contiguous()
        source = self._bank[tile.rows, tile.columns]
        rows, columns, frames, _ = source.shape
        similarity = torch.bmm(source.flatten(1, 2), query.expand(rows, *query.shape))
        similarity = similarity.view(rows, columns, frames, -1)
        outside = self._outside(tile, tokens)
        value, place = _best(similarity, outside, self._topk + 1)
        kept = min(self._topk, len(value))
        labels = self._labels[tile.rows, tile.columns].flatten(0, 2)
        tied = (value[kept:] == value[kept - 1]) & value[kept:].isfinite()
        if not value.is_cpu or bool(tied.any()):  # a device is not asked, which takes the way for ties
            similarity += outside[:, :, None]
            weight = (similarity - value[0]).div_(self._temperature).exp_()
            weight = weight.mul_(similarity >= value[kept - 1]).flatten(0, 2)
            return (weight.T @ labels) / weight.sum(0)[:, None]
        weight = ((value[:kept] - value[0]) / self._temperature).softmax(0)
        return torch.einsum("kq,kqc->qc", weight, labels[place[:kept]])

    def _outside(self, tile: _Tile, like: Tensor) -> Tensor:
        """What excludes cells outside the queries' windows when added: 0 and -inf.

        [rows columns queries].
        """
        shape = (tile.bottom - tile.top, tile.right - tile.left)
        key = (
            (tile.rows.start - tile.top, tile.rows.stop - tile.top, shape[0]),
            (tile.columns.start - tile.left, tile.columns.stop - tile.left, shape[1]),
        )
        if key not in self._windows:
            cells = partial(torch.arange, device=like.device)
            rows, columns = (
                (cells(start, stop)[:, None] - cells(length)).abs() for start, stop, length in key
            )
            down, across = rows[:, None, :, None], columns[None, :, None, :]
            if self._circle:
                outside = (down.square() + across.square() > self._radius**2).flatten(2)
            else:
                outside = ((down > self._radius) | (across > self._radius)).flatten(2)
            self._windows[key] = like.new_zeros(outside.shape).masked_fill_(outside, -torch.inf)
        return self._windows[key]

    def _remember(self, tokens: Tensor, soft: Tensor) -> None:
        """Make the frame a source; it takes the place of the oldest one but the first once all are taken."""
        if self._frames == 1:
            return
        if self._bank.shape[2] < self._frames:
            self._bank = torch.cat([self._bank, tokens[:, :, None]], dim=2)
            self._labels = torch.cat([self._labels, soft[:, :, None]], dim=2)
            return
        self._bank[:, :, self._oldest] = tokens
        self._labels[:, :, self._oldest] = soft
        self._oldest = self._oldest % (self._frames - 1) + 1


class Propagator(Propagation):
    """`Propagation` that raises ValueError where a token or a first label is NaN or infinite."""

    def _look(self, values: Tensor, what: str) -> None:
        if not bool(torch.isfinite(values).all()):
            raise ValueError(f"{what} must not hold NaN or infinite values")


def seed_labels(mask: Labels, grid: tuple[int, int], keep_vanished: bool) -> Tensor:
    """The first frame's object mask on the token grid: [height width channels] float32, one-hot.

    The mask is resized by nearest neighbour. With ``keep_vanished`` channels go up to the largest id of the
    full mask, and an object that would vanish takes the token that it covers most (ties: first row, then
    column) of those that are not another object's only one; where no such token is left, it shares one by
    halves. Without it channels end at the largest id that is still there.

    Args:
        mask: [image height, image width] object ids; 0 and 255 are background.
        grid: Height and width in tokens.
        keep_vanished: Whether small objects survive.

    Raises:
        ValueError: The mask is no uint8 image or the grid is empty.
    """
    if mask.ndim != 2 or not mask.size or mask.dtype != np.uint8:
        raise ValueError(f"expected a mask [height width] of uint8, found {mask.shape} {mask.dtype}")
    if min(grid) < 1:
        raise ValueError(f"expected a grid of at least one token, found {grid}")
    clean = np.where(mask == VOID, np.uint8(0), mask)
    small = _nearest(clean, (grid[1], grid[0])).astype(np.int64)
    channels = 1 + int((clean if keep_vanished else small).max())
    labels = np.eye(channels, dtype=np.float32)[small]
    if keep_vanished:
        present = np.bincount(clean.ravel(), minlength=channels) > 0
        vanished = np.flatnonzero(present & (labels.sum(axis=(0, 1)) == 0))
        for number in vanished[vanished > 0]:
            _rescue(labels, int(number), cell_areas(clean == number, grid))
    return torch.from_numpy(labels)


def decode_nearest(soft: Tensor, size: tuple[int, int]) -> Labels:
    """Object ids of a soft label map at the image's size, without interpolation: [image height, image width].

    Every channel is scaled to [0, 1] over the frame, a constant one to 0; the largest wins (ties: lower id).
    Source: the tracking notebook of DINOv3 (facebookresearch/dinov3, commit 6876159).

    Args:
        soft: [height width channels].
        size: Image width and height.

    Raises:
        ValueError: Wrong shape or size, or a value is NaN or infinite.
    """
    if soft.ndim != 3 or not soft.numel() or min(size) < 1:
        found = f"{tuple(soft.shape)} and {size}"
        raise ValueError(f"expected a map [height width channels] and a size, found {found}")
    if not bool(torch.isfinite(soft).all()):
        raise ValueError("the label map must not hold NaN or infinite values")
    # the pixels of a token are alike, and every token has one: what wins can be found token by token
    low, high = soft.amin((0, 1)), soft.amax((0, 1))
    scaled = torch.where(high > low, (soft - low) / (high - low), 0)
    ids = first_largest(scaled.permute(2, 0, 1)).cpu().numpy()
    rows, columns = (
        np.arange(length) * cells // length
        for length, cells in zip((size[1], size[0]), ids.shape, strict=True)
    )
    return np.asarray(ids[rows][:, columns])


def decode(soft: Tensor, size: tuple[int, int], patch: int) -> Labels:
    """Object ids of a soft label map at the image's size: [image height, image width].

    The map is upsampled bilinearly by the patch size, each channel with a positive maximum is scaled to
    [0, 1] over the frame, the largest channel wins (ties: lower id) and ids are resized by nearest neighbour.
    A positive channel that is constant has no range to scale: it counts as 1 everywhere.

    Args:
        soft: [height width channels].
        size: Image width and height.
        patch: Pixels a token.

    Raises:
        ValueError: Wrong shape, size or patch, or a value is NaN or infinite.
    """
    if soft.ndim != 3 or not soft.numel() or min(*size, patch) < 1:
        found = f"{tuple(soft.shape)}, {size}, {patch}"
        raise ValueError(f"expected a map [height width channels], a size and a patch, found {found}")
    if not bool(torch.isfinite(soft).all()):
        raise ValueError("the label map must not hold NaN or infinite values")
    shape = (soft.shape[0] * patch, soft.shape[1] * patch)
    large = functional.interpolate(soft.permute(2, 0, 1)[None], size=shape, mode="bilinear")[0]
    low, high = large.amin((1, 2), keepdim=True), large.amax((1, 2), keepdim=True)
    constant = high - low <= CONSTANT * high.abs()
    scaled = torch.where(constant, 1.0, (large - low) / torch.where(constant, 1.0, high - low))
    ids = first_largest(torch.where(high > 0, scaled, large))
    return _nearest(ids.cpu().numpy(), size)


def _check_first(features: Tensor, labels: Tensor) -> None:
    shape, other = tuple(features.shape), tuple(labels.shape)
    if len(shape) != 3 or len(other) != 3 or other[:2] != shape[:2] or 0 in (*shape, *other):
        found = f"{shape} and {other}"
        raise ValueError(f"expected [height width dim] and [height width channels], found {found}")


def _tokens(features: Tensor) -> Tensor:
    """Tokens of length 1, at least float32."""
    return functional.normalize(features if features.dtype == torch.float64 else features.float(), dim=-1)


def _tiles(height: int, width: int, radius: int, frames: int, cpu: bool) -> Iterator[_Tile]:
    """Tiles that cover a grid row by row."""
    tall, wide = TILE_CPU if cpu else TILE_GPU
    if height * width <= (WHOLE if cpu else WHOLE_GPU):
        tall, wide = height, width
    elif 2 * radius >= max(height, width):
        tall, wide = max(1, SIMILARITIES // (frames * height * width * width)), width
    for top in range(0, height, tall):
        for left in range(0, width, wide):
            bottom, right = min(top + tall, height), min(left + wide, width)
            rows = slice(max(0, top - radius), min(height, bottom + radius))
            columns = slice(max(0, left - radius), min(width, right + radius))
            yield _Tile(top, bottom, left, right, rows, columns)


def _best(similarity: Tensor, outside: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each query, descending, and where they stand: [k queries] each.

    The k largest values lie in the k cells of largest maxima over frames, and these in the k columns of
    largest maxima over rows, so only few are sorted.

    Args:
        similarity: [rows columns frames queries].
        outside: What excludes cells when added: [rows columns queries] of 0 and -inf.
        k: Values wanted; fewer come back where there are fewer.
    """
    rows, columns, frames, _ = similarity.shape
    highest = similarity.amax(2) + outside
    column = highest.amax(0).topk(min(k, columns), dim=0).indices
    among = highest.gather(1, column.expand(rows, *column.shape)).flatten(0, 1)
    top, place = among.topk(min(k, len(among)), dim=0)
    cell = place // len(column) * columns + column.gather(0, place % len(column))
    candidates = similarity.flatten(0, 1).gather(0, cell[:, None].expand(-1, frames, -1))
    candidates += torch.where(top == -torch.inf, top, 0)[:, None]
    value, place = candidates.flatten(0, 1).topk(min(k, len(cell) * frames), dim=0)
    return value, cell.gather(0, place // frames) * frames + place % frames


def _nearest(ids: Labels, size: tuple[int, int]) -> Labels:
    """Ids resized to width and height by Pillow's nearest neighbour."""
    return np.asarray(Image.fromarray(ids).resize(size, Image.Resampling.NEAREST), dtype=np.uint8)


def _rescue(labels: NDArray[np.float32], number: int, cover: Integers) -> None:
    """Give a vanished object its token in the label map, in place."""
    owner = labels.argmax(axis=-1)
    single = np.bincount(owner.ravel(), minlength=labels.shape[-1]) <= 1
    single[0] = False
    free = np.where(single[owner] | (labels.max(axis=-1) < 1), 0, cover)
    row, column = divmod(int((free if free.any() else cover).argmax()), cover.shape[1])
    labels[row, column] *= 0.0 if free.any() else 0.5
    labels[row, column, number] = 1 - labels[row, column].sum()
