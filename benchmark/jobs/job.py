"""Jobs, which an engine carries out, and fingerprints of everything that their results depend on.

Jobs are frozen and small, whatever the size of the data: one carries its pass, or its task. Pickled, it only
names them: another process finds them in the plan, which it makes once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import torch

from layerboard.benchmark.engines.base import WorkerSlot
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.passes.one_pass import PassResult
from layerboard.benchmark.passes.shards import Shards
from layerboard.benchmark.plan.layers import select_layers, taps_of
from layerboard.benchmark.plan.plan import VECTORS, Pass, Plan, view_for
from layerboard.benchmark.records.records import ResultFiles, interpolation_of, known_view_sizes
from layerboard.leaderboards.records.files import VERSION, safe_name, scored_path
from layerboard.leaderboards.records.thumbnails import FOLDER
from layerboard.tasks.framework.base import Source, digest
from layerboard.tasks.framework.examples import VERSION as EXAMPLES
from layerboard.tasks.framework.sets import marks_of
from layerboard.tasks.framework.task import ComparisonTask, Task
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.spec import BackboneSpec, Layer, Tap
from layerboard.zoo.view.geometry import ViewSize
from layerboard.zoo.view.views import View

FORMAT = 2  # raise it when stored features, measurements or scores change for the same input
SCORING = 7  # raise it when scores, intervals or marks change for the same features


class Stored(NamedTuple):
    """What a pass stores for one of its listeners."""

    fingerprint: str
    folder: Path


@dataclass(frozen=True)
class Setup:
    """One backbone with everything that decides how a run shows it to its tasks, and its jobs."""

    # where jobs find their passes and tasks in another process
    plan: Plan = field(compare=False, repr=False)
    spec: BackboneSpec
    identity: BackboneIdentity  # identifies its features
    request: Request
    suite: str  # that its records belong to
    device: torch.device
    # where passes store what a task uses, which is worked out once
    _stored: dict[tuple[str, View, str], Stored] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def taps(self) -> tuple[Tap, ...]:
        """The taps of the request that the backbone has."""
        return taps_of(self.spec, self.request.taps)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Layers of the backbone that the request wants scored, in forward order."""
        return select_layers(self.request.layers, self.spec, self.request.taps)

    @property
    def stored_layers(self) -> frozenset[Layer]:
        """Layers whose vectors are stored: all at the taps of the run, for later runs too."""
        taps, spec = self.taps, self.spec
        every = frozenset(select_layers("all", spec, taps))
        return every | frozenset(spec.layers) if "block" in taps or spec.is_floor else every

    @property
    def writes_examples(self) -> bool:
        """Whether predictions and thumbnails of examples are written; not for the random floor."""
        return self.request.examples and not self.spec.is_floor

    @property
    def poolings(self) -> tuple[str, ...]:
        """Poolings that are stored; one for the random floor, since all of its poolings are equivalent."""
        single = "cls" if self.spec.is_floor else self.spec.vectors
        return (single,) if single else self.request.poolings

    def pass_job(self, pass_: Pass) -> "Job":
        """The job of a pass, for all of its tasks."""
        source = pass_.source
        folders = {VECTORS: self.stored(source).folder} if pass_.vectors else {}
        folders |= {task.listener: self.stored(source, task).folder for task in pass_.measured}
        memories = {
            task.listener: self.stored(task.memory.source, task).folder
            for task in pass_.measured
            if task.memory is not None and task.scores_from(source)
        }
        return Job(self, pass_, range(source.shards), folders, memories)

    def score_job(self, task: Task) -> "ScoreJob":
        """The job of a task, with the folders where the passes store what it uses."""
        vectors = {source.name: self.stored(source).folder for source in task.vector_sources}
        measured = self.stored(task.measured[-1].source, task).folder if task.measured else None
        sizes = self.sizes if task.needs == "device" else self._sizes_of([task])
        facts = self.records_print(task), task.data_digest
        return ScoreJob(self, task, *facts, vectors, measured, sizes)

    @cached_property
    def sizes(self) -> tuple[ViewSize, ...]:
        """Sizes of an image at which the backbone's cost is measured, its own first.

        The others are those that its tasks show, in this run and in the records of earlier ones.
        """
        own = ViewSize(self.spec.input_size, self.spec.input_size)
        folder = scored_path("any", self.spec.name).parent
        known = known_view_sizes(self.request.output / "records" / folder)
        return (own, *sorted({*self._sizes_of(self.plan.tasks.every), *known} - {own}))

    def _sizes_of(self, tasks: Iterable[Task]) -> tuple[ViewSize, ...]:
        """How large the backbone is shown images by each of some tasks that rank layers."""
        sizes = (self.plan.size_shown(task, self.spec) for task in tasks if not task.entry.analysis)
        return tuple(size for size in sizes if size is not None)

    def records_print(self, task: Task) -> str:
        """Fingerprint of the records of a task: of its config, and of what the records are made from."""
        plan, spec, backbone = self.plan, self.spec, self.identity.fingerprint
        if task.needs == "device":
            size = spec.input_size, spec.interpolation
            return digest(FORMAT, backbone, size, self.sizes, task.fingerprint, task.dataset)
        if task.needs == "backbone":
            views = [(plan.signature(source), view_for(spec, source.view)) for source in task.sources]
            layers = [str(layer) for layer in self.layers] if views else []
            return digest(FORMAT, SCORING, backbone, views, task.fingerprint, layers)
        stored = [self.stored(each.source) for each in plan.passes if task in each.vectors]
        stored += [self.stored(each.source, task) for each in plan.passes if task in each.measured]
        prints = [each.fingerprint for each in stored]
        layers = [str(layer) for layer in task.scored(self.layers, spec)]
        if marks := marks_of(task.sets, spec.depth, self.layers):
            layers += sorted(f"{layer} {mark}" for layer, names in marks.items() for mark in names)
        examples = () if task.examples is None else ("examples", EXAMPLES, self.writes_examples)
        return digest(FORMAT, SCORING, prints, task.scored_fingerprint, layers, *examples)

    def stored(self, source: Source, task: Task | None = None) -> Stored:
        """What a pass over a source stores: its vectors, or what a task measures of its groups.

        Input sizes share folders: a view that is the same at two sizes is computed only for the first.
        """
        key = *source.key, task.key if task else ""
        if key not in self._stored:
            images, view = self.plan.signature(source), view_for(self.spec, source.view)
            taps = (self.taps,) if self.taps != ("block",) else ()
            of_vectors = self.poolings, self.request.store_dtype, *taps
            facts = self._measured_facts(task, source) if task else of_vectors
            fingerprint = digest(FORMAT, self.identity.fingerprint, images, view, *facts)
            folder = self.request.cache / "features" / safe_name(self.spec.entry)
            listener = f"{task.entry.name}{task.ending}" if task else VECTORS
            name = f"{safe_name(source.name)}.{listener}.{fingerprint[:16]}"
            self._stored[key] = Stored(fingerprint, folder / name)
        return self._stored[key]

    def _measured_facts(self, task: Task, source: Source) -> tuple[object, ...]:
        """What the measurements of the groups of a source for a task depend on, besides these."""
        layers = [str(layer) for layer in task.measured_layers(source, self.layers, self.spec)]
        further: tuple[object, ...] = () if task.examples is None else ("examples", EXAMPLES)
        scored = task.scores_from(source)
        if scored and task.memory is not None:
            further += (("remembered", self.plan.signature(task.memory.source)),)
        numbers = task.scored_fingerprint if scored else task.fed_by(source).fingerprint
        return (numbers, layers, *further)


