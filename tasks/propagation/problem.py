"""DAVIS-2017 mask propagation: labels of the first frame carried through a video by feature similarity.

Source: Jabri et al., NeurIPS 2020; numbers as in the evaluation of DINO (Caron et al., ICCV 2021); J and F by
the rules of the DAVIS-2017 evaluation (Pont-Tuset et al., 2017).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from torch import Tensor

from tasks.base import (
    Group,
    Items,
    Measurements,
    Measurer,
    Outcome,
    Score,
    Source,
    Statistic,
    digest,
)
from tasks.checks import ALIKE
from tasks.datasets.davis import Videos
from tasks.datasets.files import stamp
from tasks.examples.propagation import PropagationExamples
from tasks.propagation.measurers import SetsMeasurer, VideoMeasurer
from tasks.propagation.rule import CONFIGS, PropagationConfig
from tasks.propagation.scoring import CEILINGS, VideoScores
from tasks.task import MeasuredTask
from zoo.spec import Layer
from zoo.view.views import View


@dataclass(frozen=True, eq=False)
class PropagationTask(MeasuredTask):
    """Mask propagation through every video of a split."""

    data: Videos
    config: PropagationConfig
    configs = CONFIGS
    split = "val"
    sets_refusal = ""

    @cached_property
    def source(self) -> Source:
        """The frames of all videos, every video a group and a shard."""
        groups = tuple(Group(video.name, video.frames) for video in self.data.videos)
        return Source(self.data.name, groups, self.config.view)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule of propagation and of the mask files' sizes and times."""
        masks = [(path.name, *stamp(path)) for video in self.data.videos for path in video.masks]
        return digest("davis", self.config, masks)

    @property
    def ground_truth(self) -> object:
        """Digest of the names and sizes of the mask files."""
        return digest(*self.data.truth)

    @cached_property
    def kept_examples(self) -> PropagationExamples:
        """Of which frames the masks are kept."""
        return PropagationExamples(self.data.videos)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What carries the first mask through one video and scores every frame."""
        video = next(video for video in self.data.videos if video.name == group.key)
        scores = VideoScores(video, view, self.config, self.kept_examples.of(video))
        return VideoMeasurer(scores, self.config)

    def measure_sets(self, group: Group, view: View, sets: Sequence[Layer]) -> Measurer[Tensor]:
        """What carries the first mask through one video for sets of layers."""
        video = next(video for video in self.data.videos if video.name == group.key)
        return SetsMeasurer(VideoScores(video, view, self.config, ()), self.config, sets)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """J&F, J and F in percent, unweighted means over objects; the first and last frame do not count."""
        keys: list[str] = []
        videos: list[str] = []
        known = ("J", "F", *(name for both in CEILINGS.values() for name in both))
        names = [name for name in known if all(name in m for m in measurements)]
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
        for metric, both in CEILINGS.items():
            if both[0] in values:
                j, f = (values.pop(name) for name in both)
                values[metric] = (j + f) / 2
        values = {"J&F": (values["J"] + values["F"]) / 2, **values}
        scores = tuple(
            Score(metric, self._rounded(float(v.mean())), len(v), "objects") for metric, v in values.items()
        )
        statistics = {metric: Statistic(metric) for metric in values}
        items = Items("objects", tuple(keys), tuple(videos), ("",) * len(keys), values, statistics)
        shown = any("mask" in one for one in measurements)  # of sets of layers no masks are kept
        return Outcome(scores, items, predicted=self.kept_examples.predicted(measurements) if shown else {})

    def _rounded(self, percent: float) -> float:
        decimals = self.config.decimals
        return percent if decimals is None else 100.0 * round(percent / 100.0, decimals)
