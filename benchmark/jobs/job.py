"""One backbone of a run: its fingerprints, its files, and what is there already."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch

from benchmark.features.shards import ShardStore
from benchmark.plan.plan import BackbonePlan, BoundTask, Pass
from benchmark.request import Request, select_layers
from benchmark.scores.records import Context, file_name, file_under, is_current
from leaderboards.records.files import safe_name
from tasks.base import digest
from zoo.errors import InputError
from zoo.features import BackboneIdentity
from zoo.spec import Layer

FORMAT = 2
"""Changes when stored features, measurements or scores would for the same input."""

VECTORS = "vectors"


class DiskFullError(InputError):
    """No space is left where the run writes."""


@dataclass(frozen=True)
class Failure:
    """A backbone, or one of its tasks, that could not be finished."""

    backbone: str
    task: str
    message: str
    bad_input: bool
    key: str = ""
    """Key of the task on its dataset; "" where the whole backbone failed."""

    def __str__(self) -> str:
        where = f"{self.backbone}, {self.task}" if self.task else self.backbone
        return f"{where}: {self.message}"


@dataclass
class BackboneRun:
    """One backbone of a run: where its files are, and what is there already."""

    plan: BackbonePlan
    config: Request
    suite: str
    device: torch.device
    identity: BackboneIdentity
    signatures: Mapping[str, str]
    failures: list[Failure] = field(default_factory=list)
    stores: dict[Path, ShardStore] = field(default_factory=dict)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Layers that are scored."""
        return select_layers(self.config.layers, self.plan.spec, self.config.taps)

    @property
    def kept(self) -> frozenset[Layer]:
        """Layers whose vectors are kept: all that the backbone has in the run's taps, for later runs too."""
        every = select_layers("all", self.plan.spec, self.config.taps)
        return frozenset(every) | (frozenset(self.plan.spec.layers) if self._reads_blocks else frozenset())

    @property
    def _reads_blocks(self) -> bool:
        return "block" in self.config.taps or self.plan.spec.family == "random"

    @property
    def poolings(self) -> tuple[str, ...]:
        """Vectors that are kept; of the random floor only one kind, since its poolings say the same."""
        return ("cls",) if self.plan.spec.family == "random" else self.config.poolings

    @property
    def context(self) -> Context:
        """What its records share."""
        return Context(
            self.suite, self.plan.spec, self.identity.revision, self.config.dtype, self.device.type
        )

    def vectors_print(self, one: Pass) -> str:
        """Fingerprint of a source's vectors."""
        facts: tuple[object, ...] = (
            FORMAT,
            self.identity.fingerprint,
            self.signatures[one.source.name],
            one.view,
            self.poolings,
            self.config.store_dtype,
        )
        if self.config.taps != ("block",) and self.plan.spec.family != "random":
            facts = (*facts, self.config.taps)
        return digest(*facts)

    def dense_print(self, one: Pass, task: BoundTask) -> str:
        """Fingerprint of a dense task's measurements."""
        assert task.measured is not None
        layers = [str(layer) for layer in self.layers]
        return digest(
            FORMAT,
            self.identity.fingerprint,
            self.signatures[one.source.name],
            one.view,
            task.measured.identity,
            layers,
        )

    def store(self, one: Pass, name: str, fingerprint: str) -> ShardStore:
        """Shards of a listener."""
        folder = f"{safe_name(one.source.name)}.{name}.{fingerprint[:16]}"
        path = self.config.cache / "features" / safe_name(self.plan.spec.name) / folder
        return self.stores.setdefault(path, ShardStore(path))

    def fingerprint(self, task: BoundTask) -> str:
        """Fingerprint of a task's records: its features, its numbers, its ground truth, the layers."""
        names = {source.name for source in task.vector_sources}
        parts = [self.vectors_print(one) for one in self.plan.passes if one.source.name in names]
        parts += [self.dense_print(one, task) for one in self.plan.passes if task in one.dense]
        return digest(FORMAT, parts, task.problem.identity, [str(layer) for layer in self.layers])

    def records_path(self, task: BoundTask) -> Path:
        """Records file of a task."""
        return self.config.output / "records" / file_name(task, self.plan.spec.name)

    def stale(self) -> list[BoundTask]:
        """Tasks whose records are absent or belong to something else."""
        return [
            task
            for task in self.plan.tasks
            if not is_current(self.records_path(task), self.fingerprint(task))
        ]

    def file_under_suite(self) -> None:
        """Let its current records belong to the run's suite."""
        for task in self.plan.tasks:
            file_under(self.records_path(task), self.fingerprint(task), self.suite)

    def fail(self, task: BoundTask, error: Exception) -> None:
        """Note a failure; a full disk ends the run instead, since nothing after it can be kept."""
        if isinstance(error, DiskFullError):
            raise error
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"no space is left on the disk of {self.config.cache} or {self.config.output}; "
                "free some and run again: what is finished is kept"
            ) from error
        message = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        bad_input = isinstance(error, InputError)
        failure = Failure(self.plan.spec.name, task.task.name, message, bad_input, task.key)
        if failure not in self.failures:  # several passes of a task may fail for one reason
            self.failures.append(failure)
