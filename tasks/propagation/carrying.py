"""Parts of `propagation.metric`: recent frames, windows around tokens, and labels weighted by similarity."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

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
