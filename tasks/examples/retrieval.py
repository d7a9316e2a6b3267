"""Examples of retrieval: queries, and the images that were ranked first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.base import Sample
from tasks.datasets.revisitop import Retrieval
from tasks.examples.draw import Predicted, by_key, drawn
from tasks.metrics.arrays import Integers

QUERIES = 12
"""Queries whose ranking is kept."""

RANKED = 4
"""First images of each ranking, without those that are ignored."""


@dataclass(frozen=True)
class RetrievalExamples:
    """Queries of a revisited dataset and what layers rank first.

    Attributes:
        data: The dataset.
        queries: Its queries as they are shown.
    """

    data: Retrieval
    queries: tuple[Sample, ...]

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Places of the examples among the queries: such as have a positive image."""
        data = self.data
        sought = [row for row in range(len(data.queries)) if len(data.easy[row]) or len(data.hard[row])]
        return tuple(sought[place] for place in drawn([data.queries[row].key for row in sought], QUERIES))

    def predicted(self, ranks: Integers, precision: NDArray[np.float64]) -> Predicted:
        """What a layer ranks first.

        Args:
            ranks: [database queries], best first.
            precision: Average precision Medium of each query in percent, [queries].
        """
        shape = (len(self.places), RANKED)
        keys, kinds = np.full(shape, "", object), np.full(shape, "", "<U5")
        for place, row in enumerate(self.places):
            kept = ranks[~np.isin(ranks[:, row], self.data.junk[row]), row][:RANKED]
            keys[place, : len(kept)] = [self.data.database[image].key for image in kept]
            hard, easy = (np.isin(kept, images[row]) for images in (self.data.hard, self.data.easy))
            kinds[place, : len(kept)] = np.where(easy, "easy", np.where(hard, "hard", "wrong"))
        chosen = precision[list(self.places)].astype(np.float32)
        return {"neighbour": keys.astype(str), "kind": kinds, "average_precision": chosen}

    def facts(self) -> Predicted:
        """Names of the queries, and how many images show the same."""
        data = self.data
        positives = [len({*data.easy[row], *data.hard[row]}) for row in self.places]
        return {
            "query": np.asarray([data.queries[row].key for row in self.places], str),
            "positives": np.asarray(positives, np.int64),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        """The queries, cut as they are shown, and the images that those layers ranked first."""
        own = [self.queries[row].key for row in self.places]
        near = [str(key) for rank in range(RANKED) for one in predicted for key in one["neighbour"][:, rank]]
        return by_key(self.queries, own) | by_key(self.data.database, near)
