"""Reading the datasets of each role, and the tasks that are run on them."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from layerboard.benchmark.plan.location import DataLocation, require_datasets
from layerboard.benchmark.plan.tasks import PlannedTasks, Unbound
from layerboard.tasks.clustering.task import REGIONS
from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.classes import Classification, Unlabelled
from layerboard.tasks.datasets.imagenet import ImageNetEntry, probe_subset
from layerboard.tasks.datasets.labels import AS_IT_IS, Labelling
from layerboard.tasks.datasets.scenes import VOC_2012, VOC_2012_AUG
from layerboard.tasks.framework.identity import own_name
from layerboard.tasks.framework.registry import (
    DRIFT,
    INSIDE,
    LAID_OUT,
    OWN_ROLES,
    Role,
    TaskEntry,
    config_of,
    load_code,
)
from layerboard.tasks.framework.sources import (
    IMAGES,
    ClusteredRegions,
    ProbedClasses,
    ProbedImages,
    probed_classes,
    probed_images,
)
from layerboard.zoo.errors import InputError, MissingDataError


def _imagenet(at: DataLocation, folder: Path) -> ProbedImages:
    """Read the images with classes of the suite, and choose the probe subset."""
    entry = at.catalogue.classification
    data = entry.read(folder)
    return _probed(at, data, data.name, entry)


def _probed(
    at: DataLocation, data: Classification | Unlabelled, name: str, entry: ImageNetEntry | None = None
) -> ProbedImages:
    """A dataset under that name with its probe subset: some images of some classes, as its entry says.

    For the user's own images, which have no entry, the protocol says it. Sources keep the name under which
    the dataset was read: fingerprints distinguish what is stored of their images.
    """
    data, config = data.limited(at.limit), at.protocol.config_for(IMAGES)
    images: ProbedImages
    if isinstance(data, Unlabelled):
        images = probed_images(data, config)
    else:
        subset = (entry.probe_wnids, entry.probe_per_class) if entry else (None, config.own_probe)
        images = probed_classes(data, *probe_subset(data, *subset), config)
    return replace(images, images=data.named(name))


def own_datasets(locations: Sequence[str], labelling: Labelling = AS_IT_IS) -> dict[str, Data]:
    """The user's own datasets by their names in records, all read before any work.

    Datasets of one short name, such as two folders of that name, have these names in their sources, too.
    Raises InputError if one cannot be read, or if two hold the same images under one name.
    """
    datasets: dict[str, Data] = {}
    given: dict[str, str] = {}
    for location in locations:
        data = read_own(location, labelling)
        name = own_name(data)
        if name in datasets:
            raise InputError(f"--images names the same images twice: {given[name]} and {location}")
        datasets[name], given[name] = data, location
    short = Counter(data.name for data in datasets.values())
    every = datasets.items()
    return {name: data.named(name) if short[data.name] > 1 else data for name, data in every}


def _objects(at: DataLocation, folder: Path) -> ClusteredRegions:
    """Read COCO: images with annotated objects, without those that the protocol excludes."""
    entry, left_out = at.catalogue.objects, at.protocol.config_for(REGIONS).left_out
    data = replace(entry, first=entry.first - left_out).read(folder).limited(at.limit)
    data = replace(data, edition=f"-but-{left_out}" if left_out else "")
    return ClusteredRegions(data, at.catalogue.object_clusters)


def _parts(at: DataLocation, folder: Path) -> ClusteredRegions:
    """Read PartImageNet: images with annotated parts, in the order of the protocol."""
    catalogue, config = at.catalogue, at.protocol.config_for(REGIONS)
    k = catalogue.object_clusters if config.parts_as_objects else catalogue.parts.parts
    data = replace(catalogue.parts, by_partition=config.parts_by_partition).read(folder).limited(at.limit)
    data = replace(data, edition="-by-partition" if config.parts_by_partition else "")
    return ClusteredRegions(data, k, "parts", "train, val, test")


def _masked(at: DataLocation) -> tuple[DatasetEntry[Data], ...]:
    """All COCO images with masks, and more PartImageNet images than are clustered."""
    objects, parts = at.catalogue.objects, at.catalogue.parts
    by_partition = at.protocol.config_for(REGIONS).parts_by_partition
    most = config_of(at.protocol, "saliency").images_per_supercategory
    parts = replace(parts, by_partition=by_partition, per_supercategory=most)
    return replace(objects, first=objects.images), parts


def _scenes(at: DataLocation) -> tuple[DatasetEntry[Data], ...]:
    """Datasets with the class of every pixel; for VOC with the masks of the protocol."""
    further = config_of(at.protocol, "segment").further_masks
    return tuple(VOC_2012_AUG if further and entry == VOC_2012 else entry for entry in at.catalogue.scenes)


# datasets of each role whose tasks use a dataset as it is read
ENTRIES: Mapping[Role, Callable[[DataLocation], tuple[DatasetEntry[Data], ...]]] = {
    "retrieval": lambda at: at.catalogue.retrieval,
    "videos": lambda at: (at.catalogue.videos,),
    "keypoints": lambda at: (at.catalogue.keypoints,),
    "scenes": _scenes,
    "defects": lambda at: at.catalogue.defects,
    "instances": lambda at: at.catalogue.instances,
    "numbers": lambda at: at.catalogue.numbers,
    "labels": lambda at: at.catalogue.labels,
    "masks": _masked,
}

# reader of the one dataset of each other role
READERS: Mapping[Role, Callable[[DataLocation, Path], Any]] = {
    "classification": _imagenet,
    "objects": _objects,
    "parts": _parts,
}


def _readers_of(
    role: Role, at: DataLocation, read_own: Callable[[], Mapping[str, Data]], *, named: bool
) -> list[Callable[[], Any]]:
    """Readers of the datasets of a role; none if the user's own images do not serve it.

    If tasks are ``named``, own images may also serve a role that their layout does not suggest. Readers raise
    MissingDataError if the dataset is missing, and InputError if it is wrong.
    """
    if role == "weights":
        return [lambda: None]
    if at.images and role in OWN_ROLES:
        own = [(name, data) for name, data in read_own().items() if named or role == data.role]
        return [partial(_own, at, data, role, name) for name, data in own if data.serving(role) is not None]
    if at.data is None:
        return []
    if role in READERS:
        return [partial(READERS[role], at, at.data)]
    folder, limit = at.data, at.limit
    return [partial(lambda entry: entry.read(folder).limited(limit), entry) for entry in ENTRIES[role](at)]


def _own(at: DataLocation, data: Data, role: Role, name: str) -> Data | ProbedImages:
    """The user's own dataset for tasks of a role; classes also serve as instances."""
    served = data if isinstance(data, Classification) else data.serving(role)
    if isinstance(served, Classification | Unlabelled):
        return _probed(at, served, name)
    assert served is not None
    return served.limited(at.limit).named(name)


