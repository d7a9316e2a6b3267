"""DAVIS-2017 mask propagation: labels of the first frame carried through a video by feature similarity.

Source: Jabri et al., NeurIPS 2020; numbers as in the evaluation of DINO (Caron et al., ICCV 2021); J and F by
the rules of the DAVIS-2017 evaluation (Pont-Tuset et al., 2017).
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.datasets.davis import Video, Videos
from layerboard.tasks.datasets.reading.files import stamp
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.framework.base import (
    Group,
    Items,
    Measurements,
    Outcome,
    Score,
    Source,
    Statistic,
    area_ceiling_metric,
    ceiling_metric,
    digest,
    open_metrics,
)
from layerboard.tasks.framework.checks import ALIKE, LayerFlags
from layerboard.tasks.framework.examples import Predicted, drawn_indices, small_mask
from layerboard.tasks.framework.measurers import Grids, Measurer, TokenMeasurer
from layerboard.tasks.framework.task import MeasuredTask
from layerboard.tasks.metrics.arrays import VOID, Floats
from layerboard.tasks.metrics.cell_labels import area_labels
from layerboard.tasks.propagation.config import CONFIGS, Decoding, PropagationConfig
from layerboard.tasks.propagation.j_and_f import score_frame
from layerboard.tasks.propagation.metric import (
    Propagation,
    decode,
    decode_nearest,
    decode_on_frame,
    seed_labels,
)
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

VIDEOS = 8  # number of videos in the examples
FRAMES = 2  # frames of each: the middle and the last scored frame

CEILINGS = {
    ceiling_metric("J&F"): (ceiling_metric("J"), ceiling_metric("F")),
    area_ceiling_metric("J&F"): (area_ceiling_metric("J"), area_ceiling_metric("F")),
}
"""For each upper-bound metric, its array of scores. True masks are decoded from the grid like predicted ones:
once seeded like the first mask, and once with the exact share of each token that each object covers."""

FrameScores = dict[str, NDArray[Any]]  # of one frame: J, F and their upper bounds [objects], and a small mask


def j_and_f_of(number: int) -> tuple[str, str]:
    """Names of the arrays of J and F by the settings of that number: the primary ones are 0."""
    return ("J", "F") if number == 0 else (f"J {number}", f"F {number}")


class VideoMeasurer(TokenMeasurer):
    """Propagates masks frame by frame on the device, and scores frames on the host at the end of the video.

    Until the end, a soft map of the size of the token grid is kept for each frame. Each thread has one
    full-size mask at a time. For the frames in ``examples``, a small predicted mask is kept.
    """

    def __init__(
        self, video: Video, shown: int, view: View, config: PropagationConfig, examples: tuple[int, ...] = ()
    ) -> None:
        super().__init__()
        self._video = video
        self._config = config
        self._rules = tuple(dict.fromkeys(each.neighbourhood for each in config.settings))
        self._examples = examples
        self._view_width = view.geometry(video.size).size[0]
        self._seed = read_mask(video.masks[0])
        self._objects = int(np.where(self._seed == VOID, 0, self._seed).max())
        self._last = max(0, shown - 2)  # index of the last frame that is scored; a plan shows a few
        self._flags = LayerFlags()
        self._carried: dict[tuple[Layer, ...], Propagation[Layer]] = {}  # of layers that are taken together
        self._soft: dict[Layer, list[Tensor]] = {}

    def compare(self, layers: Sequence[Layer], positions: Sequence[int], grids: Grids) -> None:
        together, start = tuple(layers), positions[0]
        scored = min(len(positions), self._last + 1 - start)  # the last frame of a video is not
        for member, tokens in grids.items():
            self._flags.see(member, tokens[:scored], compared=tokens[: 0 if start else 1])
        for row in range(scored):
            frame = {member: tokens[row] for member, tokens in grids.items()}
            if together not in self._carried:
                height, width, _ = next(iter(frame.values())).shape
                labels = self._labels(self._seed, (height, width))
                members = {layer: layer.members for layer in together}
                self._carried[together] = Propagation(frame, labels, members, self._rules)
                self._soft |= {layer: [] for layer in together}
                continue
            for layer, soft in self._carried[together].step(frame).items():
                self._soft[layer].append(soft)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Soft maps of all frames by each neighbourhood, [frames neighbourhoods height width channels]."""
        self._carried.pop((layer,), None)
        soft = self._soft.pop(layer)
        return {"soft": torch.stack(soft) if soft else torch.zeros(0), **self._flags.arrays(layer)}

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]], /) -> dict[Layer, dict[str, Tensor]]:
        """J and F of every object and scored frame, [objects frames] each, and masks of the examples.

        `j_and_f_of` has their names by each of the settings; masks are those of the primary ones.
        """
        with ThreadPoolExecutor(torch.get_num_threads(), "score", torch.set_num_threads, (1,)) as pool:
            frames = list(pool.map(partial(self._score, finished), range(1, 1 + self._last)))
        return {
            layer: {**self._together([frame[layer] for frame in frames]), "varies": arrays["varies"]}
            for layer, arrays in finished.items()
        }

    def _together(self, frames: Sequence[FrameScores]) -> dict[str, Tensor]:
        """Scores of all frames, [objects frames] each, and masks of the examples."""
        arrays = {}
        ways = (*map(j_and_f_of, range(len(self._config.settings))), *CEILINGS.values())
        for name in (name for both in ways for name in both):
            table = np.array([frame[name] for frame in frames], np.float64)
            arrays[name] = torch.from_numpy(table.reshape(len(frames), self._objects).T.copy())
        masks = [torch.from_numpy(frame["mask"]) for frame in frames if "mask" in frame]
        return arrays | ({"mask": torch.stack(masks)} if masks else {})

    def _labels(self, mask: NDArray[np.uint8], grid: tuple[int, int]) -> Tensor:
        """Labels of a mask on a grid: [height width channels]."""
        labels = seed_labels(mask, grid, keep_vanished=self._config.keep_vanished)
        if self._config.every_channel:
            labels = functional.pad(labels, (0, 1 + self._objects - labels.shape[-1]))
        return labels

    def _decoded(self, soft: Tensor, decoding: Decoding) -> NDArray[np.uint8]:
        """The mask, at the frame's size, from a soft map."""
        if decoding == "nearest":
            return decode_nearest(soft, self._video.size)
        if decoding == "patches":
            return decode(soft, self._video.size, self._view_width // soft.shape[1])
        return decode_on_frame(soft, self._video.size, scaled=decoding == "frame")

    def _score(
        self, finished: Mapping[Layer, Mapping[str, Tensor]], position: int
    ) -> dict[Layer, FrameScores]:
        """Scores of one frame by each layer, and its small mask if it is an example."""
        mask = read_mask(self._video.masks[position])
        truth = np.where(mask == VOID, np.uint8(0), mask)
        ceilings: dict[tuple[int, int], FrameScores] = {}
        by_layer = {}
        for layer, arrays in finished.items():
            maps = arrays["soft"][position - 1]
            grid = (maps.shape[1], maps.shape[2])
            if grid not in ceilings:
                ceilings[grid] = self._ceilings(truth, grid)
            by_layer[layer] = scores = dict(ceilings[grid])
            for number, rule in enumerate(self._config.settings):
                soft = maps[self._rules.index(rule.neighbourhood)]
                predicted = self._decoded(soft, rule.decoding)
                scores |= zip(j_and_f_of(number), score_frame(predicted, truth, self._objects), strict=True)
                if number == 0 and position in self._examples:
                    scores["mask"] = small_mask(predicted)
        return by_layer

    def _ceilings(self, truth: NDArray[np.uint8], grid: tuple[int, int]) -> FrameScores:
        """J and F of a frame's true masks, put on a grid by each method of `CEILINGS` and decoded again."""
        ways = (self._labels(truth, grid), area_labels(truth, grid, 1 + self._objects))
        scores: FrameScores = {}
        for names, labels in zip(CEILINGS.values(), ways, strict=True):
            predicted = self._decoded(labels, self._config.decoding)
            scores |= zip(names, score_frame(predicted, truth, self._objects), strict=True)
        return scores


def object_items(objects: Sequence[tuple[str, int]], values: Mapping[str, Floats]) -> Items:
    """Items: objects by video and number, sampled with their video; each metric is the mean of its column."""
    keys, videos = tuple(f"{name}_{number}" for name, number in objects), tuple(name for name, _ in objects)
    statistics = {metric: Statistic(metric) for metric in values}
    return Items("objects", keys, videos, ("",) * len(objects), values, statistics)


class PropagationTask(MeasuredTask):
    """Mask propagation through every video of a split."""

    data: Videos
    config: PropagationConfig
    configs = CONFIGS
    split = "val"
    sets_refusal = ""
    keeps_examples = True

    @cached_property
    def source(self) -> Source:
        groups = tuple(Group(video.name, video.frames) for video in self.data.videos)
        return Source(self.data.name, groups, self.config.view)

    @cached_property
    def fingerprint(self) -> str:
        masks = [(path.name, *stamp(path)) for video in self.data.videos for path in video.masks]
        return digest("davis", self.config, masks)

    @property
    def ground_truth(self) -> object:
        return digest(*self.data.truth)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        video = next(video for video in self.data.videos if video.name == group.key)
        examples = self.places[video.name] if self.examples else ()
        return VideoMeasurer(video, len(group.samples), view, self.config, examples)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """J&F, J and F in percent, unweighted means over objects, without the first and the last frame.

        If the protocol's source leaves settings open, J&F by those that score lowest and highest, too.
        """
        every = zip(self.data.videos, measurements, strict=True)
        pairs = [pair for pair in every if pair[1]["J"].size]  # fewer than three frames: none counts
        if not pairs:
            return Outcome((), empty="no video has an annotated object in a frame that counts")
        if not any(np.any(measured["varies"]) for measured in measurements):
            return Outcome((), empty=ALIKE)

        def percent(name: str) -> Floats:
            return np.asarray([100.0 * float(np.mean(frames)) for _, m in pairs for frames in m[name]])

        def j_and_f(names: tuple[str, str]) -> Floats:
            return (percent(names[0]) + percent(names[1])) / 2

        j, f = percent("J"), percent("F")
        values = {"J&F": (j + f) / 2, "J": j, "F": f}
        if self.config.others:
            by_settings = [j_and_f(j_and_f_of(number)) for number in range(len(self.config.settings))]
            ends = (min(by_settings, key=np.mean), max(by_settings, key=np.mean))
            values |= zip(open_metrics("J&F"), ends, strict=True)
        for metric, best in CEILINGS.items():
            if all(best[0] in measured for measured in measurements):
                values[metric] = j_and_f(best)
        means = {metric: float(column.mean()) for metric, column in values.items()}
        if (decimals := self.config.decimals) is not None:
            means = {metric: 100.0 * round(mean / 100.0, decimals) for metric, mean in means.items()}
        scores = tuple(Score(metric, mean, len(j), "objects") for metric, mean in means.items())
        objects = [(video.name, number) for video, m in pairs for number in range(1, 1 + len(m["J"]))]
        return Outcome(scores, object_items(objects, values), predicted=self._predicted(measurements))

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """Example frames by video name; none for a video too short to be scored."""
        long = [video for video in self.data.videos if len(video.frames) > 2]
        places: dict[str, tuple[int, ...]] = {video.name: () for video in self.data.videos}
        for video in (long[row] for row in drawn_indices([video.name for video in long], VIDEOS)):
            rows = np.linspace(0, len(video.frames) - 3, FRAMES + 1)[1:].round().astype(np.int64)
            places[video.name] = tuple(dict.fromkeys((1 + rows).tolist()))
        return places

    def _predicted(self, measurements: Sequence[Measurements]) -> Predicted:
        """Masks of the examples and their J&F, mean over objects, from the measurements of the videos."""
        masks, scores = [], []
        for video, measured in zip(self.data.videos, measurements, strict=True):
            if "mask" in measured:  # which is kept for examples alone
                masks.append(np.asarray(measured["mask"], np.uint8))
                both = (np.asarray(measured["J"], np.float64) + np.asarray(measured["F"], np.float64)) / 2
                scores.append(100.0 * both[:, [frame - 1 for frame in self.places[video.name]]].mean(axis=0))
        if not masks:
            return {}
        return {"mask": np.concatenate(masks), "score": np.concatenate(scores).astype(np.float32)}

    def facts(self) -> Predicted:
        every = [(video, frame) for video in self._shown for frame in self.places[video.name]]
        return {
            "video": np.asarray([video.name for video, _ in every], str),
            "frame": np.asarray([video.frames[frame].key for video, frame in every], str),
            "first": np.asarray([video.frames[0].key for video, _ in every], str),
            "position": np.asarray([frame for _, frame in every], np.int64),
            "truth": np.stack([small_mask(read_mask(video.masks[frame])) for video, frame in every]),
            "given": np.stack([small_mask(read_mask(video.masks[0])) for video, _ in every]),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        frames = (video.frames[frame] for video in self._shown for frame in (0, *self.places[video.name]))
        return {frame.key: frame for frame in frames}

    @property
    def _shown(self) -> list[Video]:
        return [video for video in self.data.videos if self.places[video.name]]
