"""Propagation of the first frame's labels through a video by the similarity of its tokens.

Source: Jabri et al., Space-Time Correspondence as a Contrastive Random Walk, NeurIPS 2020, and the DAVIS
evaluation of Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.metrics.arrays import VOID, Integers, Labels
from layerboard.tasks.metrics.cell_labels import cell_areas, first_largest, resized_labels
from layerboard.tasks.metrics.neighbours import Key, mean_of

CONSTANT = 1e-6
WHOLE = 512  # largest grid, in tokens, that is processed as one tile on a CPU
WHOLE_GPU = 2048  # the same on a GPU: enough for both protocols at 16 pixels per token, 134 MB for 8 frames
TILE_CPU = (8, 16)  # query tokens per tile: large enough for fast products, small next to the window
TILE_GPU = (16, 32)
SIMILARITIES = 1 << 24  # similarities in memory at a time if there is no window


@dataclass(frozen=True, slots=True)
class Tile:
    """Query tokens [top:bottom, left:right], and the source tokens [rows, columns] that windows cover."""

    top: int
    bottom: int
    left: int
    right: int
    rows: slice
    columns: slice

    def queries(self, grid: Tensor) -> Tensor:
        """Entries of a grid [height width ...] at the query tokens, as a view."""
        return grid[self.top : self.bottom, self.left : self.right]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The source tokens in earlier frames that label a token, and their weights."""

    n_last_frames: int  # number of source frames in addition to the first one
    topk: int  # number of most similar sources that label a token
    radius: float  # extent of the window to each side, in tokens; 0 for no window
    circle: bool  # whether the window is a disc of that radius instead of a square
    temperature: float  # divisor of the cosine in the weight of a source, exp(cosine / temperature); positive


class Recent:
    """Grids of the first and the latest frames, at most ``frames`` in all: [height width frames channels]."""

    def __init__(self, first: Tensor, frames: int) -> None:
        self.kept = first[:, :, None].contiguous()
        self._frames = frames
        self._oldest = 1

    def add(self, grid: Tensor) -> None:
        """Keep the grid of a frame; when full, it replaces the oldest grid except that of the first frame."""
        if self._frames == 1:
            return
        if self.kept.shape[2] < self._frames:
            self.kept = torch.cat([self.kept, grid[:, :, None]], dim=2)
            return
        self.kept[:, :, self._oldest] = grid
        self._oldest = self._oldest % (self._frames - 1) + 1

    def around(self, tile: Tile) -> Tensor:
        """Source tokens around a tile's queries: [rows columns frames channels]."""
        return self.kept[tile.rows, tile.columns]


class Windows:
    """The tiles of a grid (height, width), and masks of the tokens outside the windows of their queries."""

    def __init__(self, grid: tuple[int, int], heard: Neighbourhood, cpu: bool) -> None:
        height, width = grid
        self.radius, self._circle = heard.radius or float(height + width), heard.circle
        reach = min(int(self.radius), max(height, width))
        self.tiles = tuple(_tiles(height, width, reach, 1 + heard.n_last_frames, cpu))
        self._known: dict[tuple[tuple[int, int, int], ...], Tensor] = {}

    def outside(self, tile: Tile, like: Tensor) -> Tensor:
        """Additive mask [rows columns queries]: -inf for cells outside a query's window, 0 inside."""
        shape = (tile.bottom - tile.top, tile.right - tile.left)
        key = (
            (tile.rows.start - tile.top, tile.rows.stop - tile.top, shape[0]),
            (tile.columns.start - tile.left, tile.columns.stop - tile.left, shape[1]),
        )
        if key not in self._known:
            cells = partial(torch.arange, device=like.device)
            rows, columns = ((cells(low, high)[:, None] - cells(length)).abs() for low, high, length in key)
            down, across = rows[:, None, :, None], columns[None, :, None, :]
            if self._circle:
                outside = (down.square() + across.square() > self.radius**2).flatten(2)
            else:
                outside = ((down > self.radius) | (across > self.radius)).flatten(2)
            self._known[key] = like.new_zeros(outside.shape).masked_fill_(outside, -torch.inf)
        return self._known[key]


def unit_tokens(grid: Tensor) -> Tensor:
    """Tokens of length 1, at least float32."""
    return functional.normalize(grid if grid.dtype == torch.float64 else grid.float(), dim=-1)


def similarities(tokens: Tensor, recent: Recent, tile: Tile) -> Tensor:
    """Inner products of a tile's queries with the sources around them: [rows columns frames queries]."""
    query = tile.queries(tokens).flatten(0, 1).T.contiguous()
    source = recent.around(tile)
    rows, columns, frames, _ = source.shape
    return torch.bmm(source.flatten(1, 2), query.expand(rows, *query.shape)).view(rows, columns, frames, -1)


