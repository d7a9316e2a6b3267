"""Examples of k-NN: queries, the class that each was given, and its nearest neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.datasets.base import Sample
from tasks.datasets.classes import Classification
from tasks.examples.draw import Predicted, by_key, drawn
from tasks.labelled import Labelled
from tasks.metrics.arrays import Integers
from tasks.metrics.search import Neighbours

QUERIES = 16
"""Queries whose predictions are kept, the classes in turn."""

NEIGHBOURS = 3
"""Nearest neighbours of each."""


@dataclass(frozen=True)
class KnnExamples:
    """Queries of a dataset and what layers take them for."""

    data: Classification

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """Names of the queries."""
        keys = [sample.key for sample in self.data.val.samples]
        return tuple(keys[place] for place in drawn(keys, QUERIES, self.data.val.labels.tolist()))

    def predicted(self, found: Labelled, neighbours: Neighbours, given: Integers) -> Predicted:
        """What a layer takes the queries for; empty texts for one that could not be read.

        Args:
            found: Vectors and classes of the images that could be read.
            neighbours: Of all that could be read.
            given: Class that each of those was given, [queries].
        """
        train, wanted = self.data.train, {*self.queries}
        rows = {key: row for row, key in enumerate(found.keys) if key in wanted}
        read = [(place, rows[key]) for place, key in enumerate(self.queries) if key in rows]
        names = np.asarray(train.classes, str)
        shape = (len(self.queries), min(NEIGHBOURS, neighbours.index.shape[1]))
        classes, keys = np.full(shape, "", names.dtype), np.full(shape, "", object)
        predicted, right = np.full(shape[0], "", names.dtype), np.zeros(shape[0], np.bool_)
        cosine = np.full(shape, np.nan, np.float32)
        for place, row in read:
            near = neighbours.index[row, : shape[1]]
            predicted[place], right[place] = names[given[row]], given[row] == found.truth[row]
            classes[place] = names[found.labels[near]]
            keys[place] = [train.samples[image].key for image in found.stored[near]]
            cosine[place] = neighbours.similarity[row, : shape[1]].round(4)
        return {
            "predicted": predicted,
            "right": right,
            "neighbour": keys.astype(str),
            "neighbour_class": classes,
            "cosine": cosine,
        }

    def facts(self) -> Predicted:
        """Names of the queries, and their classes."""
        val = self.data.val
        labels = {sample.key: label for sample, label in zip(val.samples, val.labels, strict=True)}
        classes = [self.data.train.classes[labels[key]] for key in self.queries]
        return {"query": np.asarray(self.queries, str), "class": np.asarray(classes, str)}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        """The queries, and the neighbours that those layers found, nearest first."""
        near = [str(key) for rank in range(NEIGHBOURS) for one in predicted for key in _of(one, rank)]
        return by_key(self.data.val.samples, self.queries) | by_key(self.data.train.samples, near)


def _of(predicted: Predicted, rank: int) -> Sequence[object]:
    """Names of the neighbours of that rank, of every query."""
    return list(predicted["neighbour"][:, rank : rank + 1].ravel())
