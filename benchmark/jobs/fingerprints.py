"""The jobs of a backbone, and fingerprints of everything that stored features and records depend on."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from layerboard.benchmark.jobs.job import Job, ScoreJob, Setup
from layerboard.benchmark.plan.plan import VECTORS, Pass, view_for
from layerboard.benchmark.records.records import known_view_sizes
from layerboard.leaderboards.records.files import safe_name, scored_path
from layerboard.tasks.framework.base import Source, digest
from layerboard.tasks.framework.examples import VERSION as EXAMPLES
from layerboard.tasks.framework.sets import marks_of
from layerboard.tasks.framework.task import Task
from layerboard.zoo.view.geometry import ViewSize
from layerboard.zoo.view.views import View

FORMAT = 2  # raise it when stored features, measurements or scores change for the same input
SCORING = 7  # raise it when scores, intervals or marks change for the same features


class Stored(NamedTuple):
    """What a pass stores for one of its listeners."""

    fingerprint: str
    folder: Path


@dataclass(frozen=True)
class JobMaker:
    """The jobs of one backbone, each with where its passes store what it uses, which is worked out once."""

    setup: Setup
    _stored: dict[tuple[str, View, str], Stored] = field(default_factory=dict, init=False, compare=False)

    def pass_job(self, pass_: Pass) -> Job:
        """The job of a pass, for all of its tasks."""
        source = pass_.source
        folders = {VECTORS: self.stored(source).folder} if pass_.vectors else {}
        folders |= {task.listener: self.stored(source, task).folder for task in pass_.measured}
        memories = {
            task.listener: self.stored(task.memory.source, task).folder
            for task in pass_.measured
            if task.memory is not None and task.scores_from(source)
        }
        return Job(self.setup, pass_, range(source.shards), folders, memories)

    def score_job(self, task: Task) -> ScoreJob:
        """The job of a task, with the folders where the passes store what it uses."""
        vectors = {source.name: self.stored(source).folder for source in task.vector_sources}
        measured = self.stored(task.measured[-1].source, task).folder if task.measured else None
        sizes = self.sizes if task.needs == "device" else self._sizes_of([task])
        facts = self.records_print(task), task.data_digest
        return ScoreJob(self.setup, task, *facts, vectors, measured, sizes)

    @cached_property
    def sizes(self) -> tuple[ViewSize, ...]:
        """Sizes of an image at which the backbone's cost is measured, its own first.

        The others are those that its tasks show, in this run and in the records of earlier ones.
        """
        setup = self.setup
        own = ViewSize(setup.spec.input_size, setup.spec.input_size)
        folder = scored_path("any", setup.spec.name).parent
        known = known_view_sizes(setup.request.output / "records" / folder)
        return (own, *sorted({*self._sizes_of(setup.plan.tasks.every), *known} - {own}))

    def _sizes_of(self, tasks: Iterable[Task]) -> tuple[ViewSize, ...]:
        """How large the backbone is shown images by each of some tasks that rank layers."""
        plan, spec = self.setup.plan, self.setup.spec
        sizes = (plan.size_shown(task, spec) for task in tasks if not task.entry.analysis)
        return tuple(size for size in sizes if size is not None)

    def records_print(self, task: Task) -> str:
        """Fingerprint of the records of a task: of its config, and of what the records are made from."""
        setup, plan, backbone = self.setup, self.setup.plan, self.setup.identity.fingerprint
        if task.needs == "device":
            size = setup.spec.input_size, setup.spec.interpolation
            return digest(FORMAT, backbone, size, self.sizes, task.fingerprint, task.dataset)
        if task.needs == "backbone":
            views = [(plan.signature(source), view_for(setup.spec, source.view)) for source in task.sources]
            layers = [str(layer) for layer in setup.layers] if views else []
            return digest(FORMAT, SCORING, backbone, views, task.fingerprint, layers)
        stored = [self.stored(each.source) for each in plan.passes if task in each.vectors]
        stored += [self.stored(each.source, task) for each in plan.passes if task in each.measured]
        prints = [each.fingerprint for each in stored]
        layers = [str(layer) for layer in task.scored(setup.layers, setup.spec)]
        if marks := marks_of(task.sets, setup.spec.depth, setup.layers):
            layers += sorted(f"{layer} {mark}" for layer, names in marks.items() for mark in names)
        examples = () if task.examples is None else ("examples", EXAMPLES, setup.writes_examples)
        return digest(FORMAT, SCORING, prints, task.scored_fingerprint, layers, *examples)

    def stored(self, source: Source, task: Task | None = None) -> Stored:
        """What a pass over a source stores: its vectors, or what a task measures of its groups.

        Input sizes share folders: a view that is the same at two sizes is computed only for the first.
        """
        setup = self.setup
        key = *source.key, task.key if task else ""
        if key not in self._stored:
            images, view = setup.plan.signature(source), view_for(setup.spec, source.view)
            taps = (setup.taps,) if setup.taps != ("block",) else ()
            of_vectors = setup.poolings, setup.request.store_dtype, *taps
            facts = self._measured_facts(task, source) if task else of_vectors
            fingerprint = digest(FORMAT, setup.identity.fingerprint, images, view, *facts)
            folder = setup.request.cache / "features" / safe_name(setup.spec.entry)
            listener = f"{task.entry.name}{task.ending}" if task else VECTORS
            name = f"{safe_name(source.name)}.{listener}.{fingerprint[:16]}"
            self._stored[key] = Stored(fingerprint, folder / name)
        return self._stored[key]

    def _measured_facts(self, task: Task, source: Source) -> tuple[object, ...]:
        """What the measurements of the groups of a source for a task depend on, besides these."""
        layers = [str(layer) for layer in task.measured_layers(source, self.setup.layers, self.setup.spec)]
        further: tuple[object, ...] = () if task.examples is None else ("examples", EXAMPLES)
        scored = task.scores_from(source)
        if scored and task.memory is not None:
            further += (("remembered", self.setup.plan.signature(task.memory.source)),)
        numbers = task.scored_fingerprint if scored else task.fed_by(source).fingerprint
        return (numbers, layers, *further)
