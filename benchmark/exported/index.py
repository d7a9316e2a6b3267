"""Costs of searching vectors of a file with faiss indexes."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.benchmark.exported.arrays import Arrays, read_archive, read_array
from layerboard.benchmark.exported.report import ScoreReport, number
from layerboard.tasks.datasets.integrity import require
from layerboard.tasks.retrieval.search_index import index_costs
from layerboard.zoo.errors import InputError

VECTORS = 100_000  # usual size of the database
MOST_QUERIES = 200  # the first ones are searched for
DATABASE, ASKED = ("train", "database", "features"), ("test", "queries")  # arrays in files of vectors
HELD_OUT = 5  # every fifth vector is a query where a file has none
COLUMNS = ["index", "vectors", "recall@10", "ms", "bytes", "build, s"]
NOTE = "ms: of one query on one thread of this machine; bytes: of a vector in the index."

Floats = NDArray[np.float32]
Row = tuple[str, int, float, float, float, float]  # cells of `COLUMNS`


def score_index(features: Sequence[Path], vectors: int | None) -> ScoreReport:
    """Recall and cost of flat, HNSW and IVF indexes of the vectors of each file; raises InputError.

    An index is built of the vectors as they are, and of these repeated with noise, ``vectors`` in all.
    """
    rows = {str(path): [*index_rows(path, vectors)] for path in features}
    cells = [(Path(path).stem, row) for path, each in rows.items() for row in each]
    return ScoreReport(
        protocol="standard",
        parameters={"features": [*rows], "vectors": vectors or VECTORS},
        n=len(rows),
        unit="files",
        scale="own",
        scores={
            path: {f"{row[0]}, {row[1]}": dict(zip(COLUMNS[2:], row[2:], strict=True)) for row in each}
            for path, each in rows.items()
        },
        notes=(NOTE,),
        tables=(
            [
                ["file", *COLUMNS],
                *([name, row[0], f"{row[1]:,}", *map(number, row[2:])] for name, row in cells),
            ],
        ),
    )


def index_rows(path: Path, vectors: int | None) -> Iterator[Row]:
    """The cells of `COLUMNS` for each index of the vectors of a file: as they are, and ``vectors`` in all."""
    if sys.platform == "darwin":
        raise InputError("indexes need faiss, whose wheels are incompatible with those of torch on macOS")
    database, queries = _read(path)
    sizes = tuple(dict.fromkeys((len(database), max(len(database), vectors or VECTORS))))
    yield from map(astuple, index_costs(database, queries, sizes))


def _read(path: Path) -> tuple[Floats, Floats]:
    """Database and queries of a file of vectors; where images are both, a fifth are queries for the rest."""
    names = (*DATABASE, *ASKED, "roles")
    arrays = (
        Arrays(path, {"features": read_array(path)})
        if path.suffix == ".npy"
        else read_archive(path, (), names)
    )
    known = next((name for name in DATABASE if name in arrays), "")
    require(known, f"one of the arrays {', '.join(DATABASE)} in {path}")
    asked = next((name for name in ASKED if name in arrays), known)
    parts = arrays.feature_pair(known, asked) if asked != known else [arrays.features(known)] * 2
    database, queries = (part.astype(np.float32, copy=False) for part in parts)
    if asked == known:
        asks = arrays["roles"] == "query" if "roles" in arrays else np.zeros(len(queries), np.bool_)
        asks = asks if asks.any() else np.arange(len(queries)) % HELD_OUT == 0
        database, queries = database if asks.all() else database[~asks], queries[asks]
    return database, queries[:MOST_QUERIES]
