"""Stored vectors in the forms that the scorers of this package read, one function a scorer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.base import Source
from tasks.cka import CkaTask
from tasks.clustering import ImageClusterTask
from tasks.knn import KnnTask
from tasks.retrieval import RetrievalTask

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


def knn_arrays(problem: KnnTask, vectors: Vectors) -> Arrays:
    """Bank and queries with their labels and the names of the images, without those that were not read."""
    bank, queries = problem.bank(vectors), vectors[problem.data.where.val.name]
    arrays: Arrays = {}
    for name, values, images in (
        ("train", bank, problem.images.train),
        ("test", queries, problem.images.val),
    ):
        read = ~np.isnan(values[:, 0])
        arrays[name] = values[read]
        arrays[f"{name}_labels"] = images.labels[read]
        arrays[f"{name}_keys"] = np.array([sample.key for sample in images.samples])[read]
    return arrays


def retrieval_arrays(problem: RetrievalTask, vectors: Vectors) -> Arrays:
    """Images of the database and queries, in the order of the ground truth."""
    database, queries = (vectors[source.name] for source in problem.vector_sources)
    return {"database": database, "queries": queries}


def clustering_arrays(problem: ImageClusterTask, vectors: Vectors) -> Arrays:
    """Images of the probe subset in the dataset's order, with their labels and names."""
    order = np.argsort(problem.data.probe_order)
    values = vectors[problem.data.probe.name][order]
    read = ~np.isnan(values[:, 0])
    keys = _keys(problem.data.probe)[order]
    return {"features": values[read], "labels": problem.data.labels[order][read], "keys": keys[read]}


def cka_arrays(problem: CkaTask, vectors: Vectors) -> Arrays:
    """Images of the probe subset in the order of the batches."""
    values = vectors[problem.source.name]
    return {"features": values[~np.isnan(values[:, 0])]}


FORMS: Mapping[type, Form] = {
    KnnTask: Form("knn", "npz", knn_arrays),
    RetrievalTask: Form("retrieval", "npz", retrieval_arrays),
    ImageClusterTask: Form("clustering", "npz", clustering_arrays),
    CkaTask: Form("cka", "npy", cka_arrays),
}
"""By the problem whose vectors it is for."""


def _keys(source: Source) -> NDArray[np.str_]:
    return np.array([sample.key for sample in source.samples])
