"""Merge output folders into one, with its pages: the command `merge` and `layerboard.merge`."""

from dataclasses import KW_ONLY

from layerboard.benchmark.commands.command import boards_of, public
from layerboard.benchmark.commands.result import Files
from layerboard.benchmark.forms.option import Form, Option, OptionalPath, Paths
from layerboard.zoo.errors import InputError, ensure


class MergeRequest(Form, kw_only=False):
    """Options of `merge`: the output folders to merge."""

    folders: Paths = Option(..., "Output folders of two or more runs.")
    _: KW_ONLY
    output: OptionalPath = Option(None, "Folder to write; results that it already has are kept.", also="-o")


@public("merge", MergeRequest)
def merge(request: MergeRequest) -> Files:
    """Merge the output folders of several runs, or machines.

    One set of leaderboards is written. Equal results are kept once. If two folders have different results for
    the same backbone, task, dataset and protocol, nothing is written and the reason is given. Damaged files
    are refused.

    Example: `layerboard merge results-a results-b --output results`

    Returns:
        ``frame`` has the records of the merged folder; ``paths`` are its pages.

    Example:
        >>> import layerboard
        >>> both = layerboard.merge(["results", "results"], output="together")
        >>> sorted(set(both.frame["task"]))
        ['cka', 'knn']
    """
    from layerboard.leaderboards.exchange.merge import merge_outputs
    from layerboard.leaderboards.records.record import read_records
    from layerboard.leaderboards.writers.build import write_board

    ensure(len(request.folders) >= 2, "merge takes two output folders or more; found one")
    if (output := request.output) is None:
        raise InputError("merge takes the folder of the result: give --output DIR")
    for folder in request.folders:
        ensure(folder.is_dir(), f"expected an output folder at {folder}, which does not exist")
    count = merge_outputs(request.folders, output)
    records = read_records([output / "records"])
    boards = boards_of(records, output)
    pages = sorted(page for board in boards for page in write_board(board, output / "tables"))
    keys = ["backbone", "task", "dataset", "protocol"]
    title = f"{'1 result is' if count == 1 else f'{count} results are'} in {output}"
    return Files(
        title=title,
        frame=records,
        table=records.groupby(keys, as_index=False).size().rename(columns={"size": "numbers"}),
        paths=tuple(pages),
        lines=(title, *(f"wrote {page}" for page in pages)),
    )
