"""What carries the first mask of a video through its frames, layer by layer or by sets of layers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tasks.base import FINITE
from tasks.checks import varies
from tasks.metrics.propagation import Propagation, PropagationOfSets
from tasks.propagation.config import PropagationConfig
from tasks.propagation.scoring import VideoScorer
from tasks.sets import MIXED, Gathered, members_of, of_one_grid
from zoo.spec import Layer


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
