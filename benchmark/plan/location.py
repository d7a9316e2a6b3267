"""Where the data of a run are, and the folders that it writes to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile

from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan.layers import select_layers
from layerboard.benchmark.plan.suites import Suite, choose_suite
from layerboard.mini.packs import packaged_data
from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.reading.files import data_root, is_packed, require_local
from layerboard.tasks.datasets.reading.labels import AS_IT_IS, Labelling
from layerboard.tasks.datasets.reading.zipped import unpacked
from layerboard.tasks.framework.protocols import STANDARD, EvaluationProtocol, find_protocol
from layerboard.zoo.atomic import remove_leftovers
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import entry_name


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

    @property
    def by_protocol(self) -> tuple["DataLocation", ...]:
        """This location once per protocol, with that one alone."""
        every = self.protocol, *self.further
        return tuple(replace(self, protocol=protocol, further=()) for protocol in every)


def require_known_names(request: Request) -> None:
    """Raise InputError for a wrong suite, protocol or layer, before torch is imported to run it."""
    suite = choose_suite(request)
    find_protocols(request, suite)
    named = {entry_name(name) for name in request.backbones or suite.backbones}
    for spec in all_specs():
        if spec.name in named:
            select_layers(request.layers, spec, request.taps)


def find_protocols(request: Request, suite: Suite) -> tuple[EvaluationProtocol, ...]:
    """The protocols that a request names, or that of its suite; raises InputError for an unknown one."""
    return tuple(map(find_protocol, dict.fromkeys(request.protocol or (suite.protocol,))))


def find_data(request: Request, suite: Suite, protocols: Sequence[EvaluationProtocol]) -> DataLocation:
    """Where the data of a request are, or those of the package; raises InputError for a missing folder."""
    protocol, *further = (replace(each, shots=request.shots) for each in protocols)
    data = request.data
    if data is None and not request.images:
        data = packaged_data()
    elif data is not None:
        data = data_folder(data)
    images = tuple(unpacked(location, request.cache) for location in request.images)
    read = (data, images, request.limit, protocol, Labelling.of(request))
    return DataLocation(suite.datasets, *read, further=tuple(further))


def data_folder(data: Path) -> Path:
    """The folder of datasets that a user named, or the root of a pack; raises InputError without one."""
    if is_packed(data):
        return data_root(data)
    require_local(str(data), "--data")
    if not data.is_dir():
        raise InputError(f"expected the datasets' folder at {data}, which does not exist; give --data DIR")
    return data


def require_writable(output: Path, cache: Path) -> None:
    """Create both folders, and remove leftovers of killed runs; raises InputError if one cannot be used.

    A cache that is there may be one that can only be read: a run that lacks nothing of it writes nothing.
    """
    for folder, option in ((output, "--output"), (cache, "--cache")):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(folder, option, error) from error
    require_writable_folder(output, "--output")
    folders = (output / name for name in ("records", "items", "features", "tables"))
    remove_leftovers((*folders, cache / "features"))


def require_writable_folder(folder: Path, option: str) -> None:
    """Raise InputError, with the option that names the folder, if no file can be written there."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, option, error) from error


def _unwritable(folder: Path, option: str, error: OSError) -> InputError:
    return InputError(f"{option} {folder} cannot be written to: {error.strerror}")
