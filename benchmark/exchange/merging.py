"""Several output folders as one, with its pages."""

from benchmark.plan.facts import with_seen
from benchmark.request.exchange import MergeRequest
from leaderboards.merge import merge_outputs
from leaderboards.pages.build import write_pages
from leaderboards.records.record import read_records
from zoo.errors import InputError


def merged(request: MergeRequest) -> list[str]:
    """Merge and write the pages; gives lines that say what is where.

    Raises:
        InputError: Too few folders, no output, or something that cannot be merged.
    """
    if len(request.folders) < 2:
        raise InputError("merge takes two output folders or more; found one")
    if request.output is None:
        raise InputError("merge takes the folder of the result: give --output DIR")
    for folder in request.folders:
        if not folder.is_dir():
            raise InputError(f"expected an output folder at {folder}, which does not exist")
    count = merge_outputs(request.folders, request.output)
    folder = request.output
    records = read_records([folder / "records"])
    pages = write_pages(with_seen(records), folder / "tables", folder / "items", arrays=folder / "arrays")
    kept = "1 result is" if count == 1 else f"{count} results are"
    return [f"{kept} in {request.output}", *(f"wrote {page}" for page in pages)]
