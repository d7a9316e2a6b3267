"""Where the data of a run is, and whether its folders can be written."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmark.engines.progress import Reporter
from benchmark.plan.suites import Catalogue, Suite
from benchmark.request import Request
from tasks.mini import MINI_VERSION, is_complete, write_mini_datasets
from tasks.protocols import STANDARD, EvaluationProtocol, find_protocol
from zoo.errors import InputError


@dataclass(frozen=True)
class DataLocation:
    """Where the data is.

    Attributes:
        catalogue: Datasets of the suite.
        data: Folder that holds them; None for the user's own images.
        images: Folder of class folders, or ``hf:`` dataset, that replaces them all.
        limit: At most so many images a class, videos, pairs a category, images with regions, queries.
        protocol: Numbers of the tasks.
    """

    catalogue: Catalogue
    data: Path | None
    images: str | None = None
    limit: int | None = None
    protocol: EvaluationProtocol = STANDARD


def find_data(request: Request, suite: Suite, report: Reporter) -> DataLocation:
    """Where a request's data is; the mini suite's is rendered first if it is not there.

    Raises:
        InputError: There is no such folder, or no such protocol.
    """
    protocol = find_protocol(request.protocol or suite.protocol)
    data = request.data
    if data is None and request.images is None:
        data = mini_data(request, report)
    elif data is not None and not data.is_dir():
        raise InputError(f"expected the datasets' folder at {data}, which does not exist; give --data DIR")
    return DataLocation(suite.catalogue, data, request.images, request.limit, protocol)


def require_writable(request: Request) -> None:
    """Raise InputError unless files can be written into output and cache, which are made where missing."""
    for folder, option in ((request.output, "--output"), (request.cache, "--cache")):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise InputError(f"{option} {folder} cannot be written to: {error.strerror}") from error


def mini_data(request: Request, report: Reporter) -> Path:
    """The mini suite's datasets in the cache, rendered there first if they are not."""
    root = request.cache / "mini-data" / MINI_VERSION
    if not is_complete(root):
        with report.bar("rendering the mini datasets", 1, "parts") as advance:
            done = 0

            def progress(count: int, total: int) -> None:
                nonlocal done
                advance((count - done) / total)
                done = count

            write_mini_datasets(root, workers=request.workers, progress=progress)
    return root
