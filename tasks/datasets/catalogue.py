"""Catalogue of the official datasets, and inspection of these and of the user's own images."""

import os
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.cifar import CIFAR_10, CIFAR_100, CIFAR_RAGHU
from layerboard.tasks.datasets.coco import COCO_VAL2017
from layerboard.tasks.datasets.davis import DAVIS_2017_VAL
from layerboard.tasks.datasets.defects import MVTEC_AD, VISA, has_defects, read_defects
from layerboard.tasks.datasets.facts import SAID, with_facts
from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.datasets.hub import read_hub_dataset
from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.imagenet import IMAGENET
from layerboard.tasks.datasets.instances import CUB, SOP, copies_of, has_queries, read_queries
from layerboard.tasks.datasets.partimagenet import PARTIMAGENET
from layerboard.tasks.datasets.places import INATURALIST_2021, PLACES_365
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.tasks.datasets.reading.files import exists, is_packed
from layerboard.tasks.datasets.reading.labels import AS_IT_IS, Labelling
from layerboard.tasks.datasets.revisitop import ROXFORD5K, RPARIS6K
from layerboard.tasks.datasets.scenes import ADE20K, VOC_2012, VOC_2012_AUG
from layerboard.tasks.datasets.spair import SPAIR_71K_TEST
from layerboard.tasks.datasets.vtab import VTAB
from layerboard.zoo.errors import InputError, MissingDataError
from layerboard.zoo.view.photos import endings

MOST_FOLDERS = 100  # folders in which images are looked for, to tell own images from datasets
# in the order of tables
DATASETS: tuple[DatasetEntry[Data], ...] = (
    *(IMAGENET, CIFAR_10, CIFAR_100, *CIFAR_RAGHU, PLACES_365, INATURALIST_2021),
    *(ROXFORD5K, RPARIS6K, DAVIS_2017_VAL, SPAIR_71K_TEST),
    *(VOC_2012, VOC_2012_AUG, ADE20K, COCO_VAL2017, PARTIMAGENET, MVTEC_AD, VISA, SOP, CUB, *VTAB),
)
GROUPS = {entry.name: entry.group for entry in DATASETS if entry.group}
"""The group of each dataset that has one, by the dataset's name."""

# for layouts other than class folders: a test whether the user's folder has the layout, and its reader
LAYOUTS: tuple[tuple[Callable[[Path], bool], Callable[[Path], Data]], ...] = (
    (has_defects, read_defects),
    (has_queries, read_queries),
)


def read_own(location: str, labelling: Labelling = AS_IT_IS, cache: Path | None = None) -> Data:
    """The user's own images: a folder, optionally with tables, or ``hf:ID``; raises InputError.

    What their pixels tell is kept below ``cache`` (`tasks.datasets.facts`).

    A folder in one of the `LAYOUTS` is read as that, unless labels (or ``none``) are given. If copies are
    requested, each image is a thing, to be retrieved from its copies.
    """
    data: Data
    folder = Path(location)
    if labelling.copies:
        originals = read_own(location, labelling._replace(copies=False, groups=None), cache)
        data, said = copies_of(originals), originals.coverage
        coverage = data.coverage.remarked(*(remark for remark in said.remarks if SAID in remark))
        data = replace(data, coverage=coverage)
    elif location.startswith(PREFIX):
        data = with_facts(read_hub_dataset(location), cache)
    else:
        readers = [read for recognised, read in LAYOUTS if labelling.labels is None and recognised(folder)]
        data = with_facts(readers[0](folder) if readers else read_folder(folder, labelling), cache)
    if labelling.groups is not None and data.role in ("instances", "defects"):
        raise InputError(
            f"--groups is for images with classes, numbers or labels, and {location} is taken for "
            f"{data.role}; leave it out, or name things in a column label and run --tasks instances"
        )
    return data


def require_datasets(data: Path | None) -> None:
    """Raise InputError for a folder without public datasets that is own images, or one of the datasets."""
    if data is None or is_packed(data) or any((data / entry.folder).exists() for entry in DATASETS):
        return
    folder = data.absolute()
    for entry in DATASETS:
        depth = len(Path(entry.folder).parts)
        if folder.parts[-depth:] == Path(entry.folder).parts:
            above = folder.parents[depth - 1]
            raise InputError(f"{data} is the folder of {entry.name} itself; did you mean --data {above}?")
    names = (name for _, _, files in islice(os.walk(data), MOST_FOLDERS) for name in files)
    if any(name.lower().endswith(endings()) for name in names):
        raise InputError(
            f"--data takes a folder of public datasets, and {data} has images of your own; "
            f"did you mean --images {data}?"
        )


class State(Enum):
    """State of a dataset on disk."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"
    BROKEN = "broken"


class Inspection(NamedTuple):
    """Result of an inspection; a partial dataset can be run, a missing or broken one cannot."""

    name: str
    state: State
    text: str
    data: Data | None = None  # the data, if they can be read


def inspect(data: Path, entry: DatasetEntry[Data]) -> Inspection:
    """Inspection of a dataset in a folder of datasets; images are not decoded."""
    root = data / entry.folder
    if not exists(root):
        return Inspection(entry.name, State.MISSING, f"looked for {root}; expected {entry.layout} in {data}")
    return _inspected(entry.name, lambda: entry.read(data))


def inspect_images(location: str, labelling: Labelling = AS_IT_IS, cache: Path | None = None) -> Inspection:
    """Inspection of the user's own images (`read_own`); with a cache, also of those in archives."""
    return _inspected(
        location, lambda: read_own(unpacked(location, cache) if cache else location, labelling, cache)
    )


def _inspected(name: str, read: Callable[[], Data]) -> Inspection:
    try:
        data = read()
    except MissingDataError as error:
        return Inspection(name, State.MISSING, str(error))
    except InputError as error:
        return Inspection(name, State.BROKEN, str(error))
    state = State.PARTIAL if data.coverage.partial else State.COMPLETE
    return Inspection(data.name, state, str(data.coverage), data)
