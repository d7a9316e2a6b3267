"""Binding tasks to data: each to the datasets of its role, as the protocol has them read."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from layerboard.benchmark.plan.location import DataLocation
from layerboard.leaderboards.records.record import recorded_name
from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.catalogue import read_own, require_datasets
from layerboard.tasks.datasets.classes import Classification, Unlabelled
from layerboard.tasks.datasets.reading.labels import AS_IT_IS, Labelling
from layerboard.tasks.framework import registry
from layerboard.tasks.framework.identity import own_name
from layerboard.tasks.framework.registry import DRIFT, LAID_OUT, OWN_ROLES, TaskEntry, find_tasks
from layerboard.tasks.framework.sources import IMAGES, ProbedClasses, ProbedImages, probed
from layerboard.tasks.framework.task import Needs, Task
from layerboard.zoo.errors import InputError, MissingDataError, ensure

Reader = Callable[[DatasetEntry[Data], Path], Data]
Own = Callable[[], Mapping[str, Data]]  # reads the user's own datasets, by their names in records
# of the suite; one of the user's own, by its name and the role that it serves; None: the task takes no data
Served = DatasetEntry[Data] | tuple[str, str] | None


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
        """What is not run, and why, in words; tasks that lack the same dataset in one line.

        Tasks that run on other data, or under another protocol, are told from those that do not run at all.
        """
        running = {task.entry.name for task in self.every}
        tasks: dict[tuple[str, bool], list[str]] = {}
        for each in self.absent:
            tasks.setdefault((each.reason, each.task in running), []).append(each.task)
        return [
            f"{', '.join(names)}{' on further data' if runs else ''}: {reason}"
            for (reason, runs), names in tasks.items()
        ]

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

    def add_transformed(self, option: str, name: str, tasks: Sequence[Task]) -> None:
        """Add tasks once more with a transform of their features; raises InputError if it fits none."""
        ways = [(replace(task, transform=name), task.transform_refusal(name)) for task in tasks]
        self.add(f"{option} {name}", name, ways)

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


def plan_tasks(location: DataLocation, names: Sequence[str], *, drift: bool) -> PlannedTasks:
    """The tasks of each protocol, bound to data: the named ones, or those that the data allow.

    With ``drift``, the task that compares formats of a backbone is among them. A protocol without data is
    noted and the others run. Raises InputError for an unknown task, for one without data or outside the
    protocol, and without any task.
    """
    locations = location.by_protocol
    asked = registry.find_covered(names, [at.protocol for at in locations])
    if drift:
        asked = tuple(dict.fromkeys((*asked, *find_tasks((DRIFT,)))))
    planned, reader = PlannedTasks(), cache(read_dataset)  # protocols share what is read
    for at in locations:
        spoken = at.protocol.tasks
        required: Sequence[str] = ()
        if names:
            tasks = tuple(task for task in asked if at.protocol.covers(task.name))
            required = [name for name in names if at.protocol.covers(name)]
            ensure(tasks, f"{at.protocol.scope}, which --tasks does not name")
        elif spoken is None:
            laid_out = (task for task in registry.TASKS if task.role in LAID_OUT and at.images)
            tasks = tuple(dict.fromkeys((*asked, *registry.WITHOUT_LABELS, *laid_out)))
        else:  # a protocol of single tasks runs all of these
            tasks, required = find_tasks(spoken), spoken
        try:
            planned.take(bind_tasks(at, tasks, names=required, reader=reader))
        except MissingDataError as error:
            if at is locations[-1] and not planned.every:
                raise
            planned.broken.append(Unbound(f"protocol {at.protocol.name}", str(error)))
    if location.protocol.shots and not any(task.takes_shots for task in planned.every):
        raise InputError("--shots is for fewshot and anomaly, which are not run; name one with --tasks")
    return planned


def own_datasets(
    locations: Sequence[str],
    labelling: Labelling = AS_IT_IS,
    cache: Path | None = None,
    output: Path | None = None,
) -> dict[str, Data]:
    """The user's own datasets by their names in records, all read before any work.

    The same data have the name that they have in ``output`` already, whatever they are called now.
    Datasets of one short name, such as two folders of that name, have these names in their sources, too.
    Raises InputError if one cannot be read, or if two hold the same images under one name.
    """
    datasets: dict[str, Data] = {}
    given: dict[str, str] = {}
    for location in locations:
        data = read_own(location, labelling, cache)
        name = own_name(data)
        name = recorded_name(output, name) if output else name
        if name in datasets:
            raise InputError(f"--images names the same images twice: {given[name]} and {location}")
        datasets[name], given[name] = data, location
    short = Counter(data.name for data in datasets.values())
    every = datasets.items()
    return {name: data.named(name) if short[data.name] > 1 else data for name, data in every}


def _datasets_of(task: TaskEntry, at: DataLocation, own: Own, *, named: bool) -> list[Served]:
    """The datasets of a task's role; own ones of other layouts that can serve it only if it is named."""
    if task.role == registry.NO_DATA:
        return [None]
    if at.images and task.role in OWN_ROLES:
        serving = {name: data.role for name, data in own().items() if data.serving(task.role) is not None}
        return [(name, task.role) for name, role in serving.items() if named or role == task.role]
    return [entry for entry in at.datasets if at.data and task.role in entry.roles]


