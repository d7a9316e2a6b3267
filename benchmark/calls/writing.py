"""Functions that hand on what runs have written."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.calls.result import Files
from benchmark.request.exchange import ExportRequest, MergeRequest
from benchmark.request.option import called_with
from benchmark.request.pages import ReportRequest


@called_with(MergeRequest)
def merge(request: MergeRequest) -> Files:
    """Put what several runs have written, on several machines perhaps, into one folder with one set of pages.

    Does what ``python -m benchmark merge`` does, with the same options.

    Returns:
        ``frame`` has the records of the merged folder; ``paths`` are its pages.

    Raises:
        zoo.errors.InputError: Too few folders, no output, two different results of one name, or a damaged
            file.

    Example:
        >>> import benchmark
        >>> both = benchmark.merge(["results", "results"], output="together")
        >>> sorted(set(both.frame["task"]))
        ['cka', 'knn']
    """
    from benchmark.exchange.merging import merged
    from leaderboards.records.record import read_records

    title, *_ = merged(request)
    assert request.output is not None
    records = read_records([request.output / "records"])
    pages = sorted((request.output / "tables").glob("*.*"))
    keys = ["backbone", "task", "dataset", "protocol"]
    held = records.groupby(keys, as_index=False).size().rename(columns={"size": "numbers"})
    return Files(title=title, frame=records, table=held, paths=tuple(pages))


@called_with(ExportRequest)
def export(request: ExportRequest) -> Files:
    """Write what was measured for others: a LaTeX table, CSV files, or results for model cards of the Hub.

    Does what ``python -m benchmark export`` does, with the same options.

    Returns:
        ``paths`` are the files that were written, ``frame`` names them.

    Raises:
        zoo.errors.InputError: There are no records, none of a backbone, or nothing to write.

    Example:
        >>> import benchmark
        >>> [path.suffix for path in benchmark.export("csv", output="results", to="tables").paths]
        ['.csv']
    """
    from benchmark.exchange.export import exported

    return _files(exported(request), f"for {request.form}")


@called_with(ReportRequest)
def report(request: ReportRequest) -> Files:
    """Write one HTML page for each suite of an output folder: charts, filters, tables, in one offline file.

    Does what ``python -m benchmark report`` does, with the same options.

    Returns:
        ``paths`` are the files that were written, pages first, ``frame`` names them.

    Raises:
        zoo.errors.InputError: There are no records, no such suite, or a file of published numbers cannot be
            read.

    Example:
        >>> import benchmark
        >>> [path.suffix for path in benchmark.report(output="results", to="pages").paths]
        ['.html']
    """
    from benchmark.exchange.reporting import written

    return _files(written(request), "to look at")


def _files(paths: Sequence[Path], purpose: str) -> Files:
    import pandas as pd

    count = len(paths)
    return Files(
        title=f"{count} {'file' if count == 1 else 'files'} {purpose}",
        frame=pd.DataFrame({"path": [str(path) for path in paths]}),
        paths=tuple(paths),
    )
