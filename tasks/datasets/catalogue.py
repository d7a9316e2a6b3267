"""The official datasets, and whether they are where they should be."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tasks.datasets.ade20k import ADE20K, AdeEntry, read_ade20k
from tasks.datasets.base import Coverage
from tasks.datasets.coco import COCO_VAL2017, CocoEntry, read_coco
from tasks.datasets.davis import DAVIS_2017_VAL, DavisEntry, read_davis
from tasks.datasets.imagenet import IMAGENET, ImageNetEntry, read_imagenet
from tasks.datasets.own import read_own
from tasks.datasets.partimagenet import PARTIMAGENET, PartImageNetEntry, read_partimagenet
from tasks.datasets.revisitop import ROXFORD5K, RPARIS6K, RevisitedEntry, read_revisited
from tasks.datasets.spair import SPAIR_71K_TEST, SpairEntry, read_spair
from tasks.datasets.storage import exists
from tasks.datasets.voc import VOC_2012, VOC_2012_AUG, VocEntry, read_voc
from zoo.errors import InputError, MissingDataError

DatasetEntry = (
    ImageNetEntry
    | RevisitedEntry
    | DavisEntry
    | SpairEntry
    | VocEntry
    | AdeEntry
    | CocoEntry
    | PartImageNetEntry
)

DATASETS: tuple[DatasetEntry, ...] = (
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


def inspect(data: Path, entry: DatasetEntry) -> Inspection:
    """Reads a dataset's files, without decoding its images, and says what is there; never raises InputError.

    Args:
        data: Folder that holds the folders of datasets.
        entry: The dataset.
    """
    root = data / entry.folder
    if not exists(root):
        return Inspection(entry.name, State.MISSING, f"looked for {root}; expected {entry.layout} in {data}")
    try:
        found = coverage(data, entry)
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


def coverage(data: Path, entry: DatasetEntry) -> Coverage:
    """What is there of a dataset; raises InputError where it is missing or broken."""
    match entry:
        case ImageNetEntry():
            return read_imagenet(data, entry).coverage
        case RevisitedEntry():
            return read_revisited(data, entry).coverage
        case DavisEntry():
            return read_davis(data, entry).coverage
        case SpairEntry():
            return read_spair(data, entry).coverage
        case VocEntry():
            return read_voc(data, entry).coverage
        case AdeEntry():
            return read_ade20k(data, entry).coverage
        case CocoEntry():
            return read_coco(data, entry).coverage
        case PartImageNetEntry():
            return read_partimagenet(data, entry).coverage
