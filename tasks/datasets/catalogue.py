"""The official datasets, and whether they are where they should be."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tasks.datasets.ade20k import ADE20K
from tasks.datasets.base import Coverage, Data, DatasetEntry
from tasks.datasets.coco import COCO_VAL2017
from tasks.datasets.davis import DAVIS_2017_VAL
from tasks.datasets.files import exists
from tasks.datasets.folder import OwnImages, read_folder
from tasks.datasets.hub import read_hub_dataset
from tasks.datasets.hub_spec import PREFIX
from tasks.datasets.imagenet import IMAGENET
from tasks.datasets.partimagenet import PARTIMAGENET
from tasks.datasets.revisitop import ROXFORD5K, RPARIS6K
from tasks.datasets.spair import SPAIR_71K_TEST
from tasks.datasets.voc import VOC_2012, VOC_2012_AUG
from zoo.errors import InputError, MissingDataError


def read_own(location: str, labels: Path | None = None) -> OwnImages:
    """A folder of images, or a dataset of the Hub or saved by ``datasets``.

    Args:
        location: Path of a folder, or ``hf:ID`` (`tasks.datasets.hub_spec`).
        labels: Table of the classes of a folder (`tasks.datasets.folder.read_folder`).

    Raises:
        InputError: It is not there, or cannot be read.
    """
    return read_hub_dataset(location) if location.startswith(PREFIX) else read_folder(Path(location), labels)


DATASETS: tuple[DatasetEntry[Data], ...] = (
    IMAGENET,
    ROXFORD5K,
    RPARIS6K,
    DAVIS_2017_VAL,
    SPAIR_71K_TEST,
    VOC_2012,
    VOC_2012_AUG,
    ADE20K,
    COCO_VAL2017,
    PARTIMAGENET,
)
"""The official datasets, in the order of tables."""


class State(Enum):
    """How much of a dataset is there."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found where a dataset should be.

    Attributes:
        name: Name of the dataset.
        state: How much of it is there; a partial one can be run, a missing or broken one cannot.
        text: Counts, where it was looked for, or what is wrong with it.
        coverage: Its counts, unless it is missing or broken.
    """

    name: str
    state: State
    text: str
    coverage: Coverage | None = None


def inspect(data: Path, entry: DatasetEntry[Data]) -> Inspection:
    """Reads a dataset's files, without decoding its images, and says what is there; never raises InputError.

    Args:
        data: Folder that holds the folders of datasets.
        entry: The dataset.
    """
    root = data / entry.folder
    if not exists(root):
        return Inspection(entry.name, State.MISSING, f"looked for {root}; expected {entry.layout} in {data}")
    try:
        found = entry.read(data).coverage
    except MissingDataError as error:
        return Inspection(entry.name, State.MISSING, str(error))
    except InputError as error:
        return Inspection(entry.name, State.BROKEN, str(error))
    return Inspection(entry.name, State.PARTIAL if found.partial else State.COMPLETE, str(found), found)


def inspect_images(location: str, labels: Path | None) -> Inspection:
    """The same of the user's own images; arguments as of `read_own`."""
    try:
        found = read_own(location, labels)
    except MissingDataError as error:
        return Inspection(location, State.MISSING, str(error))
    except InputError as error:
        return Inspection(location, State.BROKEN, str(error))
    state = State.PARTIAL if found.coverage.partial else State.COMPLETE
    return Inspection(found.name, state, str(found.coverage), found.coverage)
