"""DAVIS-2017 mask propagation: labels of the first frame carried through a video by feature similarity.

Source: Jabri et al., NeurIPS 2020; numbers as in the evaluation of DINO (Caron et al., ICCV 2021); J and F by
the rules of the DAVIS-2017 evaluation (Pont-Tuset et al., 2017).
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tasks.base import (
    FINITE,
    Group,
    Items,
    Measurements,
    Measurer,
    Outcome,
    Score,
    Source,
    Statistic,
    ceiling_metric,
    digest,
)
from tasks.checks import ALIKE, varies
from tasks.datasets.base import Video, Videos
from tasks.datasets.davis_masks import read_mask
from tasks.datasets.storage import stamp
from tasks.examples.draw import small_mask
from tasks.examples.propagation import PropagationExamples
from tasks.feeds import GRIDS, GridFeed
from tasks.fused import MIXED, Gathered, members_of, of_one_grid
from tasks.metrics.arrays import VOID
from tasks.metrics.carrying import Neighbourhood
from tasks.metrics.propagation import (
    Propagation,
    PropagationOfSets,
    decode,
    decode_nearest,
    seed_labels,
)
from tasks.metrics.segmentation import score_frame
from zoo.spec import Layer
from zoo.view.views import View

CEILINGS = {name: ceiling_metric(name) for name in ("J", "F")}
"""Arrays of what a frame's true masks get where they are seeded and decoded as predicted ones are."""

Both = tuple[NDArray[np.float64], NDArray[np.float64]]
"""J and F of every object in one frame."""

FrameScores = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint8] | None]
"""J and F of every object in one frame and, of an example, the mask that was predicted, small."""


