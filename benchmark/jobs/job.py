"""What an engine carries out: jobs, frozen and small, whatever the size of the data.

A job carries its pass, or its task. Pickled, it names it: another process finds it again in the plan, which
it makes once from its recipe.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch

from benchmark.extraction.shards import Shards
from benchmark.plan.layers import kept_layers, select_layers
from benchmark.plan.plan import Pass, Plan, SourceKey
from benchmark.request import Request
from benchmark.scores.records import Context, ResultFiles
from leaderboards.records.files import scored_path
from leaderboards.records.thumbnails import FOLDER
from tasks.base import digest
from tasks.comparing import ComparisonTask
from tasks.task import Task
from zoo.features import BackboneIdentity
from zoo.spec import BackboneSpec, Layer


@dataclass(frozen=True)
class Setup:
    """One backbone as a run shows it to its tasks.

    Attributes:
        plan: The plan of the run, where jobs find their passes and tasks again in another process.
        spec: The backbone.
        identity: What tells its features from those of all others.
        request: What the run was told.
        suite: Suite that its records belong to.
        device: Where it runs.
    """

    plan: Plan = field(compare=False, repr=False)
    spec: BackboneSpec
    identity: BackboneIdentity
    request: Request
    suite: str
    device: torch.device

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Layers of the backbone that the request wants scored, in the order of a forward."""
        return select_layers(self.request.layers, self.spec, self.request.taps)

    @property
    def kept(self) -> frozenset[Layer]:
        """Layers whose vectors are kept."""
        return kept_layers(self.spec, self.request.taps)

    @property
    def keeps_examples(self) -> bool:
        """Whether predictions and pictures of examples are kept; of the random floor they say nothing."""
        return self.request.examples and not self.spec.is_floor

    @property
    def poolings(self) -> tuple[str, ...]:
        """Vectors that are kept; of the random floor only one kind, since its poolings say the same."""
        return ("cls",) if self.spec.is_floor else self.request.poolings

    @property
    def context(self) -> Context:
        """What all records of the backbone have in common."""
        return Context(self.suite, self.spec, self.identity.revision, self.request.dtype, self.device.type)


@dataclass(frozen=True)
class Job:
    """One backbone over a range of the shards of one pass, for all that listens.

    Attributes:
        setup: The backbone.
        pass_: The source, and the tasks that need to see it.
        shards: Which of its shards; those that are there already are not computed again.
        folders: Folder of the shards of each listener, by its name: `VECTORS`, or a task's.
        memories: Folder of what the task of a listener remembers of another source, by the listener's name;
            that source must be over before this one begins.
    """

    setup: Setup
    pass_: Pass
    shards: range
    folders: Mapping[str, Path]
    memories: Mapping[str, Path] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        """Shards that a listener misses on the disk, in order."""
        stores = (Shards.open(folder, self.pass_.source.shards) for folder in self.folders.values())
        return sorted(set().union(*({*store.missing} & {*self.shards} for store in stores)))

    @property
    def images_left(self) -> int:
        """Images of the shards that a listener misses."""
        return sum(map(self.pass_.source.shard_images, self.missing))

    def __reduce__(self) -> tuple[Callable[..., "Job"], tuple[Any, ...]]:
        keys = frozenset(task.key for task in self.pass_.tasks)
        return _job_again, (self.setup, self.pass_.key, keys, self.shards, self.folders, self.memories)


def _job_again(setup: Setup, key: SourceKey, tasks: frozenset[str], *rest: Any) -> Job:  # noqa: ANN401
    """A job in a process that was sent it."""
    return Job(setup, setup.plan.pass_over(key).serving(tasks), *rest)


@dataclass(frozen=True)
class ScoreJob:
    """One backbone's scores in one task, from what its passes have stored, or from what it is asked.

    Attributes:
        setup: The backbone.
        task: The task.
        fingerprint: Of its records.
        data: Digest of the images and the ground truth that they are of.
        vectors: Folder of the vectors of each source that it takes, by the source's name.
        measured: Folder of what its groups left behind; None where nothing is measured.
    """

    setup: Setup
    task: Task
    fingerprint: str
    data: str
    vectors: Mapping[str, Path]
    measured: Path | None

    @property
    def kept(self) -> ResultFiles:
        """Files of this backbone and task in the output."""
        return _kept(self, self.fingerprint, self.setup.spec.name, beside=("items", "arrays", "examples"))

    def __reduce__(self) -> tuple[Callable[..., "ScoreJob"], tuple[Any, ...]]:
        rest = self.fingerprint, self.data, self.vectors, self.measured
        return _score_job_again, (self.setup, self.task.key, *rest)


def _score_job_again(setup: Setup, key: str, *rest: Any) -> ScoreJob:  # noqa: ANN401
    """A job in a process that was sent it."""
    return ScoreJob(setup, setup.plan.task(key), *rest)


AnyJob = TypeVar("AnyJob", Job, ScoreJob)


@dataclass(frozen=True)
class Pair:
    """Two backbones of a comparison, which may be one and the same."""

    first: ScoreJob
    second: ScoreJob

    @property
    def kept(self) -> ResultFiles:
        """File of this pair in the output."""
        names = (job.setup.spec.name for job in (self.first, self.second))
        fingerprint = digest([self.first.fingerprint, self.second.fingerprint])
        return _kept(self.first, fingerprint, *names, beside=("arrays",))


def _kept(job: ScoreJob, fingerprint: str, *names: str, beside: Sequence[str]) -> ResultFiles:
    """Files of backbones and a task in the output: records, and what is beside them."""
    output, key = job.setup.request.output, job.task.key
    endings = {"items": "parquet", "arrays": "npz", "examples": "npz"}
    paths = {kind: output / kind / scored_path(key, *names, ending=endings[kind]) for kind in beside}
    return ResultFiles(
        output / "records" / scored_path(key, *names), fingerprint, job.data, paths, output / FOLDER
    )


@dataclass(frozen=True)
class CompareJob:
    """A comparison, and what each backbone brings to it, in the order of their names."""

    task: ComparisonTask
    members: tuple[ScoreJob, ...]


@dataclass(frozen=True)
class BackboneJobs:
    """All that one backbone has to do, in order: passes, questions without a pass, scores."""

    setup: Setup
    passes: tuple[Job, ...]
    questions: tuple[ScoreJob, ...]
    scores: tuple[ScoreJob, ...]

    def with_setup(self, setup: Setup) -> "BackboneJobs":
        """These jobs with the backbone on another device, or other options."""

        def changed(jobs: tuple[AnyJob, ...]) -> tuple[AnyJob, ...]:
            return tuple(replace(job, setup=setup) for job in jobs)

        return BackboneJobs(setup, changed(self.passes), changed(self.questions), changed(self.scores))
