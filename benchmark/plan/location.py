"""Where the data of a run are, and the folders that it writes to."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.plan.mini_data import mini_data
from layerboard.benchmark.plan.suites import Catalogue, Suite
from layerboard.benchmark.request import Request
from layerboard.tasks.datasets.files import data_root, is_packed, require_local
from layerboard.tasks.datasets.labels import AS_IT_IS, Labelling
from layerboard.tasks.datasets.zipped import unpacked
from layerboard.tasks.protocols import STANDARD, EvaluationProtocol, find_protocol
from layerboard.zoo.atomic import remove_leftovers
from layerboard.zoo.errors import InputError


@dataclass(frozen=True)
class DataLocation:
    """Where the data are, how much of them to use, and by which protocols to run tasks."""

    catalogue: Catalogue
    data: Path | None  # the data folder, or root of a pack (`tasks.datasets.files`); None for own images
    images: tuple[str, ...] = ()  # folders of images, and ``hf:`` datasets, which replace all official ones
    limit: int | None = None  # maximum images per class, videos, pairs per category, queries, ...
    protocol: EvaluationProtocol = STANDARD
    labelling: Labelling = AS_IT_IS  # tables beside the one folder of images (`tasks.datasets.folder`)
    further: tuple[EvaluationProtocol, ...] = ()

    @property
    def by_protocol(self) -> tuple["DataLocation", ...]:
        """This location once per protocol, with that one alone."""
        every = self.protocol, *self.further
        return tuple(replace(self, protocol=protocol, further=()) for protocol in every)


def find_protocols(request: Request, suite: Suite) -> tuple[EvaluationProtocol, ...]:
    """The protocols that a request names, or that of its suite; raises InputError for an unknown one."""
    return tuple(map(find_protocol, dict.fromkeys(request.protocol or (suite.protocol,))))


def find_data(
    request: Request, suite: Suite, protocols: Sequence[EvaluationProtocol], report: Reporter
) -> DataLocation:
    """Where the data of a request are; missing or damaged parts of the mini suite are rendered.

    Raises InputError for a missing folder.
    """
    protocol, *further = (replace(each, shots=request.shots) for each in protocols)
    data = request.data
    if data is None and not request.images:
        data = mini_data(request.cache, request.workers, report)
    elif data is not None:
        data = data_folder(data)
    images = tuple(unpacked(location, request.cache) for location in request.images)
    read = (data, images, request.limit, protocol, Labelling.of(request))
    return DataLocation(suite.catalogue, *read, further=tuple(further))


def data_folder(data: Path) -> Path:
    """The folder of datasets that a user named, or the root of a pack; raises InputError without one."""
    if is_packed(data):
        return data_root(data)
    require_local(str(data), "--data")
    if not data.is_dir():
        raise InputError(f"expected the datasets' folder at {data}, which does not exist; give --data DIR")
    return data


def require_writable(output: Path, cache: Path) -> None:
    """Create both folders, and remove leftovers of killed runs; raises InputError if one is not writable."""
    for folder, option in ((output, "--output"), (cache, "--cache")):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise InputError(f"{option} {folder} cannot be written to: {error.strerror}") from error
    folders = (output / name for name in ("records", "items", "features", "tables"))
    remove_leftovers((*folders, cache / "features", cache / "mini-data"))
