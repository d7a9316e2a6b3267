"""Costs of backbones and of indexes of their vectors: the command `cost` and `layerboard.cost`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerboard.benchmark.commands.command import command, ended_by_signals, exit_code, rows_of, say, say_json
from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.commands.run import RunForm, run, run_command
from layerboard.benchmark.forms.option import Option, Plain
from layerboard.benchmark.forms.request import Request
from layerboard.zoo.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from layerboard.benchmark.engines.progress import Reporter
    from layerboard.benchmark.vectors import VectorFile

VECTORS = 100_000  # usual size of the database
MOST_QUERIES = 200  # the first ones are searched for
DATABASE, ASKED = ("train", "database", "features"), ("test", "queries")  # arrays in files of vectors
HELD_OUT = 5  # every fifth vector is a query where a file has none
TABLE = ["backbone", "vectors of", "layer", "index", "vectors", "recall@10", "ms", "bytes", "build, s"]


class CostRequest(Request):
    """Options of `cost`: backbones, data, and whether indexes of their vectors are measured."""

    index: Plain[bool] = Option(False, "Build flat, HNSW and IVF indexes of the vectors with faiss.")
    vectors: Plain[int] = Option(
        VECTORS,
        "With --index: size to which the database grows, by repeating vectors with added noise.",
        least=1,
    )
    json: Plain[bool] = Option(False, "With --index: print JSON.")


@command("cost", CostRequest, without=["shots", "transform", "compress", "fuse", "examples"])
def cost_command(request: CostRequest) -> int:
    """Measure time, memory and size of backbones; with --index also the cost of searching their vectors.

    Each index is searched for the 10 nearest vectors by cosine similarity, one query at a time on one
    thread. The table gives recall against exact search, milliseconds per query, bytes per vector, and seconds
    to build. HNSW has M = 32 and ef = 64; IVF has 4 times the square root of the number of vectors as cells,
    but at most one per 39 vectors, and searches 16 of them. The vectors are those of `features`: the last
    block of each backbone, or the layers of --layers.

    Example: `layerboard cost --index -b dino-b16 -t knn --images MY_PHOTOS --vectors 1000000`
    """
    if not request.index:
        return run_command.handle(RunForm(**_costs_alone(request))) or 0
    with ended_by_signals("interrupted; nothing was kept") as report:
        result, code = _indexes(request, report)
    if request.json:
        say_json(rows_of(result.frame))
    else:
        say(result.text())
    return code


@cost_command.python
def cost(request: CostRequest) -> Result:
    """With ``index``, ``frame`` has one row per index and the columns of ``cost.TABLE``; else that of a run.

    Example:
        >>> import layerboard
        >>> found = layerboard.cost("mini-dino", "knn", images="photos", index=True, vectors=500)
        >>> found.frame["index"].tolist()
        ['flat', 'HNSW', 'IVF', 'flat', 'HNSW', 'IVF']
    """
    from layerboard.benchmark.engines.progress import reporter_for

    return _indexes(request, reporter_for(None))[0] if request.index else run(**_costs_alone(request))


def _costs_alone(request: CostRequest) -> dict[str, Any]:
    """Options of the run that measures backbones; raises InputError for options of indexes."""
    if request.json or request.vectors != VECTORS or request.tasks not in ((), ("cost",)):
        raise InputError(
            "cost takes --tasks, --vectors and --json only with --index; add it or leave them out"
        )
    return vars(request.request) | {"tasks": ("cost",)}


def _indexes(request: CostRequest, report: "Reporter") -> tuple[Result, int]:
    """Costs of indexes, and the exit code of the command; raises InputError if there are no vectors."""
    import sys

    import pandas as pd

    from layerboard.benchmark.vectors import write_vectors
    from layerboard.tasks.retrieval.search_index import index_costs

    if sys.platform == "darwin":
        raise InputError("--index needs faiss, whose wheels are incompatible with those of torch on macOS")
    files, done = write_vectors(replace(request.request, tasks=request.tasks or ("knn",)), report)
    rows = []
    for backbone, _, path in _chosen(files, every=request.layers != "all"):
        database, queries = _read(path)
        sizes = tuple(dict.fromkeys((len(database), max(len(database), request.vectors))))
        with report.bar(f"{backbone}  indexing", 3 * len(sizes), "indexes") as advance:
            for each in index_costs(database, queries, sizes):
                rows.append([backbone, path.parent.name, path.stem, *asdict(each).values()])
                advance(1)
    failures = tuple(f"Failed: {failure}" for failure in done.failures)
    if not rows:
        raise InputError("no vectors to index: " + ("; ".join(failures) or "none are finite"))
    frame = pd.DataFrame(rows, columns=TABLE)
    note = "ms: of one query on one thread of this machine; bytes: of a vector in the index."
    return Result(title="Indexes by cosine", frame=frame, notes=(note, *failures)), exit_code(done.failures)


def _chosen(files: "Sequence[VectorFile]", *, every: bool) -> "Iterator[VectorFile]":
    """Files of vectors, ``LAYER.POOLING.npz``: all, or one per folder, of the last block in one pooling."""
    for _, group in groupby(files, key=lambda file: file.path.parent):
        blocks = [file for file in group if every or file.path.name.split(".")[0].isdecimal()]
        if not every:  # the class token's come first
            blocks = sorted(blocks, key=lambda file: (-int(file.path.name.split(".")[0]), file.path.name))[:1]
        yield from blocks


def _read(path: Path) -> "tuple[NDArray[np.float32], NDArray[np.float32]]":
    """Database and queries of a file of vectors; where images are both, a fifth are queries for the rest."""
    import numpy as np

    if path.suffix == ".npy":
        arrays = {"features": np.load(path)}
    else:
        with np.load(path) as file:
            arrays = dict(file)
    database = arrays[next(name for name in DATABASE if name in arrays)]
    queries = next((arrays[name] for name in ASKED if name in arrays), None)
    asks = arrays["roles"] == "query" if "roles" in arrays else np.zeros(len(database), np.bool_)
    if queries is None:
        asks = asks if asks.any() else np.arange(len(database)) % HELD_OUT == 0
        database, queries = database if asks.all() else database[~asks], database[asks]
    return database, queries[:MOST_QUERIES]
