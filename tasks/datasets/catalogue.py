"""The official datasets and the user's own images, and whether they are where they should be."""

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.coco import COCO_VAL2017
from layerboard.tasks.datasets.davis import DAVIS_2017_VAL
from layerboard.tasks.datasets.defects import MVTEC_AD, VISA, has_defects, read_defects
from layerboard.tasks.datasets.files import exists
from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.datasets.hub import read_hub_dataset
from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.imagenet import IMAGENET
from layerboard.tasks.datasets.instances import CUB, SOP, copies_of, has_queries, read_queries
from layerboard.tasks.datasets.labels import AS_IT_IS, Labelling
from layerboard.tasks.datasets.partimagenet import PARTIMAGENET
from layerboard.tasks.datasets.revisitop import ROXFORD5K, RPARIS6K
from layerboard.tasks.datasets.scenes import ADE20K, VOC_2012, VOC_2012_AUG
from layerboard.tasks.datasets.spair import SPAIR_71K_TEST
from layerboard.zoo.errors import InputError, MissingDataError

# in the order of tables
DATASETS: tuple[DatasetEntry[Data], ...] = (
    *(IMAGENET, ROXFORD5K, RPARIS6K, DAVIS_2017_VAL, SPAIR_71K_TEST),
    *(VOC_2012, VOC_2012_AUG, ADE20K, COCO_VAL2017, PARTIMAGENET, MVTEC_AD, VISA, SOP, CUB),
)

# what tells that a folder of the user's own is in a layout of other tasks than those of classes, and reads it
LAYOUTS: tuple[tuple[Callable[[Path], bool], Callable[[Path], Data]], ...] = (
    (has_defects, read_defects),
    (has_queries, read_queries),
)


def read_own(location: str, labelling: Labelling = AS_IT_IS) -> Data:
    """The user's own images: a folder, perhaps with tables beside it, or ``hf:ID``; raises InputError.

    A folder in one of the `LAYOUTS` is read as that, unless labels are given, be they none. Where copies are
    asked for, all images that are found are taken for themselves.
    """
    data: Data
    folder = Path(location)
    if labelling.copies:
        data = copies_of(read_own(location, labelling._replace(copies=False, groups=None)))
    elif location.startswith(PREFIX):
        data = read_hub_dataset(location)
    else:
        readers = [read for recognised, read in LAYOUTS if labelling.labels is None and recognised(folder)]
        data = readers[0](folder) if readers else read_folder(folder, labelling)
    if labelling.groups is not None and data.role in ("instances", "defects"):
        raise InputError(
            f"--groups is for images with classes, numbers or labels, and {location} is taken for "
            f"{data.role}; leave it out, or name things in a column label and run --tasks instances"
        )
    return data


class State(Enum):
    """How much of a dataset is there."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"
    BROKEN = "broken"


class Inspection(NamedTuple):
    """What was found where a dataset should be; a partial one can be run, a missing or broken one cannot."""

    name: str
    state: State
    text: str
    data: Data | None = None  # what was read, where it can be


def inspect(data: Path, entry: DatasetEntry[Data]) -> Inspection:
    """What is there of a dataset, whose images are not decoded, in a folder of datasets."""
    root = data / entry.folder
    if not exists(root):
        return Inspection(entry.name, State.MISSING, f"looked for {root}; expected {entry.layout} in {data}")
    return _inspected(entry.name, lambda: entry.read(data))


def inspect_images(location: str, labelling: Labelling = AS_IT_IS) -> Inspection:
    """What is there of the user's own images; arguments as of `read_own`."""
    return _inspected(location, lambda: read_own(location, labelling))


def _inspected(name: str, read: Callable[[], Data]) -> Inspection:
    try:
        data = read()
    except MissingDataError as error:
        return Inspection(name, State.MISSING, str(error))
    except InputError as error:
        return Inspection(name, State.BROKEN, str(error))
    state = State.PARTIAL if data.coverage.partial else State.COMPLETE
    return Inspection(data.name, state, str(data.coverage), data)