def _read(at: DataLocation, own: Own, reader: Reader, dataset: Served) -> Any:  # noqa: ANN401
    """A dataset as its tasks take it; raises MissingDataError if it is missing, InputError if it is wrong.

    Classes also serve as instances.
    """
    if dataset is None:
        return None
    if isinstance(dataset, DatasetEntry):
        assert at.data is not None
        data: Data | None = reader(dataset, at.data)
    else:
        name, role = dataset
        given = own()[name]
        data = given if isinstance(given, Classification) else given.serving(role)
    assert data is not None
    limited: Any = at.part_of(data)
    if isinstance(limited, Classification | Unlabelled):  # tasks on classes share sources
        limited = probed(limited, at.protocol.config_for(IMAGES))
    return limited if isinstance(dataset, DatasetEntry) else limited.named(name)


def _understood(at: DataLocation, own: Mapping[str, Data], roles: Collection[str]) -> list[str]:
    """How the user's own images were understood, in words, for the given roles, or else for their own."""
    lines = []
    for name, data in own.items():
        served = [data.serving(role) for role in OWN_ROLES if role in roles]
        every = [each for each in served if each is not None] or [data]
        lines += [f"{name}: {at.part_of(each).coverage}" for each in every]
    return lines


def _lacking(at: DataLocation, task: TaskEntry, own: Collection[Data]) -> str:
    """What the datasets, or the user's own images, lack for a task."""
    if task.role not in OWN_ROLES:
        known = sorted({role for entry in at.datasets for role in entry.roles})
        if task.role not in known:
            return f"needs a dataset of {task.role}, and the suite has {', '.join(known)}"
        return "needs more than the class labels that --images has"
    if at.labelling.copies:
        return f"needs {OWN_ROLES[task.role]}, and --copies takes each image as a thing; leave --copies out"
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
    own = cache(partial(own_datasets, at.images, at.labelling, at.cache, at.output))
    if at.images and roles & {*OWN_ROLES}:
        bound.understood += _understood(at, own(), roles if named else ())
    read = cache(partial(_read, at, own, reader))
    for task in tasks:
        datasets = _datasets_of(task, at, own, named=named)
        if named and not datasets:
            bound.absent.append(Unbound(task.name, _lacking(at, task, own().values())))
        code = registry.load_code(task, at.protocol.name) if datasets else Task
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
    brought = {
        task.name for task in tasks if task.name == DRIFT or (registry.INSIDE in names and task.analysis)
    }
    required = {task.name for task in tasks if named} - (brought - {*names})
    _require_something(bound, at.data, required, named=named)
    return bound


def _serves(task: TaskEntry, data: object, *, named: bool) -> bool:
    """Whether a task is run on some data by default, or if named; raises MissingDataError for lost labels."""
    if not isinstance(data, ProbedImages) or isinstance(data, ProbedClasses):
        return named or task.default
    if task.labels:
        raise MissingDataError(f"needs class labels, which {data.images.name} does not have")
    return named or task.unlabelled


def _require_something(
    bound: PlannedTasks, data: Path | None, required: Collection[str], *, named: bool
) -> None:
    """Raise MissingDataError if a required task has no data, or if no task has any."""
    if not bound.broken and not any(task.sources for task in bound.every):
        require_datasets(data)
    served = {task.entry.name for task in bound.every} | {task.task for task in bound.broken}
    lacking = [str(task) for task in bound.absent if task.task not in served and task.task in required]
    if lacking:
        raise MissingDataError(f"data of a task that was asked for is not there: {'; '.join(lacking)}")
    if not any(named or task.sources for task in bound.every):  # tasks without data alone are not worth a run
        problems = [str(task) for task in bound.broken or bound.absent]
        raise MissingDataError(f"there is nothing to run: {'; '.join(problems) or 'no task fits this data'}")
