"""Stored vectors in the forms that the scorers of this package read, one function a scorer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.base import Source
from tasks.cka import CkaProblem
from tasks.clustering import ImageClusterProblem
from tasks.knn import KnnProblem
from tasks.retrieval import RetrievalProblem

Vectors = Mapping[str, NDArray[np.float32]]
"""For each source its vectors [images dim] in its order; NaN rows for images that could not be read."""

Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Form:
    """What a scorer reads.

    Attributes:
        scorer: Its name after ``score``.
        ending: ``npz``, or ``npy`` of a single array.
        arrays: The arrays of one layer and pooling, by name, of a problem and its vectors.
    """

    scorer: str
    ending: str
    arrays: Callable[[Any, Vectors], Arrays]

    @property
    def option(self) -> str:
        """How the scorer is given the file."""
        return f"score {self.scorer} --features"


def knn_arrays(problem: KnnProblem, vectors: Vectors) -> Arrays:
    """Bank and queries with their labels and the names of the images, without those that were not read."""
    bank, queries = problem.bank(vectors), vectors[problem.where.val.name]
    arrays: Arrays = {}
    for name, values, images in (("train", bank, problem.data.train), ("test", queries, problem.data.val)):
        read = ~np.isnan(values[:, 0])
        arrays[name] = values[read]
        arrays[f"{name}_labels"] = images.labels[read]
        arrays[f"{name}_keys"] = np.array([sample.key for sample in images.samples])[read]
    return arrays


def retrieval_arrays(problem: RetrievalProblem, vectors: Vectors) -> Arrays:
    """Images of the database and queries, in the order of the ground truth."""
    database, queries = (vectors[source.name] for source in problem.sources)
    return {"database": database, "queries": queries}


def clustering_arrays(problem: ImageClusterProblem, vectors: Vectors) -> Arrays:
    """Images of the probe subset in the dataset's order, with their labels and names."""
    order = np.argsort(problem.where.probe_order)
    values = vectors[problem.where.probe.name][order]
    read = ~np.isnan(values[:, 0])
    keys = _keys(problem.where.probe)[order]
    return {"features": values[read], "labels": problem.labels[order][read], "keys": keys[read]}


def cka_arrays(problem: CkaProblem, vectors: Vectors) -> Arrays:
    """Images of the probe subset in the order of the batches."""
    values = vectors[problem.source.name]
    return {"features": values[~np.isnan(values[:, 0])]}


FORMS: Mapping[type, Form] = {
    KnnProblem: Form("knn", "npz", knn_arrays),
    RetrievalProblem: Form("retrieval", "npz", retrieval_arrays),
    ImageClusterProblem: Form("clustering", "npz", clustering_arrays),
    CkaProblem: Form("cka", "npy", cka_arrays),
}
"""By the problem whose vectors it is for."""


def _keys(source: Source) -> NDArray[np.str_]:
    return np.array([sample.key for sample in source.samples])
