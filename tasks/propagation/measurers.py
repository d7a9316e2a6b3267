"""What carries the first mask of a video through its frames, by layers or sets of them, and scores masks."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tasks.base import FINITE, area_ceiling_metric, ceiling_metric
from tasks.checks import varies
from tasks.datasets.davis import Video
from tasks.datasets.masks import read_mask
from tasks.examples import small_mask
from tasks.metrics.arrays import VOID
from tasks.metrics.cell_labels import area_labels
from tasks.metrics.propagation import Propagation, PropagationOfSets, decode, decode_nearest, seed_labels
from tasks.metrics.segmentation import score_frame
from tasks.propagation.config import PropagationConfig
from tasks.sets import MIXED, Gathered, members_of, of_one_grid
from zoo.spec import Layer
from zoo.view.views import View

CEILINGS = {
    ceiling_metric("J&F"): (ceiling_metric("J"), ceiling_metric("F")),
    area_ceiling_metric("J&F"): (area_ceiling_metric("J"), area_ceiling_metric("F")),
}
"""Arrays of what a frame's true masks get, decoded as predicted ones are, by the metric that they make: once
seeded as the first mask is, and once as the exact share of each token that each object covers."""

Both = tuple[NDArray[np.float64], NDArray[np.float64]]  # J and F of every object in one frame


class VideoScorer:
    """What the masks of one video are scored by, and the labels that its first mask gives a grid.

    Masks of the image's size come one at a time a thread; of some frames, the ``examples``, the predicted
    mask is kept, small.
    """

    def __init__(
        self, video: Video, view: View, config: PropagationConfig, examples: tuple[int, ...]
    ) -> None:
        self._video = video
        self._config = config
        self._examples = examples
        self._view_width = view.geometry(video.size).size[0]
        self._seed = read_mask(video.masks[0])
        self._objects = int(np.where(self._seed == VOID, 0, self._seed).max())

    @property
    def last(self) -> int:
        """Place of the last frame that is looked at."""
        return max(0, len(self._video.frames) - 2)

    def seeds(self, grid: tuple[int, int]) -> Tensor:
        """What a grid knows of the first mask: [height width channels]."""
        return self._labels(self._seed, grid)

    def of(self, finished: Mapping[Layer, Mapping[str, Tensor]]) -> dict[Layer, dict[str, Tensor]]:
        """J and F of every object and scored frame, [objects frames] each, and masks of the examples."""
        layers = list(finished)
        score = partial(self._score, [finished[layer]["soft"] for layer in layers])
        threads = torch.get_num_threads()
        with ThreadPoolExecutor(threads, "score", torch.set_num_threads, (1,)) as pool:
            frames = list(pool.map(score, range(1, 1 + self.last)))
        by_layer = {}
        for number, layer in enumerate(layers):
            of_layer = [scores[number] for scores, _ in frames]
            grid = finished[layer]["soft"].shape[1:3]
            arrays = self._tables(("J", "F"), [both for both, _ in of_layer])
            for metric, both in CEILINGS.items():
                arrays |= self._tables(both, [ideal[grid][metric] for _, ideal in frames])
            arrays["varies"] = finished[layer]["varies"]
            masks = [torch.from_numpy(mask) for _, mask in of_layer if mask is not None]
            by_layer[layer] = arrays | ({"mask": torch.stack(masks)} if masks else {})
        return by_layer

    def _tables(self, names: Sequence[str], frames: Sequence[Both]) -> dict[str, Tensor]:
        """J and F of all frames by name: [objects frames] each."""
        table = np.array(frames, dtype=np.float64).reshape(len(frames), 2, self._objects)
        return dict(zip(names, torch.from_numpy(table.transpose(1, 2, 0).copy()), strict=True))

    def _labels(self, mask: NDArray[np.uint8], grid: tuple[int, int]) -> Tensor:
        """What a grid knows of a mask: [height width channels]."""
        labels = seed_labels(mask, grid, keep_vanished=self._config.keep_vanished)
        if self._config.every_channel:
            labels = functional.pad(labels, (0, 1 + self._objects - labels.shape[-1]))
        return labels

    def _decoded(self, soft: Tensor) -> NDArray[np.uint8]:
        """The mask at the frame's size that a soft map stands for."""
        if self._config.nearest:
            return decode_nearest(soft, self._video.size)
        return decode(soft, self._video.size, self._view_width // soft.shape[1])

    def _score(
        self, soft: Sequence[Tensor], position: int
    ) -> tuple[list[tuple[Both, NDArray[np.uint8] | None]], dict[tuple[int, ...], dict[str, Both]]]:
        """Scores of one frame for each layer, of which soft maps of all scored frames are given.

        With them the small mask of an example, and beside them what the true masks get on each size of grid.
        """
        mask = read_mask(self._video.masks[position])
        truth = np.where(mask == VOID, np.uint8(0), mask)
        scores: list[tuple[Both, NDArray[np.uint8] | None]] = []
        for maps in soft:
            predicted = self._decoded(maps[position - 1])
            small = small_mask(predicted) if position in self._examples else None
            scores.append((score_frame(predicted, truth, self._objects), small))
        grids = dict.fromkeys(tuple(maps.shape[1:3]) for maps in soft)
        return scores, {grid: self._ideal(truth, grid) for grid in grids}

    def _ideal(self, truth: NDArray[np.uint8], grid: tuple[int, ...]) -> dict[str, Both]:
        """J and F of a frame's true masks, put on a grid in each way of `CEILINGS` and decoded from it."""
        size = (grid[0], grid[1])
        ways = (self._labels(truth, size), area_labels(truth, size, 1 + self._objects))
        return {
            metric: score_frame(self._decoded(labels), truth, self._objects)
            for metric, labels in zip(CEILINGS, ways, strict=True)
        }


@dataclass(slots=True)
class _LayerState:
    propagation: Propagation
    varies: Tensor
    finite: list[Tensor] = field(default_factory=list)
    soft: list[Tensor] = field(default_factory=list)


class VideoMeasurer:
    """Propagates frame by frame on the device, and scores the frames on the host when the video is over.

    What waits until then is a soft map of the size of the token grid for each frame.
    """

    def __init__(self, scores: VideoScorer, config: PropagationConfig) -> None:
        self._scores = scores
        self._config = config
        self._states: dict[Layer, _LayerState] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        last = self._scores.last
        frames = [grid for position, grid in zip(positions, grids, strict=True) if position <= last]
        if not frames:
            return
        if layer not in self._states:
            first, *frames = frames
            seeds = self._scores.seeds((first.shape[0], first.shape[1]))
            labels = seeds.to(device=first.device, dtype=first.dtype, non_blocking=True)
            propagation = Propagation(first, labels, self._config.heard)
            self._states[layer] = _LayerState(propagation, varies(first[None]))
        state = self._states[layer]
        state.finite.append(grids[: last + 1 - positions[0]].isfinite().all())
        state.soft.extend(state.propagation.step(grid) for grid in frames)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Soft maps of all frames, [frames height width channels]."""
        state = self._states.pop(layer)
        return _finished(state.soft, state.varies, state.finite)

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]]) -> dict[Layer, dict[str, Tensor]]:
        """J and F of every object and scored frame, [objects frames] each, and masks of the examples."""
        return self._scores.of(finished)


class VideoSetsMeasurer(VideoMeasurer):
    """Propagation by sets of layers: fed each of their layers, it carries masks by the mean cosines.

    Beside what waits for a single layer, the frames of a batch wait until all layers have shown them.
    """

    def __init__(self, scores: VideoScorer, config: PropagationConfig, sets: Sequence[Layer]) -> None:
        super().__init__(scores, config)
        self._sets = sets
        self._gathered = Gathered(members_of(sets))
        self._flags: dict[Layer, list[Tensor]] = {layer: [] for layer in members_of(sets)}
        self._varied: dict[Layer, Tensor] = {}
        self._carried: list[PropagationOfSets[Layer]] = []
        self._soft: dict[Layer, list[Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        self._flags[layer].append(grids[: self._scores.last + 1 - positions[0]].isfinite().all())
        if layer not in self._varied:
            self._varied[layer] = varies(grids[:1])
        for position, frame in self._gathered.add(layer, positions, grids).items():
            if position > self._scores.last:
                continue
            if not self._carried:
                self._begin(frame)
                continue
            for carried in self._carried:
                for layer_set, soft in carried.step(frame).items():
                    self._soft[layer_set].append(soft)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        if layer not in self._soft:
            raise ValueError(MIXED)
        changing = torch.stack([self._varied[member] for member in layer.members]).any()
        finite = [flag for member in layer.members for flag in self._flags[member]]
        return _finished(self._soft[layer], changing, finite)

    def _begin(self, frame: Mapping[Layer, Tensor]) -> None:
        """Start with the first frame, which all layers have shown."""
        shapes = {layer: (grid.shape[0], grid.shape[1]) for layer, grid in frame.items()}
        for size, sets in of_one_grid(self._sets, shapes).items():
            tokens = {member: frame[member] for member in members_of(sets)}
            labels = self._scores.seeds(size)  # which go where the tokens are
            named = {each: each.members for each in sets}
            self._carried.append(PropagationOfSets(tokens, labels, named, self._config.heard))
            self._soft |= {each: [] for each in sets}


def _finished(soft: Sequence[Tensor], changing: Tensor, finite: Sequence[Tensor]) -> dict[str, Tensor]:
    """What is kept until the frames are scored, and whether it can be used."""
    maps = torch.stack(list(soft)) if soft else changing.new_zeros(0)
    return {"soft": maps, "varies": changing[None], FINITE: torch.stack(list(finite))}
