"""What an engine carries out: jobs, frozen and small, whatever the size of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import torch

from benchmark.plan.layers import kept_layers, select_layers
from benchmark.plan.plan import SourceKey
from benchmark.request import Request
from benchmark.scores.records import Context, Kept
from leaderboards.records.files import scored_path
from leaderboards.records.thumbnails import FOLDER
from tasks.base import digest
from zoo.features import BackboneIdentity
from zoo.spec import BackboneSpec, Layer

VECTORS = "vectors"
"""Name of the listener that keeps vectors."""


@dataclass(frozen=True)
class Setup:
    """One backbone as a run shows it to its tasks.

    Attributes:
        spec: The backbone.
        identity: What tells its features from those of all others.
        request: What the run was told.
        suite: Suite that its records belong to.
        device: Where it runs.
    """

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
    """One backbone over a range of one source's shards, for all that listens.

    Attributes:
        setup: The backbone.
        source: The source.
        shards: Which of its shards; those that are there already are not computed again.
        listeners: Folder of the shards of each listener, by its name: `VECTORS`, or a task's.
        tasks: Keys of the tasks that need it.
        memories: Folder of what the task of a listener remembers of another source, by the listener's name;
            that source must be over before this one begins.
    """

    setup: Setup
    source: SourceKey
    shards: range
    listeners: Mapping[str, Path]
    tasks: tuple[str, ...]
    memories: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoreJob:
    """One backbone's scores in one task, from what its passes have stored, or from what it is asked.

    Attributes:
        setup: The backbone.
        task: Key of the task.
        fingerprint: Of its records.
        data: Digest of the images and the ground truth that they are of.
        vectors: Folder of the vectors of each source that it takes.
        measured: Folder of what its groups left behind; None where nothing is measured.
    """

    setup: Setup
    task: str
    fingerprint: str
    data: str
    vectors: Mapping[SourceKey, Path]
    measured: Path | None

    @property
    def kept(self) -> Kept:
        """Files of this backbone and task in the output."""
        return _kept(self, self.fingerprint, self.setup.spec.name, beside=("items", "arrays", "examples"))


AnyJob = TypeVar("AnyJob", Job, ScoreJob)


@dataclass(frozen=True)
class Pair:
    """Two backbones of a comparison, which may be one and the same."""

    first: ScoreJob
    second: ScoreJob

    @property
    def kept(self) -> Kept:
        """File of this pair in the output."""
        names = (job.setup.spec.name for job in (self.first, self.second))
        fingerprint = digest([self.first.fingerprint, self.second.fingerprint])
        return _kept(self.first, fingerprint, *names, beside=("arrays",))


def _kept(job: ScoreJob, fingerprint: str, *names: str, beside: Sequence[str]) -> Kept:
    """Files of backbones and a task in the output: records, and what is beside them."""
    output = job.setup.request.output
    endings = {"items": "parquet", "arrays": "npz", "examples": "npz"}
    paths = {one: output / one / scored_path(job.task, *names, ending=endings[one]) for one in beside}
    records = output / "records" / scored_path(job.task, *names)
    return Kept(records, fingerprint, job.data, paths, output / FOLDER)


@dataclass(frozen=True)
class CompareJob:
    """A comparison of backbones.

    Attributes:
        task: Key of the task.
        members: What each backbone brings, in the order of their names.
    """

    task: str
    members: tuple[ScoreJob, ...]


@dataclass(frozen=True)
class BackboneJobs:
    """All that one backbone has to do, in order: passes, questions, scores.

    Attributes:
        setup: The backbone.
        passes: Its passes.
        questions: What it is asked without a pass.
        scores: Its scores.
    """

    setup: Setup
    passes: tuple[Job, ...]
    questions: tuple[ScoreJob, ...]
    scores: tuple[ScoreJob, ...]

    def with_setup(self, setup: Setup) -> "BackboneJobs":
        """The same on another device, or otherwise told."""

        def told(jobs: tuple[AnyJob, ...]) -> tuple[AnyJob, ...]:
            return tuple(replace(job, setup=setup) for job in jobs)

        return BackboneJobs(setup, told(self.passes), told(self.questions), told(self.scores))