def carried(similarity: Tensor, outside: Tensor, labels: Tensor, heard: Neighbourhood) -> Tensor:
    """Labels [queries channels]: means over the top-k sources, weighted by exp(similarity / temperature).

    ``similarity`` is [rows columns frames queries] and may be overwritten. ``outside`` is the mask of
    `Windows.outside`; ``labels`` is [rows columns frames channels]. Sources tied at the last place all count.
    """
    value, index = _best(similarity, outside, heard.topk + 1)
    kept = min(heard.topk, len(value))
    sources = labels.flatten(0, 2)
    tied = (value[kept:] == value[kept - 1]) & value[kept:].isfinite()
    if not value.is_cpu or bool(tied.any()):  # a GPU is not asked, so as not to wait for it
        similarity += outside[:, :, None]
        weight = (similarity - value[0]).div_(heard.temperature).exp_()
        weight = weight.mul_(similarity >= value[kept - 1]).flatten(0, 2)
        return (weight.T @ sources) / weight.sum(0)[:, None]
    weight = ((value[:kept] - value[0]) / heard.temperature).softmax(0)
    return torch.einsum("kq,kqc->qc", weight, sources[index[:kept]])


class Propagation(Generic[Key]):
    """Propagates a label map from frame to frame for each layer, without waiting for the device.

    The source frames of a frame are the first frame and the latest ones before it. The label of a token is
    the mean of the labels of source tokens in its window, weighted by exp(cosine / temperature); the cosine
    of a layer is the mean of its members' cosines. Only the topk most similar source tokens of all frames
    together count, including ties. The products of a member are computed once, however many layers have it,
    and however many rules carry labels by them. A NaN or infinite token makes the labels NaN of all tokens
    with it in their window.
    """

    def __init__(
        self,
        first_features: Mapping[Key, Tensor],
        first_labels: Tensor,
        layers: Mapping[Key, Sequence[Key]],
        rules: Sequence[Neighbourhood],
    ) -> None:
        """Start a video.

        ``first_features`` are each member's tokens [height width dim] of the first frame, of any length.
        ``first_labels`` are [height width channels], one-hot or soft, with channel 0 for the background.
        ``layers`` lists the members of each layer: a layer that is its own member comes alone. Each of the
        ``rules`` carries labels of its own; all have the same source frames.
        """
        (latest,) = {rule.n_last_frames for rule in rules}
        self._layers, self._rules, frames = layers, tuple(rules), 1 + latest
        self._tokens = {layer: Recent(unit_tokens(grid), frames) for layer, grid in first_features.items()}
        like = next(iter(self._tokens.values())).kept
        labels = first_labels.to(like, non_blocking=True)
        self._labels = {name: [Recent(labels, frames) for _ in rules] for name in layers}
        height, width = first_labels.shape[:2]
        self._windows = [Windows((height, width), rule, like.is_cpu) for rule in rules]
        self._tiles = max(self._windows, key=lambda each: each.radius).tiles

    @torch.no_grad()
    def step(self, features: Mapping[Key, Tensor]) -> dict[Key, Tensor]:
        """Soft label maps of the next frame for each layer: [rules height width channels], at least float32.

        ``features`` are each member's tokens [height width dim] of the frame, of the first frame's shape.
        """
        tokens = {layer: unit_tokens(features[layer]).to(own.kept) for layer, own in self._tokens.items()}
        soft = {
            name: each[0].kept.new_empty(len(each), *each[0].kept[:, :, 0].shape)
            for name, each in self._labels.items()
        }
        for tile in self._tiles:
            alike = {layer: similarities(key, self._tokens[layer], tile) for layer, key in tokens.items()}
            masks = [each.outside(tile, next(iter(tokens.values()))) for each in self._windows]
            for name, members in self._layers.items():
                mean = mean_of([alike[member] for member in members])
                for number, (rule, labels) in enumerate(zip(self._rules, self._labels[name], strict=True)):
                    last = number == len(masks) - 1  # what it may overwrite is needed no more
                    part = tile.queries(soft[name][number])
                    similarity = mean if last else mean.clone()
                    mixture = carried(similarity, masks[number], labels.around(tile), rule)
                    part.copy_(mixture.view(part.shape))
        for layer, recent in self._tokens.items():
            recent.add(tokens[layer])
        for name, each in self._labels.items():
            for labels, map_ in zip(each, soft[name], strict=True):
                labels.add(map_)
        return soft