@dataclass(frozen=True, slots=True)
class PropagationRule:
    """The numbers of mask propagation.

    Attributes:
        n_last_frames: Latest frames that are sources beside the first.
        topk: Strongest sources that a token listens to.
        radius: How far the window reaches, in tokens.
        circle: Whether it is a circle, by the distance of the tokens' centres, instead of a square.
        temperature: Divisor of the cosine in the affinity exp(cos / temperature).
        keep_vanished: Whether an object too small for the token grid keeps the token that it covers most.
        every_channel: Whether there is a channel of each object of the first mask, though no token shows it.
        nearest: Whether soft maps are enlarged by nearest neighbour instead of bilinearly, and every channel
            is scaled, a constant one to 0.
        view: How frames are shown.
        decimals: Decimals that the scores, as fractions, are rounded to; None for full precision.
    """

    n_last_frames: int
    topk: int
    radius: int
    circle: bool
    temperature: float
    keep_vanished: bool
    every_channel: bool
    nearest: bool
    view: View
    decimals: int | None

    @property
    def heard(self) -> Neighbourhood:
        """What a token listens to."""
        names = (field.name for field in fields(Neighbourhood))
        return Neighbourhood(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class PropagationProblem:
    """Mask propagation through every video of a split."""

    data: Videos
    rule: PropagationRule

    @cached_property
    def source(self) -> Source:
        """The frames of all videos, every video a group and a shard."""
        groups = tuple(Group(video.name, video.frames) for video in self.data.videos)
        return Source(self.data.name, groups, self.rule.view)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule of propagation and of the mask files' sizes and times."""
        masks = [(path.name, *stamp(path)) for video in self.data.videos for path in video.masks]
        return digest("davis", self.rule, masks)

    @cached_property
    def examples(self) -> PropagationExamples:
        """Of which frames the masks are kept."""
        return PropagationExamples(self.data.videos)

    @property
    def feed(self) -> GridFeed:
        """Measurers are fed grids."""
        return GRIDS

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What carries the first mask through one video and scores every frame."""
        video = next(video for video in self.data.videos if video.name == group.key)
        return _VideoMeasurer(video, view, self.rule, self.examples.of(video))

    def measure_sets(self, group: Group, view: View, sets: Sequence[Layer]) -> Measurer[Tensor]:
        """What carries the first mask through one video for sets of layers."""
        video = next(video for video in self.data.videos if video.name == group.key)
        return _SetsMeasurer(video, view, self.rule, sets)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """J&F, J and F in percent, unweighted means over objects; the first and last frame do not count."""
        keys: list[str] = []
        videos: list[str] = []
        names = [name for name in (*CEILINGS, *CEILINGS.values()) if all(name in m for m in measurements)]
        objects: dict[str, list[float]] = {name: [] for name in names}
        for video, measured in zip(self.data.videos, measurements, strict=True):
            if not measured["J"].size:  # fewer than three frames: none counts
                continue
            for number in range(len(measured["J"])):
                keys.append(f"{video.name}_{number + 1}")
                videos.append(video.name)
                for metric, means in objects.items():
                    means.append(100.0 * float(np.mean(measured[metric][number])))
        if not keys:
            return Outcome((), empty="no video has an annotated object in a frame that counts")
        if not any(np.any(measured["varies"]) for measured in measurements):
            return Outcome((), empty=ALIKE)
        values = {metric: np.asarray(means) for metric, means in objects.items()}
        if CEILINGS["J"] in values:
            j, f = (values.pop(name) for name in CEILINGS.values())
            values[ceiling_metric("J&F")] = (j + f) / 2
        values = {"J&F": (values["J"] + values["F"]) / 2, **values}
        scores = tuple(
            Score(metric, self._rounded(float(v.mean())), len(v), "objects") for metric, v in values.items()
        )
        statistics = {metric: Statistic(metric) for metric in values}
        items = Items("objects", tuple(keys), tuple(videos), ("",) * len(keys), values, statistics)
        shown = any("mask" in one for one in measurements)  # of sets of layers no masks are kept
        return Outcome(scores, items, predicted=self.examples.predicted(measurements) if shown else {})

    def _rounded(self, percent: float) -> float:
        decimals = self.rule.decimals
        return percent if decimals is None else 100.0 * round(percent / 100.0, decimals)


@dataclass(slots=True)
class _LayerState:
    propagation: Propagation
    varies: Tensor
    finite: list[Tensor] = field(default_factory=list)
    soft: list[Tensor] = field(default_factory=list)


class _VideoMeasurer:
    """Propagates frame by frame on the device, and scores the frames on the host when the video is over.

    What waits until then is a soft map of the size of the token grid for each frame; masks of the image's
    size come one at a time a thread. Of a few frames, the examples, the mask is kept, small.
    """

    def __init__(self, video: Video, view: View, rule: PropagationRule, examples: tuple[int, ...]) -> None:
        self._examples = examples
        self._video = video
        self._rule = rule
        self._view_width = view.geometry(video.size).size[0]
        self._states: dict[Layer, _LayerState] = {}
        self._seed = read_mask(video.masks[0])
        self._objects = int(np.where(self._seed == VOID, 0, self._seed).max())
        self._scored = range(1, len(video.frames) - 1)  # nothing comes after the last frame

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        shown = [grid for position, grid in zip(positions, grids, strict=True) if position <= self._last]
        if not shown:
            return
        if layer not in self._states:
            first, *shown = shown
            self._states[layer] = _LayerState(self._start(first), varies(first[None]))
        state = self._states[layer]
        state.finite.append(grids[: self._last + 1 - positions[0]].isfinite().all())
        state.soft.extend(state.propagation.step(grid) for grid in shown)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        state = self._states.pop(layer)
        soft = torch.stack(state.soft) if state.soft else state.varies.new_zeros(0)
        return {"soft": soft, "varies": state.varies[None], FINITE: torch.stack(state.finite)}

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]]) -> dict[Layer, dict[str, Tensor]]:
        """J and F of every object and scored frame, [objects frames] each, and masks of the examples."""
        layers = list(finished)
        score = partial(self._score, [finished[layer]["soft"] for layer in layers])
        threads = torch.get_num_threads()
        with ThreadPoolExecutor(threads, "score", torch.set_num_threads, (1,)) as pool:
            frames = list(pool.map(score, self._scored))
        kept = {}
        for number, layer in enumerate(layers):
            of_layer = [scores[number] for scores, _ in frames]
            grid = finished[layer]["soft"].shape[1:3]
            arrays = self._tables(("J", "F"), [(j, f) for j, f, _ in of_layer])
            arrays |= self._tables(tuple(CEILINGS.values()), [ideal[grid] for _, ideal in frames])
            arrays["varies"] = finished[layer]["varies"]
            masks = [torch.from_numpy(mask) for *_, mask in of_layer if mask is not None]
            kept[layer] = arrays | ({"mask": torch.stack(masks)} if masks else {})
        return kept

    def _tables(self, names: Sequence[str], frames: Sequence[Both]) -> dict[str, Tensor]:
        """J and F of all frames by name: [objects frames] each."""
        table = np.array(frames, dtype=np.float64).reshape(len(frames), 2, self._objects)
        return dict(zip(names, torch.from_numpy(table.transpose(1, 2, 0).copy()), strict=True))

    @property
    def _last(self) -> int:
        """Place of the last frame that is looked at."""
        return max(0, len(self._video.frames) - 2)

    def _start(self, grid: Tensor) -> Propagation:
        labels = self._labels(self._seed, (grid.shape[0], grid.shape[1]))
        return Propagation(
            grid,
            labels.to(device=grid.device, dtype=grid.dtype, non_blocking=True),
            self._rule.heard,
        )

    def _labels(self, mask: NDArray[np.uint8], grid: tuple[int, int]) -> Tensor:
        """What a grid knows of a mask: [height width channels]."""
        labels = seed_labels(mask, grid, keep_vanished=self._rule.keep_vanished)
        if self._rule.every_channel:
            labels = functional.pad(labels, (0, 1 + self._objects - labels.shape[-1]))
        return labels

    def _decoded(self, soft: Tensor) -> NDArray[np.uint8]:
        """The mask at the frame's size that a soft map stands for."""
        if self._rule.nearest:
            return decode_nearest(soft, self._video.size)
        return decode(soft, self._video.size, self._view_width // soft.shape[1])

    def _score(
        self, soft: Sequence[Tensor], position: int
    ) -> tuple[list[FrameScores], dict[tuple[int, ...], Both]]:
        """Scores of one frame for each layer, of which soft maps of all scored frames are given.

        Beside them what the true masks get on each size of grid.
        """
        mask = read_mask(self._video.masks[position])
        truth = np.where(mask == VOID, np.uint8(0), mask)
        scores = [self._score_layer(maps[position - 1], truth, position) for maps in soft]
        grids = dict.fromkeys(tuple(maps.shape[1:3]) for maps in soft)
        return scores, {grid: self._ideal(truth, grid) for grid in grids}

    def _ideal(self, truth: NDArray[np.uint8], grid: tuple[int, ...]) -> Both:
        """J and F of a frame's true masks, once seeded on a grid and decoded from it."""
        labels = self._labels(truth, (grid[0], grid[1]))
        return score_frame(self._decoded(labels), truth, self._objects)

    def _score_layer(self, soft: Tensor, truth: NDArray[np.uint8], position: int) -> FrameScores:
        mask = self._decoded(soft)
        j, f = score_frame(mask, truth, self._objects)
        return j, f, small_mask(mask) if position in self._examples else None


class _SetsMeasurer(_VideoMeasurer):
    """The same for sets of layers: it is fed each of their layers, and carries masks by the mean cosines.

    Beside what waits for a single layer, the frames of a batch wait until all layers have shown them.
    """

    def __init__(self, video: Video, view: View, rule: PropagationRule, sets: Sequence[Layer]) -> None:
        super().__init__(video, view, rule, ())
        self._sets = sets
        members = members_of(sets)
        self._gathered = Gathered(members)
        self._flags: dict[Layer, list[Tensor]] = {layer: [] for layer in members}
        self._varied: dict[Layer, Tensor] = {}
        self._carried: list[PropagationOfSets[Layer]] = []
        self._soft: dict[Layer, list[Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        self._flags[layer].append(grids[: self._last + 1 - positions[0]].isfinite().all())
        if layer not in self._varied:
            self._varied[layer] = varies(grids[:1])
        for position, frame in self._gathered.add(layer, positions, grids).items():
            if position > self._last:
                continue
            if not self._carried:
                self._begin(frame)
                continue
            for carried in self._carried:
                for one, soft in carried.step(frame).items():
                    self._soft[one].append(soft)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        if layer not in self._soft:
            raise ValueError(MIXED)
        changing = torch.stack([self._varied[one] for one in layer.members]).any()
        finite = torch.stack([flag for one in layer.members for flag in self._flags[one]])
        soft = torch.stack(self._soft[layer]) if self._soft[layer] else changing.new_zeros(0)
        return {"soft": soft, "varies": changing[None], FINITE: finite}

    def _begin(self, frame: Mapping[Layer, Tensor]) -> None:
        """Start with the first frame, which all layers have shown."""
        shapes = {layer: (grid.shape[0], grid.shape[1]) for layer, grid in frame.items()}
        for size, sets in of_one_grid(self._sets, shapes).items():
            tokens = {one: frame[one] for one in members_of(sets)}
            labels = self._labels(self._seed, size)  # which go where the tokens are
            named = {each: each.members for each in sets}
            self._carried.append(PropagationOfSets(tokens, labels, named, self._rule.heard))
            self._soft |= {each: [] for each in sets}
