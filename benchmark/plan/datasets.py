"""Binding tasks to data: each to the datasets of its role, as the protocol has them read."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from layerboard.benchmark.plan.location import DataLocation
from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.catalogue import read_own, require_datasets
from layerboard.tasks.datasets.classes import Classification, Unlabelled
from layerboard.tasks.datasets.labels import AS_IT_IS, Labelling
from layerboard.tasks.framework.identity import own_name
from layerboard.tasks.framework.registry import (
    DRIFT,
    INSIDE,
    LAID_OUT,
    NO_DATA,
    OWN_ROLES,
    TaskEntry,
    load_code,
)
from layerboard.tasks.framework.sources import IMAGES, ProbedClasses, ProbedImages, probed
from layerboard.tasks.framework.task import Needs, Task
from layerboard.zoo.errors import InputError, MissingDataError

Reader = Callable[[DatasetEntry[Data], Path], Data]


def read_dataset(entry: DatasetEntry[Data], data: Path) -> Data:
    """A dataset in the data folder, or root of a pack, ``data``."""
    return entry.read(data)


@dataclass
class Unbound:
    """A task without data, and why."""

    task: str
    reason: str

    def __str__(self) -> str:
        return f"{self.task}: {self.reason}"


@dataclass
class PlannedTasks:
    """Tasks with data, tasks with missing data, and tasks with wrong data."""

    every: list[Task] = field(default_factory=list)  # tasks with data, in the order of the registry
    absent: list[Unbound] = field(default_factory=list)  # without data, or not run in a requested way
    broken: list[Unbound] = field(default_factory=list)
    understood: list[str] = field(default_factory=list)  # how folders of own images were understood, in words

    @property
    def left_out(self) -> list[str]:
        """What is not run, and why, in words; tasks that lack the same dataset in one line."""
        tasks: dict[str, list[str]] = {}
        for each in self.absent:
            tasks.setdefault(each.reason, []).append(each.task)
        return [f"{', '.join(names)}: {reason}" for reason, names in tasks.items()]

    def take(self, other: "PlannedTasks") -> None:
        """Append others; tasks without images, and repeated messages about data, are kept once."""
        there = {task.entry.name for task in self.every}
        self.every += [task for task in other.every if task.sources or task.entry.name not in there]
        self.absent += [task for task in other.absent if task not in self.absent]
        self.broken += [task for task in other.broken if task not in self.broken]
        self.understood += [line for line in other.understood if line not in self.understood]

    def needing(self, needs: Needs) -> list[Any]:
        """Tasks whose scores are made from ``needs``."""
        return [task for task in self.every if task.needs == needs]

    def add(self, option: str, name: str, ways: Sequence[tuple[Task, str]]) -> None:
        """Add tasks in a variant way, or the reasons why not; raises InputError if none has it."""
        self.every += [task for task, reason in ways if not reason]
        reasons = {task.entry.name: reason for task, reason in ways}
        taken = {task.entry.name for task, reason in ways if not reason}  # under some protocol
        if ways and not taken:
            said = "; ".join(f"{task}: it {reason}" for task, reason in reasons.items())
            raise InputError(f"{option} fits no task of this run: {said}")
        # of analyses, and of the drift that several formats bring along, nobody expects it
        ranked = {task.entry.name for task, _ in ways if not task.entry.analysis} - {DRIFT}
        self.absent += [
            Unbound(f"{task} with {name}", reason)
            for task, reason in reasons.items()
            if reason and task in ranked - taken
        ]


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


class _OwnDataset(NamedTuple):
    """One of the user's own datasets, for tasks of a role."""

    name: str  # in records
    role: str


def _datasets_of(
    task: TaskEntry, at: DataLocation, own: Callable[[], Mapping[str, Data]], *, named: bool
) -> list[DatasetEntry[Data] | _OwnDataset | None]:
    """The datasets of a task's role; own ones of other layouts that can serve it only if it is named."""
    if task.role == NO_DATA:
        return [None]
    if at.images and task.role in OWN_ROLES:
        serving = {name: data.role for name, data in own().items() if data.serving(task.role) is not None}
        return [_OwnDataset(name, task.role) for name, role in serving.items() if named or role == task.role]
    return [entry for entry in at.datasets if at.data and task.role in entry.roles]


def _read(
    at: DataLocation,
    own: Callable[[], Mapping[str, Data]],
    reader: Reader,
    dataset: DatasetEntry[Data] | _OwnDataset | None,
) -> Any:  # noqa: ANN401 - data of a task
    """A dataset as its tasks take it; raises MissingDataError if it is missing, InputError if it is wrong.

    Classes also serve as instances.
    """
    if isinstance(dataset, DatasetEntry):
        assert at.data is not None
        return _as_taken(at, reader(dataset, at.data))
    if dataset is None:
        return None
    data = own()[dataset.name]
    served = data if isinstance(data, Classification) else data.serving(dataset.role)
    assert served is not None
    return _as_taken(at, served).named(dataset.name)


def _as_taken(at: DataLocation, data: Data) -> Any:  # noqa: ANN401 - data of a task
    """Data for tasks: as much as the limit allows, and the sources that all tasks on classes share."""
    limited = data.limited(at.limit)
    if isinstance(limited, Classification | Unlabelled):
        return probed(limited, at.protocol.config_for(IMAGES))
    return limited


def _understood(at: DataLocation, own: Mapping[str, Data], roles: Collection[str]) -> list[str]:
    """How the user's own images were understood, in words, for the given roles, or else for their own."""
    lines = []
    for name, data in own.items():
        served = [data.serving(role) for role in OWN_ROLES if role in roles]
        every = [each for each in served if each is not None] or [data]
        lines += [f"{name}: {each.limited(at.limit).coverage}" for each in every]
    return lines


def _lacking(at: DataLocation, task: TaskEntry, own: Collection[Data]) -> str:
    """What the datasets, or the user's own images, lack for a task."""
    if task.role not in OWN_ROLES:
        known = sorted({role for entry in at.datasets for role in entry.roles})
        if task.role not in known:
            return f"needs a dataset of {task.role}, and the suite has {', '.join(known)}"
        return "needs more than the class labels that --images has"
    others = sorted({data.role for data in own} & {*LAID_OUT})
    layout = f"; --images is in a layout of {' and '.join(others)}" if others else ""
    return f"needs {OWN_ROLES[task.role]}{layout}"


def bind_tasks(
    at: DataLocation, tasks: Sequence[TaskEntry], *, names: Collection[str], reader: Reader = read_dataset
) -> PlannedTasks:
    """Bind tasks to data; each dataset is read once for all tasks that need it.

    ``names`` are the tasks or groups of tasks that the user named, if any; those with data are run. Raises
    MissingDataError if a named task has no data, or if no task has any.
    """
    named = bool(names)
    bound = PlannedTasks()
    roles = {task.role for task in tasks}
    own = cache(partial(own_datasets, at.images, at.labelling))
    if at.images and roles & {*OWN_ROLES}:
        bound.understood += _understood(at, own(), roles if named else ())
    read = cache(partial(_read, at, own, reader))
    for task in tasks:
        datasets = _datasets_of(task, at, own, named=named)
        if named and not datasets:
            bound.absent.append(Unbound(task.name, _lacking(at, task, own().values())))
        code = load_code(task, at.protocol.name) if datasets else Task
        for dataset in datasets:
            try:
                data = read(
                    code.reading(dataset, at.protocol) if isinstance(dataset, DatasetEntry) else dataset
                )
                if _serves(task, data, named=named or (bool(at.images) and task.role in LAID_OUT)):
                    bound.every.append(code.by(at.protocol, data, task))
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
