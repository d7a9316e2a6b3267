"""Examples of mask propagation: frames, and the masks that were predicted for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.base import Measurements
from tasks.datasets.base import Sample
from tasks.datasets.davis import Video
from tasks.datasets.masks import read_mask
from tasks.examples.draw import Predicted, drawn, small_mask

VIDEOS = 8
"""Videos of which masks are kept."""

FRAMES = 2
"""Frames of each: the middle and the last one of those that are scored."""


@dataclass(frozen=True)
class PropagationExamples:
    """Frames of videos and the masks that layers predict for them."""

    videos: tuple[Video, ...]

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """Frames whose masks are kept, by the name of their video, in the order of the videos."""
        long = [video for video in self.videos if len(video.frames) > 2]
        chosen = [long[place] for place in drawn([video.name for video in long], VIDEOS)]
        return {video.name: _places(len(video.frames)) for video in chosen}

    def of(self, video: Video) -> tuple[int, ...]:
        """Frames of a video whose masks are kept; none of one too short to be scored."""
        return self.places.get(video.name, ()) if len(video.frames) > 2 else ()

    def predicted(self, measurements: Sequence[Measurements]) -> Predicted:
        """Masks of the examples and their J&F, mean over objects, from what the videos left behind."""
        masks, scores = [], []
        for video, measured in zip(self.videos, measurements, strict=True):
            if places := self.of(video):
                masks.append(np.asarray(measured["mask"], np.uint8))
                both = (np.asarray(measured["J"], np.float64) + np.asarray(measured["F"], np.float64)) / 2
                scores.append(100.0 * both[:, [place - 1 for place in places]].mean(axis=0))
        if not masks:
            return {}
        return {"mask": np.concatenate(masks), "score": np.concatenate(scores).astype(np.float32)}

    def facts(self) -> Predicted:
        """Names of the frames, and the true masks of them and of the first frame of their video."""
        every = [(video, place) for video in self._shown for place in self.of(video)]
        seeds = {video.name: small_mask(read_mask(video.masks[0])) for video in self._shown}
        return {
            "video": np.asarray([video.name for video, _ in every], str),
            "frame": np.asarray([video.frames[place].key for video, place in every], str),
            "first": np.asarray([video.frames[0].key for video, _ in every], str),
            "position": np.asarray([place for _, place in every], np.int64),
            "truth": np.stack([small_mask(read_mask(video.masks[place])) for video, place in every]),
            "given": np.stack([seeds[video.name] for video, _ in every]),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        """The frames, and the first frame of each video."""
        del predicted
        frames = (video.frames[place] for video in self._shown for place in (0, *self.of(video)))
        return {frame.key: frame for frame in frames}

    @property
    def _shown(self) -> list[Video]:
        return [video for video in self.videos if self.of(video)]


def _places(frames: int) -> tuple[int, ...]:
    """The middle and the last one of the frames that are scored, of a video of so many."""
    scored = np.arange(1, frames - 1)
    places = np.linspace(0, len(scored) - 1, FRAMES + 1)[1:].round().astype(np.int64)
    return tuple(int(scored[place]) for place in dict.fromkeys(places.tolist()))
