"""Examples of image clustering: images of a few classes, and the cluster that each fell into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.base import Items
from tasks.datasets.base import Sample
from tasks.examples.draw import Predicted, drawn

CLASSES, OF_EACH = 6, 8
"""Classes of which the clusters are kept, and images of each."""


@dataclass(frozen=True)
class ClusterExamples:
    """Images and the clusters that layers put them into.

    Attributes:
        samples: All images that are clustered.
        labels: The class of each, [images].
        classes: Names of the classes; their numbers stand for them where there are none.
    """

    samples: tuple[Sample, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...] = ()

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Places of the examples among the images."""
        classes = np.unique(self.labels)
        wanted = classes[drawn([f"class {number}" for number in classes], CLASSES)]
        rows = np.flatnonzero(np.isin(self.labels, wanted))
        keys = [self.samples[row].key for row in rows]
        return tuple(int(rows[one]) for one in drawn(keys, CLASSES * OF_EACH, self.labels[rows].tolist()))

    def predicted(self, items: Items | None) -> Predicted:
        """The cluster of each example by the best start; -1 for one that could not be read."""
        if items is None:
            return {}
        found = dict(zip(items.keys, items.values["start 1"].astype(np.int64), strict=True))
        return {
            "cluster": np.asarray([found.get(self.samples[row].key, -1) for row in self.places], np.int64)
        }

    def facts(self) -> Predicted:
        """Names of the images, and their classes."""
        labels = self.labels[list(self.places)].tolist()
        classes = [self.classes[label] if self.classes else str(label) for label in labels]
        keys = [self.samples[row].key for row in self.places]
        return {"image": np.asarray(keys, str), "class": np.asarray(classes, str)}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        """The examples."""
        del predicted
        return {self.samples[row].key: self.samples[row] for row in self.places}