def _understood(at: DataLocation, own: Mapping[str, Data], roles: Collection[str]) -> list[str]:
    """How the user's own images were understood, in words, for the given roles, or else for their own."""
    lines = []
    for name, data in own.items():
        served = [data.serving(role) for role in OWN_ROLES if role in roles]
        every = [each for each in served if each is not None] or [data]
        lines += [f"{name}: {each.limited(at.limit).coverage}" for each in every]
    return lines


def _lacking(task: TaskEntry, own: Collection[Data]) -> str:
    """What the user's own images lack for a task."""
    if task.role not in OWN_ROLES:
        return "needs more than the class labels that --images has"
    others = sorted({data.role for data in own} & {*LAID_OUT})
    layout = f"; --images is in a layout of {' and '.join(others)}" if others else ""
    return f"needs {OWN_ROLES[task.role]}{layout}"


def bind_tasks(at: DataLocation, tasks: Sequence[TaskEntry], *, names: Collection[str]) -> PlannedTasks:
    """Bind tasks to data; each dataset is read once for all tasks that need it.

    ``names`` are the tasks or groups of tasks that the user named, if any; those with data are run. Raises
    MissingDataError if a named task has no data, or if no task has any.
    """
    named = bool(names)
    bound = PlannedTasks()
    roles = {task.role for task in tasks}
    read_own = cache(partial(own_datasets, at.images, at.labelling))
    readers = {role: [cache(read) for read in _readers_of(role, at, read_own, named=named)] for role in roles}
    if at.images and roles & {*OWN_ROLES}:
        bound.understood += _understood(at, read_own(), roles if named else ())
    for task in tasks:
        if named and not readers[task.role]:
            bound.absent.append(Unbound(task.name, _lacking(task, read_own().values())))
        for read in readers[task.role]:
            try:
                data = read()
                if _serves(task, data, named=named or (bool(at.images) and task.role in LAID_OUT)):
                    bound.every.append(load_code(task, at.protocol.name).by(at.protocol, data, task))
            except MissingDataError as error:
                bound.absent.append(Unbound(task.name, str(error)))
            except InputError as error:
                bound.broken.append(Unbound(task.name, str(error)))
    brought = {task.name for task in tasks if task.name == DRIFT or (INSIDE in names and task.analysis)}
    if not bound.broken and not any(task.sources for task in bound.every):
        require_datasets(at.data)
    _require_something(bound, {task.name for task in tasks if named} - (brought - {*names}), named=named)
    return bound


def _serves(task: TaskEntry, data: object, *, named: bool) -> bool:
    """Whether a task is run on some data by default, or if named; raises MissingDataError for lost labels."""
    if not isinstance(data, ProbedImages) or isinstance(data, ProbedClasses):
        return named or task.default
    if task.labels:
        raise MissingDataError(f"needs class labels, which {data.images.name} does not have")
    return named or task.unlabelled


def _require_something(bound: PlannedTasks, required: Collection[str], *, named: bool) -> None:
    served = {task.entry.name for task in bound.every} | {task.task for task in bound.broken}
    lacking = [str(task) for task in bound.absent if task.task not in served and task.task in required]
    if lacking:
        raise MissingDataError(f"data of a task that was asked for is not there: {'; '.join(lacking)}")
    if not any(named or task.sources for task in bound.every):  # tasks without data alone are not worth a run
        problems = [str(task) for task in bound.broken or bound.absent]
        raise MissingDataError(f"there is nothing to run: {'; '.join(problems) or 'no task fits this data'}")
