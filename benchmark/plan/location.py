"""Where the data of a run are, and the folders that it writes to."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile

from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan.suites import Suite
from layerboard.mini.packs import packaged_data
from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.tasks.datasets.reading.files import data_root, is_packed
from layerboard.tasks.datasets.reading.labels import AS_IT_IS, Labelling
from layerboard.tasks.framework.protocols import STANDARD, EvaluationProtocol, find_protocol
from layerboard.zoo.atomic import remove_leftovers
from layerboard.zoo.errors import InputError

_WRITTEN = ("records", "items", "arrays", "examples", "thumbnails", "features", "tables", "report")


@dataclass(frozen=True)
class DataLocation:
    """Where the data are, how much of them to use, and by which protocols to run tasks."""

    datasets: tuple[DatasetEntry[Data], ...]  # of the suite
    data: Path | None  # the data folder, or root of a pack (`datasets.reading.files`); None for own images
    images: tuple[str, ...] = ()  # folders of images, and ``hf:`` datasets, which replace all official ones
    limit: int | None = None  # maximum images per class, videos, pairs per category, queries, ...
    protocol: EvaluationProtocol = STANDARD
    labelling: Labelling = AS_IT_IS  # tables beside the one folder of images (`tasks.datasets.folder`)
    further: tuple[EvaluationProtocol, ...] = ()
    cache: Path | None = None  # for what the pixels of own images tell
    output: Path | None = None  # whose results may be of the same images under another name

    @property
    def by_protocol(self) -> tuple["DataLocation", ...]:
        """This location once per protocol, with that one alone."""
        every = self.protocol, *self.further
        return tuple(replace(self, protocol=protocol, further=()) for protocol in every)

    def part_of(self, data: Data) -> Data:
        """As much of a dataset as is used."""
        return data if self.limit is None else data.limited(self.limit)


def find_protocols(request: Request, suite: Suite) -> tuple[EvaluationProtocol, ...]:
    """The protocols that a request names, or that of its suite; raises InputError for an unknown one."""
    return tuple(map(find_protocol, dict.fromkeys(request.protocol or (suite.protocol,))))


def find_data(request: Request, suite: Suite, protocols: Sequence[EvaluationProtocol]) -> DataLocation:
    """Where the data of a request are, or those of the package; raises InputError for a missing folder."""
    protocol, *further = (replace(each, shots=request.shots) for each in protocols)
    data = request.data
    if data is not None:
        data = data_folder(data)
    elif not request.images:
        data = packaged_data()
    images = tuple(unpacked(location, request.cache) for location in request.images)
    labelling = Labelling.of(request)
    where = request.cache, request.output
    return DataLocation(
        suite.datasets, data, images, request.limit, protocol, labelling, tuple(further), *where
    )


def data_folder(data: Path) -> Path:
    """The folder of datasets that a user named, or the root of a pack; raises InputError without one."""
    if not is_packed(data) and not data.is_dir():
        raise InputError(f"expected the datasets' folder at {data}, which does not exist; give --data DIR")
    return data_root(data)


def require_writable(output: Path, cache: Path) -> None:
    """Create both folders, and remove leftovers of killed runs; raises InputError if one cannot be used.

    A cache that is there may be one that can only be read: a run that lacks nothing of it writes nothing.
    """
    for folder, option in ((output, "--output"), (cache, "--cache")):
        with _explained(folder, option):
            folder.mkdir(parents=True, exist_ok=True)
    require_writable_folder(output, "--output")
    remove_leftovers((*(output / name for name in _WRITTEN), cache / "features"))
    remove_leftovers([output], below=False)  # which may be a folder with much else


def require_writable_folder(folder: Path, option: str) -> None:
    """Raise InputError, with the option that names the folder, if no file can be written there."""
    with _explained(folder, option), TemporaryFile(dir=folder):
        pass


@contextmanager
def _explained(folder: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{option} {folder} cannot be written to: {error.strerror}") from error
