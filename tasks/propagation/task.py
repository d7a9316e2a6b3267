"""DAVIS-2017 mask propagation: labels of the first frame carried through a video by feature similarity.

Source: Jabri et al., NeurIPS 2020; numbers as in the evaluation of DINO (Caron et al., ICCV 2021); J and F by
the rules of the DAVIS-2017 evaluation (Pont-Tuset et al., 2017).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from torch import Tensor

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
    digest,
    open_metrics,
)
from layerboard.tasks.framework.checks import ALIKE
from layerboard.tasks.framework.examples import Predicted, drawn_indices, small_mask
from layerboard.tasks.framework.measurers import Measurer
from layerboard.tasks.framework.task import MeasuredTask
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.propagation.config import CONFIGS, PropagationConfig
from layerboard.tasks.propagation.measurers import CEILINGS, VideoMeasurer, j_and_f_of
from layerboard.zoo.view.views import View

VIDEOS = 8  # number of videos in the examples
FRAMES = 2  # frames of each: the middle and the last scored frame


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
