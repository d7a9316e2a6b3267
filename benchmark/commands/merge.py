"""Merge output folders into one, with its pages: the command `merge` and `layerboard.merge`."""

from dataclasses import KW_ONLY

from layerboard.benchmark.commands.command import boards_of, command, say
from layerboard.benchmark.commands.result import Files
from layerboard.benchmark.forms.option import Form, Option, OptionalPath, Paths, Plain
from layerboard.zoo.errors import InputError


class MergeRequest(Form, kw_only=False):
    """Options of `merge`: the output folders to merge."""

    folders: Paths = Option(..., "Output folders of two or more runs.")
    _: KW_ONLY
    output: OptionalPath = Option(None, "Folder to write; results that it already has are kept.", also="-o")
    skip: Plain[bool] = Option(
        False, "Leave out a folder whose results contradict those of an earlier one, instead of stopping."
    )


@command("merge", MergeRequest)
def merge_command(request: MergeRequest) -> None:
    """Merge the output folders of several runs, also of several machines, and write one set of leaderboards.

    Equal results are kept once. If two folders have different results for the same backbone, task, dataset
    and protocol, nothing is written and the reason is given; `--skip` leaves out such folders. Damaged files
    are refused.

    Example: `layerboard merge results-a results-b --output results`
    """
    for line in _merged(request):
        say(line)


@merge_command.python
def merge(request: MergeRequest) -> Files:
    """``frame`` has the records of the merged folder; ``paths`` are its pages.

    Example:
        >>> import layerboard
        >>> both = layerboard.merge(["results", "results"], output="together")
        >>> sorted(set(both.frame["task"]))
        ['cka', 'knn']
    """
    from layerboard.leaderboards.records.record import read_records

    title, *lines = _merged(request)
    assert request.output is not None
    records = read_records([request.output / "records"])
    keys = ["backbone", "task", "dataset", "protocol"]
    held = records.groupby(keys, as_index=False).size().rename(columns={"size": "numbers"})
    pages = sorted((request.output / "tables").glob("*.*"))
    notes = tuple(line for line in lines if line.startswith("left out"))
    return Files(title=title, frame=records, table=held, notes=notes, paths=tuple(pages))


def _merged(request: MergeRequest) -> list[str]:
    """Merge and write the pages; returns lines that say what was written where, and what was left out."""
    from layerboard.leaderboards.exchange.merge import merge_outputs
    from layerboard.leaderboards.records.record import read_records
    from layerboard.leaderboards.writers.build import write_board

    if len(request.folders) < 2:
        raise InputError("merge takes two output folders or more; found one")
    if (output := request.output) is None:
        raise InputError("merge takes the folder of the result: give --output DIR")
    for folder in request.folders:
        if not folder.is_dir():
            raise InputError(f"expected an output folder at {folder}, which does not exist")
    left_out: list[str] = []
    count = merge_outputs(request.folders, output, left_out if request.skip else None)
    boards = boards_of(read_records([output / "records"]), output)
    pages = sorted(page for board in boards for page in write_board(board, output / "tables"))
    results = "1 result is" if count == 1 else f"{count} results are"
    wrote = [f"wrote {page}" for page in pages]
    return [f"{results} in {output}", *(f"left out: {reason}" for reason in left_out), *wrote]
