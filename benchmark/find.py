"""Search of a folder for an image, by vectors of one layer, or for a region of it, by patch tokens."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.folder import VIEW, Folder
from layerboard.benchmark.look import view_of
from layerboard.benchmark.passes.loading import Batch, Loader, Unreadable
from layerboard.benchmark.plan.plan import view_for
from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.framework.base import Source
from layerboard.tasks.framework.sources import CHUNK, consecutive_groups
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.metrics.neighbours import nearest
from layerboard.tasks.retrieval.regions import best_regions, query_tokens
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.cut import CutBackbone, Pooled
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.geometry import Box
from layerboard.zoo.view.views import View


class FoundImage(NamedTuple):
    """An image that was found."""

    sample: Sample
    score: float  # cosine
    box: Box | None = None  # the region in pixel edges of the image; None for the whole image


class Matches(NamedTuple):
    """The best images of a folder."""

    best: Sequence[FoundImage]  # best first
    usual: float  # median score of all images that could be read, with which those of the best compare
    lost: Sequence[str] = ()  # names of unreadable images


def find_images(
    folder: Folder, backbone: Backbone, layer: Layer, pooling: Pooled, query: Image.Image, most: int
) -> Matches:
    """The images of a folder whose vectors have the highest cosine with that of the query."""
    spec = backbone.spec
    vectors = folder.vectors(spec.name, layer, pooling)
    asked = CutBackbone(backbone, layer, pooling, view_for(spec, VIEW))(query).cpu().numpy()
    near, samples = nearest(vectors, asked, len(vectors)), [*folder.samples.values()]
    pairs = zip(near.index[0, :most].tolist(), near.similarity[0, :most].tolist(), strict=True)
    best = [FoundImage(samples[row], cosine) for row, cosine in pairs]
    return Matches(best, float(np.median(near.similarity)))


class Search(NamedTuple):
    """A layer whose patch tokens are compared, and how images are loaded for it."""

    backbone: Backbone
    layer: Layer
    workers: int
    batch_size: int


def find_regions(
    samples: Sequence[Sample], search: Search, query: tuple[Image.Image, Box], most: int, report: Reporter
) -> Matches:
    """The best region of each image, of the ``most`` best images.

    ``query`` is an image and a box of it in pixel edges. Every image is shown once; its patch tokens are
    compared while they are in memory. What a token says of its position, the tokens of a black image, is
    subtracted first. The score is the mean cosine of tokens less the mean token of their image. Ties go to
    the earlier image.
    """
    spec, view = search.backbone.spec, view_of(search.backbone.spec)
    cut = CutBackbone(search.backbone, search.layer, "grid", view)
    tokens_of = _without_position(cut)
    (grid,) = tokens_of(cut.preprocess(query[0])[None])
    box = np.array(_in_cells(view, query[0].size, tuple(grid.shape[:2]), query[1]))
    whole = _whole_cells(box, grid.shape[1::-1])
    tokens = query_tokens(grid, tuple(whole))
    beside = (box - whole) / np.tile(whole[2:] - whole[:2], 2)  # in sizes of the region
    source = Source("folder", consecutive_groups(samples, CHUNK), view, skip_unreadable=True)
    scores, boxes = np.full(len(samples), -np.inf), np.zeros((len(samples), 4))  # boxes in shares of the view
    lost = []
    with report.bar(f"{spec.name}  searching", len(samples), "images") as advance:
        loader, shards = Loader(search.workers), range(source.shards)
        events = loader.batches(source, shards, search.batch_size, spec.input_size)
        for event in events:
            if isinstance(event, Unreadable):
                lost.append(samples[event.group * CHUNK + event.position].key)
                advance(1)
            elif isinstance(event, Batch):
                rows = [member.group * CHUNK + member.position for member in event.members]
                scores[rows], boxes[rows] = _scored_regions(tokens, tokens_of(event.pixels), beside)
                advance(len(rows))
    order = np.argsort(-scores, kind="stable")[:most]
    matches = [
        FoundImage(samples[row], float(scores[row]), _in_image(view, samples[row], boxes[row]))
        for row in order.tolist()
        if np.isfinite(scores[row])
    ]
    return Matches(matches, float(np.median(scores[np.isfinite(scores)])) if matches else np.nan, lost)


def _scored_regions(tokens: list[Tensor], grids: Tensor, beside: Floats) -> tuple[Floats, Floats]:
    """Score and box, in shares of the view, of the region of each grid that is most like the tokens.

    ``beside`` is how far the box asked for is beside its whole cells, in sizes of the region.
    """
    regions = best_regions(tokens, grids)
    boxed = regions.box.cpu().numpy()
    boxed += beside * np.tile(boxed[:, 2:] - boxed[:, :2], 2)
    return regions.score.cpu().numpy(), boxed / np.tile(grids.shape[2:0:-1], 2)


def _without_position(cut: CutBackbone) -> Callable[[Tensor], Tensor]:
    """The grid of patch tokens of pixels, less that of a black image of their size."""
    positions: dict[tuple[int, ...], Tensor] = {}  # tokens of a black image, by its size

    def tokens_of(pixels: Tensor) -> Tensor:
        size = tuple(pixels.shape[2:])
        with torch.inference_mode():
            if size not in positions:
                positions[size] = cut(pixels.new_zeros(1, 3, *size))
            return cut(pixels) - positions[size]

    return tokens_of


def _in_cells(view: View, size: tuple[int, int], grid: tuple[int, int], box: Box) -> Box:
    """A box in pixel edges of an image as a box in cells of its grid of rows and columns."""
    geometry = view.geometry(size)
    corners = geometry.to_view(np.reshape(np.asarray(box, np.float64), (2, 2)))
    left, top, right, bottom = (corners / geometry.size * grid[::-1]).ravel().tolist()
    return left, top, right, bottom


def _whole_cells(box: Floats, cells: Sequence[int]) -> Floats:
    """The nearest box of whole cells, at least one, of a grid of that many columns and rows."""
    low = np.minimum(box[:2].round(), np.array(cells) - 1).clip(0)
    return np.concatenate([low, np.maximum(box[2:].round(), low + 1)])


def _in_image(view: View, sample: Sample, shares: Floats) -> Box:
    """A box in shares of the view of an image in pixel edges of the image."""
    size = sample.open().size
    geometry = view.geometry(size)
    corners = geometry.to_image(np.reshape(shares, (2, 2)) * geometry.size).clip(0, size)
    left, top, right, bottom = corners.ravel().tolist()
    return left, top, right, bottom