@dataclass(frozen=True)
class Job:
    """One backbone over a range of shards of one pass, for all listeners."""

    setup: Setup
    pass_: Pass
    shards: range  # those that exist are not computed again
    folders: Mapping[str, Path]  # of the shards of each listener, by its name: `VECTORS`, or a task's
    # what a listener's task remembers of another source, which must be complete before this job begins
    memories: Mapping[str, Path] = field(default_factory=dict)

    @property
    def source(self) -> Source:
        """The images of the pass in the view that the backbone is shown."""
        source = self.pass_.source
        return replace(source, view=view_for(self.setup.spec, source.view))

    @property
    def shared(self) -> bool:
        """Whether another backbone of the run is shown the same pixels."""
        view = self.pass_.source.view
        return [view_for(spec, view) for spec in self.setup.plan.backbones].count(self.source.view) > 1

    @property
    def stores(self) -> dict[str, Shards]:
        """The shards of each listener, by its name."""
        return {name: Shards(folder, self.pass_.source.shards) for name, folder in self.folders.items()}

    @property
    def missing(self) -> list[int]:
        """Shards that some listener lacks on disk, in order."""
        return sorted(set().union(*(store.missing for store in self.stores.values())) & {*self.shards})

    def __reduce__(self) -> tuple[Callable[..., "Job"], tuple[Any, ...]]:
        keys = frozenset(task.key for task in self.pass_.tasks)
        return _job_again, (self.setup, self.pass_.source.key, keys, self.shards, self.folders, self.memories)


def _job_again(setup: Setup, key: tuple[str, View], tasks: frozenset[str], *rest: Any) -> Job:  # noqa: ANN401
    again = next(each for each in setup.plan.passes if each.source.key == key)
    return Job(setup, again.serving(tasks), *rest)