def _tiles(height: int, width: int, radius: int, frames: int, cpu: bool) -> Iterator[Tile]:
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
            yield Tile(top, bottom, left, right, rows, columns)


def _best(similarity: Tensor, outside: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each query, descending, and their flat indices: [k queries] each, or fewer.

    ``similarity`` is [rows columns frames queries], and the additive mask ``outside`` [rows columns queries].
    The k largest values lie in the k cells with the largest maxima over frames, and those cells lie in the k
    columns with the largest maxima over rows, so only a few values are sorted.
    """
    rows, columns, frames, _ = similarity.shape
    highest = similarity.amax(2) + outside
    column = highest.amax(0).topk(min(k, columns), dim=0).indices
    among = highest.gather(1, column.expand(rows, *column.shape)).flatten(0, 1)
    top, index = among.topk(min(k, len(among)), dim=0)
    cell = index // len(column) * columns + column.gather(0, index % len(column))
    candidates = similarity.flatten(0, 1).gather(0, cell[:, None].expand(-1, frames, -1))
    candidates += torch.where(top == -torch.inf, top, 0)[:, None]
    value, index = candidates.flatten(0, 1).topk(min(k, len(cell) * frames), dim=0)
    return value, cell.gather(0, index // frames) * frames + index % frames


def seed_labels(mask: Labels, grid: tuple[int, int], keep_vanished: bool) -> Tensor:
    """The first frame's object mask on a grid of tokens: [height width channels] float32, one-hot.

    The mask has object ids, with 0 and 255 for background, and is resized by nearest neighbour. With
    ``keep_vanished``, channels go up to the largest id of the full mask. An object that would vanish then
    takes the token that it covers most (ties: first row, then column) among those that are not the only token
    of another object; if there is none, it shares a token half and half. Without ``keep_vanished``, channels
    end at the largest id in the resized mask.
    """
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
    """Object ids of a soft label map [height width channels], by nearest neighbour at (width, height).

    Every channel is scaled to [0, 1] over the frame, a constant one to 0; the largest wins (ties: lower id).

    Source: the tracking notebook of DINOv3 (facebookresearch/dinov3, commit 6876159).
    """
    # all pixels of a token get the same id, so the winner is found per token
    low, high = soft.amin((0, 1)), soft.amax((0, 1))
    scaled = torch.where(high > low, (soft - low) / (high - low), 0)
    return resized_labels(first_largest(scaled.permute(2, 0, 1)).cpu().numpy(), size, centres=False)


def decode_on_frame(soft: Tensor, size: tuple[int, int], *, scaled: bool) -> Labels:
    """Object ids of a soft label map [height width channels], bilinearly at the image's (width, height).

    With ``scaled``, every channel is then scaled to [0, 1] over the frame, a constant one to 0. The largest
    wins (ties: lower id).

    Source: DINOv3 (arXiv:2508.10104, Table 5); without scaling, the code of Jabri et al., NeurIPS 2020
    (ajabri/videowalk, commit 0834ff9).
    """
    large = functional.interpolate(soft.permute(2, 0, 1)[None], size=size[::-1], mode="bilinear")[0]
    if scaled:
        low, high = large.amin((1, 2), keepdim=True), large.amax((1, 2), keepdim=True)
        varies = high - low > CONSTANT * high.abs()
        large = torch.where(varies, (large - low) / torch.where(varies, high - low, 1.0), 0)
    return first_largest(large).cpu().numpy()


def decode(soft: Tensor, size: tuple[int, int], patch: int) -> Labels:
    """Object ids of a soft label map [height width channels] at the image's (width, height).

    The map is upsampled bilinearly by the patch size in pixels. Each channel with a positive maximum is
    scaled to [0, 1] over the frame, the largest channel wins (ties: lower id), and ids are resized by nearest
    neighbour. A constant positive channel cannot be scaled and counts as 1 everywhere.
    """
    shape = (soft.shape[0] * patch, soft.shape[1] * patch)
    large = functional.interpolate(soft.permute(2, 0, 1)[None], size=shape, mode="bilinear")[0]
    low, high = large.amin((1, 2), keepdim=True), large.amax((1, 2), keepdim=True)
    constant = high - low <= CONSTANT * high.abs()
    scaled = torch.where(constant, 1.0, (large - low) / torch.where(constant, 1.0, high - low))
    return _nearest(first_largest(torch.where(high > 0, scaled, large)).cpu().numpy(), size)


def _nearest(ids: Labels, size: tuple[int, int]) -> Labels:
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
