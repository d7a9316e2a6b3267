"""Costs of backbones, and of indexes of their vectors: `layerboard.cost`."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.commands.run import run
from layerboard.benchmark.forms.option import Option, Plain, called_with
from layerboard.benchmark.forms.request import Request
from layerboard.zoo.errors import InputError, ensure

if TYPE_CHECKING:
    from layerboard.benchmark.passes.one_pass import VectorFile


class CostCall(Request):
    """Options of `layerboard.cost`: those of a run, and whether indexes of its vectors are measured."""

    index: Plain[bool] = Option(False, "Build flat, HNSW and IVF indexes of the vectors with faiss.")
    vectors: Plain[int | None] = Option(
        None,
        "With index: size to which the database grows, by repeating vectors with added noise.",
        least=1,
        usual="100000",
    )


@called_with(CostCall)
def cost(call: CostCall) -> Result:
    """Measure time, memory and size of backbones; with ``index`` also the cost of searching their vectors.

    Does what ``layerboard run --tasks cost`` does; with ``index``, what ``layerboard score index`` does with
    the vectors of each backbone's last block, or of the given layers. Then ``frame`` has one row per index.
    HNSW has M = 32 and ef = 64; IVF has 4 times the square root of the number of vectors as cells, but at
    most one per 39 vectors, and searches 16 of them.

    Example:
        >>> import layerboard
        >>> found = layerboard.cost("mini-dino", "knn", images="photos", index=True, vectors=500)
        >>> found.frame["index"].tolist()
        ['flat', 'HNSW', 'IVF', 'flat', 'HNSW', 'IVF']
    """
    if not call.index:
        if call.vectors or call.tasks not in ((), ("cost",)):
            raise InputError("cost takes tasks= and vectors= only with index=True; add it or leave them out")
        return run(**vars(Request.of(call, tasks="cost")))
    import pandas as pd

    from layerboard.benchmark.engines.progress import reporter_for
    from layerboard.benchmark.exported.index import COLUMNS, NOTE, index_rows
    from layerboard.benchmark.vectors import write_vectors

    report = reporter_for(None)
    done = write_vectors(Request.of(call, tasks=call.tasks or "knn"), report)
    chosen = [*_chosen(done.files, every=call.layers != "all")]
    rows = []
    with report.bar("indexing", len(chosen), "files of vectors") as advance:
        for backbone, _, path in chosen:
            names = backbone, path.parent.name, path.stem
            rows += [(*names, *row) for row in index_rows(path, call.vectors)]
            advance(1)
    failures = tuple(f"Failed: {failure}" for failure in done.failures)
    ensure(rows, "no vectors to index: " + ("; ".join(failures) or "none are finite"))
    frame = pd.DataFrame(rows, columns=["backbone", "vectors of", "layer", *COLUMNS])
    return Result(title="Indexes by cosine", frame=frame, notes=(NOTE, *failures))


def _chosen(files: "Sequence[VectorFile]", *, every: bool) -> "Iterator[VectorFile]":
    """Files of vectors, ``LAYER.POOLING.npz``: all, or one per folder, of the last block in one pooling."""
    for _, group in groupby(files, key=lambda file: file.path.parent):
        blocks = [file for file in group if every or file.path.name.split(".")[0].isdecimal()]
        if not every:  # the class token's come first
            blocks = sorted(blocks, key=lambda file: (-int(file.path.name.split(".")[0]), file.path.name))[:1]
        yield from blocks
