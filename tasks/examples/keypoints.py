"""Examples of keypoint correspondence: pairs of images, and where the points went."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.base import Sample
from tasks.datasets.spair import KeypointPair
from tasks.examples.draw import Predicted, by_key, drawn

PAIRS = 16
"""Pairs of which the points are kept, the categories in turn."""


@dataclass(frozen=True)
class KeypointExamples:
    """Pairs of images and where layers find their points.

    Attributes:
        samples: The images.
        pairs: All pairs of each category.
    """

    samples: tuple[Sample, ...]
    pairs: Mapping[str, tuple[KeypointPair, ...]]

    @cached_property
    def places(self) -> dict[str, tuple[int, ...]]:
        """For each category the examples, as places among its pairs."""
        every = [(name, place) for name, pairs in self.pairs.items() for place in range(len(pairs))]
        keys = [self.pairs[name][place].key for name, place in every]
        chosen = {every[place] for place in drawn(keys, PAIRS, [name for name, _ in every])}
        return {
            name: tuple(place for place in range(len(pairs)) if (name, place) in chosen)
            for name, pairs in self.pairs.items()
        }

    def predicted(self, points: NDArray[np.float32], right: NDArray[np.bool_]) -> Predicted:
        """Where a layer finds the examples' points.

        Args:
            points: [points 2] in pixels of the target images.
            right: Whether each point of all pairs was found, [all points].
        """
        return {"point": points, "right": right[self._rows]} if len(self._rows) else {}

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Places of the examples' points among those of all pairs."""
        flags = [
            np.full(len(pair.source_points), place in self.places[name])
            for name, pairs in self.pairs.items()
            for place, pair in enumerate(pairs)
        ]
        return np.flatnonzero(np.concatenate(flags))

    def facts(self) -> Predicted:
        """The pairs: names of the images, their sizes and boxes, and the points in both."""
        pairs = [self.pairs[name][place] for name, places in self.places.items() for place in places]
        counts = [len(pair.source_points) for pair in pairs]
        return {
            "pair": np.asarray([pair.key for pair in pairs], str),
            "category": np.asarray([pair.category for pair in pairs], str),
            "source": np.asarray([self.samples[pair.source].key for pair in pairs], str),
            "target": np.asarray([self.samples[pair.target].key for pair in pairs], str),
            "source_size": np.asarray([pair.source_size for pair in pairs], np.int64),
            "target_size": np.asarray([pair.target_size for pair in pairs], np.int64),
            "target_box": np.asarray([pair.target_box for pair in pairs], np.float64),
            "of_pair": np.repeat(np.arange(len(pairs)), counts),
            "source_point": np.concatenate([pair.source_points for pair in pairs]),
            "target_point": np.concatenate([pair.target_points for pair in pairs]),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        """Both images of every pair."""
        del predicted
        facts = self.facts()
        return by_key(self.samples, [str(key) for side in ("source", "target") for key in facts[side]])
