"""Blocks with planted skips and branches, through a collector and its shards as in a pass."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from layerboard.benchmark.passes.collectors import MeasuredCollector
from layerboard.benchmark.passes.loading import Batch, Member
from layerboard.benchmark.passes.shards import MeasuredLayers, Shards
from layerboard.tasks.framework.base import Source
from layerboard.tasks.framework.sources import ProbedImages
from layerboard.zoo.features import AttentionMaps, LayerFeatures, Shown
from layerboard.zoo.spec import BackboneSpec, Layer, Tap
from layerboard.zoo.view.views import ResizeCrop
from tests.benchmark.doubles import SPEC, probed, source

SIZE = 32
VIEW = ResizeCrop(SIZE, SIZE)
BLACK = torch.zeros(1, 3, SIZE, SIZE, dtype=torch.uint8)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def sources(groups: Sequence[int], batch: int = 4) -> ProbedImages:
    """A probe subset of groups of so many images, in batches of so many."""
    probe: Source = source([[1] * count for count in groups], view=VIEW, joint=True)
    return probed(probe, batch)


def features(layer: Layer, tokens: Tensor, cls: bool = True) -> LayerFeatures:
    """Features of tokens [images tokens dim], whose first is the class token."""
    side = int((tokens.shape[1] - cls) ** 0.5)
    patches = tokens[:, int(cls) :].unflatten(1, (side, side))
    return LayerFeatures(layer, tokens[:, 0] if cls else None, patches)


def transformer(index: int, tokens: Mapping[Tap, Tensor], cls: bool = True) -> list[Shown]:
    """What a block shows whose input, attention and MLP are given; their sums follow unless given, too."""
    terms = dict(tokens)
    terms.setdefault("mid", terms["input"] + terms["attention"])
    terms.setdefault("block", terms["mid"] + terms["mlp"])
    order: tuple[Tap, ...] = ("input", "attention", "mid", "mlp", "block")
    return [features(Layer(index, tap), terms[tap], cls) for tap in order]


def convnet(index: int, skip: Tensor, branch: Tensor) -> list[Shown]:
    """What a residual block of a ConvNet shows that rectifies its sum; tokens [images cells dim]."""
    terms: dict[Tap, Tensor] = {"skip": skip, "branch": branch, "block": (skip + branch).relu()}
    return [features(Layer(index, tap), value, cls=False) for tap, value in terms.items()]


def left_behind(  # type: ignore[no-untyped-def]
    problem: Any,
    folder: Path,
    shown: Mapping[int, Sequence[Shown]],
    *,
    spec: BackboneSpec = SPEC,
    seen: Sequence[Sequence[int]] | None = None,
    pieces: int = 1,
    pixels: Tensor | None = None,
    patch: int = 0,
) -> MeasuredLayers:
    """What a pass leaves behind that shows those features of all groups' images together, in order.

    Args:
        problem: What measures.
        folder: Where shards go.
        shown: By block, features of every image.
        spec: The backbone.
        seen: For each group, positions of the images that could be read; all if None.
        pieces: In how many batches each group comes.
        pixels: Images as they are shown, [images 3 height width] uint8; black ones if None.
        patch: Pixels a side of a token, for measurers that look at pixels.
    """
    src: Source = problem.source
    scored = [Layer(index) for index in shown]
    layers = problem.feed.layers(scored, spec)
    shards = Shards(folder, src.shards)
    start = 0
    for number, group in enumerate(src.groups):
        positions = list(range(len(group.samples)) if seen is None else seen[number])
        collector = MeasuredCollector(problem, src, layers, patch)
        for part in np.array_split(positions, pieces) if positions else []:
            images = BLACK.expand(len(part), -1, -1, -1) if pixels is None else pixels[start + part]
            size = (images.shape[3], images.shape[2])
            batch = Batch(images, tuple(Member(number, int(place), 1, size) for place in part))
            for every in shown.values():
                for one in every:
                    collector.see(batch, _rows(one, start + part))
        start += len(group.samples)
        shards.write(number, collector.finish(range(number, number + 1)))
    return MeasuredLayers(src, shards, layers)


def _rows(shown: Shown, rows: np.ndarray) -> Shown:  # type: ignore[type-arg]
    if isinstance(shown, AttentionMaps):
        return AttentionMaps(shown.layer, shown.probabilities[rows], shown.prefix_tokens, shown.cells)
    return LayerFeatures(shown.layer, None if shown.cls is None else shown.cls[rows], shown.grid[rows])
