"""DAVIS-2017 mask propagation: labels of the first frame carried through a video by feature similarity.

Source: Jabri et al., NeurIPS 2020; numbers as in the evaluation of DINO (Caron et al., ICCV 2021); J and F by
the rules of the DAVIS-2017 evaluation (Pont-Tuset et al., 2017).
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from torch import Tensor

from tasks.base import Group, Items, Measurements, Measurer, Outcome, Score, Source, Statistic, digest
from tasks.checks import ALIKE
from tasks.datasets.base import Sample
from tasks.datasets.davis import Video, Videos
from tasks.datasets.files import stamp
from tasks.datasets.masks import read_mask
from tasks.examples import Predicted, drawn, small_mask
from tasks.propagation.config import CONFIGS, PropagationConfig
from tasks.propagation.measurers import CEILINGS, VideoMeasurer, VideoScorer, VideoSetsMeasurer
from tasks.task import MeasuredTask
from zoo.spec import Layer
from zoo.view.views import View

VIDEOS = 8  # of which masks are kept
FRAMES = 2  # of each: the middle and the last one of those that are scored


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

    def _video(self, group: Group) -> Video:
        return next(video for video in self.data.videos if video.name == group.key)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        video = self._video(group)
        scores = VideoScorer(video, view, self.config, self._kept(video))
        return VideoMeasurer(scores, self.config)

    def measure_sets(self, group: Group, view: View, sets: Sequence[Layer]) -> Measurer[Tensor]:
        return VideoSetsMeasurer(VideoScorer(self._video(group), view, self.config, ()), self.config, sets)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """J&F, J and F in percent, unweighted means over objects; the first and last frame do not count."""
        known = ("J", "F", *(name for both in CEILINGS.values() for name in both))
        names = [name for name in known if all(name in m for m in measurements)]
        every = zip(self.data.videos, measurements, strict=True)
        pairs = [pair for pair in every if pair[1]["J"].size]  # fewer than three frames: none counts
        if not pairs:
            return Outcome((), empty="no video has an annotated object in a frame that counts")
        if not any(np.any(measured["varies"]) for measured in measurements):
            return Outcome((), empty=ALIKE)
        values = {
            name: np.asarray([100.0 * float(np.mean(frames)) for _, m in pairs for frames in m[name]])
            for name in names
        }
        for metric, both in CEILINGS.items():
            if both[0] in values:
                j, f = (values.pop(name) for name in both)
                values[metric] = (j + f) / 2
        values = {"J&F": (values["J"] + values["F"]) / 2, **values}
        scores = (
            Score(metric, self._rounded(float(v.mean())), len(v), "objects") for metric, v in values.items()
        )
        objects = [(video.name, number) for video, m in pairs for number in range(1, 1 + len(m["J"]))]
        keys, videos = (
            tuple(f"{name}_{number}" for name, number in objects),
            tuple(name for name, _ in objects),
        )
        statistics = {metric: Statistic(metric) for metric in values}
        items = Items("objects", keys, videos, ("",) * len(keys), values, statistics)
        # of sets of layers no masks are kept
        masks = any("mask" in measured for measured in measurements)
        return Outcome(tuple(scores), items, predicted=self._predicted(measurements) if masks else {})

    def _rounded(self, percent: float) -> float:
        decimals = self.config.decimals
        return percent if decimals is None else 100.0 * round(percent / 100.0, decimals)

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """Frames whose masks are kept, by the name of their video, in the order of the videos."""
        long = [video for video in self.data.videos if len(video.frames) > 2]
        places = {}
        for video in (long[row] for row in drawn([video.name for video in long], VIDEOS)):
            rows = np.linspace(0, len(video.frames) - 3, FRAMES + 1)[1:].round().astype(np.int64)
            places[video.name] = tuple(dict.fromkeys((1 + rows).tolist()))
        return places

    def _kept(self, video: Video) -> tuple[int, ...]:
        """Frames of a video whose masks are kept; none of one too short to be scored."""
        return self.places.get(video.name, ()) if len(video.frames) > 2 else ()

    def _predicted(self, measurements: Sequence[Measurements]) -> Predicted:
        """Masks of the examples and their J&F, mean over objects, from what the videos left behind."""
        masks, scores = [], []
        for video, measured in zip(self.data.videos, measurements, strict=True):
            if places := self._kept(video):
                masks.append(np.asarray(measured["mask"], np.uint8))
                both = (np.asarray(measured["J"], np.float64) + np.asarray(measured["F"], np.float64)) / 2
                scores.append(100.0 * both[:, [frame - 1 for frame in places]].mean(axis=0))
        if not masks:
            return {}
        return {"mask": np.concatenate(masks), "score": np.concatenate(scores).astype(np.float32)}

    def facts(self) -> Predicted:
        every = [(video, frame) for video in self._shown for frame in self._kept(video)]
        seeds = {video.name: small_mask(read_mask(video.masks[0])) for video in self._shown}
        return {
            "video": np.asarray([video.name for video, _ in every], str),
            "frame": np.asarray([video.frames[frame].key for video, frame in every], str),
            "first": np.asarray([video.frames[0].key for video, _ in every], str),
            "position": np.asarray([frame for _, frame in every], np.int64),
            "truth": np.stack([small_mask(read_mask(video.masks[frame])) for video, frame in every]),
            "given": np.stack([seeds[video.name] for video, _ in every]),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        frames = (video.frames[frame] for video in self._shown for frame in (0, *self._kept(video)))
        return {frame.key: frame for frame in frames}

    @property
    def _shown(self) -> list[Video]:
        return [video for video in self.data.videos if self._kept(video)]
