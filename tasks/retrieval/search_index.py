"""Cost of a faiss index of vectors: recall, milliseconds per query, bytes per vector.

Sources: Malkov and Yashunin, TPAMI 2020 (HNSW); Jégou et al., TPAMI 2011 (inverted files).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from layerboard.tasks.metrics.neighbours import Vectors, unit_vectors

KINDS = ("flat", "HNSW", "IVF")  # the exact index first
NEIGHBOURS = 10
LINKS, BREADTH = 32, 64  # of HNSW: M, and ef of the search
PROBES = 16  # cells of an inverted file that are searched
LISTS = 4  # the number of cells is this times the square root of the number of vectors
LEAST_IN_LIST = 39  # least mean number of vectors in a cell, below which faiss warns
NOISE = 0.5  # noise of repeated vectors, in standard deviations of each channel
TIE = 1e-6  # cosines at most this much lower than the exact one count as found
SEED = 0


@dataclass(frozen=True, slots=True)
class IndexCost:
    """Cost of one index with a number of vectors."""

    index: str
    vectors: int
    recall: float  # percent of the exact `NEIGHBOURS` nearest neighbours that are found; ties count as found
    ms: float  # per query, one at a time on one thread
    bytes: float  # size of the index file per vector
    seconds: float  # build time on all threads


def index_costs(database: Vectors, queries: Vectors, sizes: tuple[int, ...]) -> Iterator[IndexCost]:
    """Costs of flat, HNSW and IVF cosine indexes of each size, searched with queries [m dim].

    The vectors are the first of the database [n dim]; beyond n they are repeated with Gaussian noise. Raises
    ValueError if a value is not finite.
    """
    import faiss

    asked = unit_vectors(queries)
    for size in sizes:
        stored = unit_vectors(repeated(database, size))
        least: NDArray[np.float32] | None = None
        for name in KINDS:
            begin = perf_counter()
            index = _built(name, stored)
            seconds = perf_counter() - begin
            cosines, ms = _searched(index, asked, min(NEIGHBOURS, size))
            least = cosines[:, -1:] - TIE if least is None else least  # from the flat index, which is exact
            recall = 100 * float((cosines >= least).mean())
            yield IndexCost(name, size, recall, ms, len(faiss.serialize_index(index)) / size, seconds)


def repeated(database: Vectors, size: int) -> Vectors:
    """The first ``size`` vectors, with noisy copies if there are fewer: [size dim]."""
    copies = np.resize(database, (size, database.shape[1]))
    noise = np.random.default_rng(SEED).standard_normal(copies[len(database) :].shape, np.float32)
    copies[len(database) :] += NOISE * database.std(axis=0) * noise
    return copies


def _searched(index: Any, queries: Vectors, k: int) -> tuple[Vectors, float]:  # noqa: ANN401 - of faiss
    """Cosines of the neighbours found [queries k], and milliseconds per query in the faster of two rounds."""
    rounds = []
    with threadpool_limits(limits=1):
        for _ in range(2):
            begin = perf_counter()
            cosines = [index.search(query[None], k)[0] for query in queries]
            rounds.append(perf_counter() - begin)
    return np.concatenate(cosines), 1000 * min(rounds) / len(queries)


def _built(name: str, stored: Vectors) -> Any:  # noqa: ANN401
    """The index of a name in `KINDS` with all vectors [n dim], by their inner products."""
    import faiss

    lists = max(1, min(int(LISTS * len(stored) ** 0.5), len(stored) // LEAST_IN_LIST))
    layout = {"flat": "Flat", "HNSW": f"HNSW{LINKS}", "IVF": f"IVF{lists},Flat"}[name]
    index: Any = faiss.index_factory(stored.shape[1], layout, faiss.METRIC_INNER_PRODUCT)
    if name == "HNSW":
        index.hnsw.efSearch = BREADTH
    if name == "IVF":
        index.nprobe, index.cp.min_points_per_centroid = min(PROBES, lists), 1
        index.train(stored)
    index.add(stored)
    return index