@dataclass(frozen=True)
class ScoreJob:
    """Scores of one backbone in one task, from stored results of its passes, or measured apart from them."""

    setup: Setup
    task: Task
    fingerprint: str  # of its records
    data: str  # digest of its images and ground truth
    vectors: Mapping[str, Path]  # folder of the vectors of each source that it uses, by name of the source
    measured: Path | None  # folder of the measurements of its groups; None if nothing is measured
    # how large its images are shown; of costs, all sizes of an image that are timed, the backbone's own first
    view_sizes: tuple[ViewSize, ...] = ()

    @property
    def files(self) -> ResultFiles:
        """Files of this backbone and task in the output folder."""
        endings = {"items": "parquet", "arrays": "npz", "examples": "npz"}
        return self._files(self.fingerprint, endings, self.setup.spec.name)

    def _files(self, fingerprint: str, endings: Mapping[str, str], *names: str) -> ResultFiles:
        """Files of backbones and the task in the output folder: records and companions with those endings."""
        output, key = self.setup.request.output, self.task.key
        beside = {kind: output / kind / scored_path(key, *names, ending=end) for kind, end in endings.items()}
        records = output / "records" / scored_path(key, *names)
        return ResultFiles(records, fingerprint, self.data, beside, output / FOLDER)

    @property
    def view_size(self) -> str:
        """How large the first image is shown, for scores; "" for analyses and costs."""
        return "" if self.task.entry.analysis else "".join(map(str, self.view_sizes))

    def files_with(self, other: "ScoreJob") -> ResultFiles:
        """Files of the comparison with another backbone, or with itself."""
        fingerprint = digest([self.fingerprint, other.fingerprint])
        return self._files(fingerprint, {"arrays": "npz"}, self.setup.spec.name, other.setup.spec.name)

    def fields(self, files: ResultFiles, unreadable: int, begin: float) -> dict[str, object]:
        """Fields that all records of a file share; ``unreadable`` is the number of images left out.

        ``begin`` is the value of `perf_counter` when the scoring began.
        """
        setup, spec, task = self.setup, self.setup.spec, self.task
        left_out = f"; {unreadable} unreadable images left out" if unreadable else ""
        return {
            **{name: getattr(spec, name) for name in ("family", "trained", "depth", "input_size", "dtype")},
            **{name: getattr(task, name) for name in ("protocol", "dataset", "split", "transform")},
            "view_size": self.view_size,
            "suite": setup.suite,
            "backbone": spec.name,
            "revision": setup.identity.revision,
            "sha256": setup.identity.sha256,
            "interpolation": interpolation_of(spec),
            "task": task.entry.name,
            "analysis": task.entry.analysis,
            "data": files.data,
            "partial": task.coverage.partial or unreadable > 0,
            "coverage": f"{task.coverage}{left_out}",
            "device": setup.device.type,
            "fingerprint": files.fingerprint,
            "seconds": perf_counter() - begin,
            "version": VERSION,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def __reduce__(self) -> tuple[Callable[..., "ScoreJob"], tuple[Any, ...]]:
        rest = self.fingerprint, self.data, self.vectors, self.measured, self.view_sizes
        return _score_job_again, (self.setup, self.task.key, *rest)


def _score_job_again(setup: Setup, key: str, *rest: Any) -> ScoreJob:  # noqa: ANN401
    return ScoreJob(setup, next(task for task in setup.plan.tasks.every if task.key == key), *rest)


# a comparison, and the job of each backbone, in the order of their names
CompareJob = tuple[ComparisonTask, tuple[ScoreJob, ...]]


@dataclass(frozen=True)
class BackboneJobs:
    """Work of one backbone, or a piece of it: passes, tasks on the loaded backbone, then scores."""

    setup: Setup
    passes: tuple[Job, ...]
    backbone_tasks: tuple[ScoreJob, ...]
    scores: tuple[ScoreJob, ...]
    # results of the other pieces of the backbone, if scores follow
    before: PassResult = field(default_factory=PassResult)

    def on(self, slot: WorkerSlot) -> "BackboneJobs":
        """The jobs with the device and the threads of a worker's slot."""
        if not slot.device:
            return self
        request = replace(self.setup.request, workers=slot.threads or self.setup.request.workers)
        setup = replace(self.setup, device=torch.device(slot.device), request=request)
        passes = tuple(replace(job, setup=setup) for job in self.passes)
        backbone_tasks, scores = (
            tuple(replace(job, setup=setup) for job in jobs) for jobs in (self.backbone_tasks, self.scores)
        )
        return BackboneJobs(setup, passes, backbone_tasks, scores, self.before)
