"""Counts near-duplicates among the user's own images, in the stored vectors of one backbone."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

import numpy as np

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.jobs.job import BackboneJobs, ScoreJob
from layerboard.benchmark.jobs.scores import readers_of
from layerboard.leaderboards.board.near_duplicates import (
    NearDuplicates,
    read_near_duplicates,
    write_near_duplicates,
)
from layerboard.tasks.datasets.base import Data
from layerboard.tasks.framework.sources import ProbedClasses
from layerboard.tasks.metrics.neighbours import Vectors
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Variant

LAYERS = 4  # blocks whose vectors are compared, evenly spaced up to the last


def count_near_duplicates(backbones: Sequence[BackboneJobs], output: Path, report: Reporter) -> None:
    """Add the images of each dataset that has no groups to the table of the output folder, once.

    Things that are shown by several images are no near-duplicates of each other: tasks on them are left out.
    Of a training the latest checkpoint counts, since images are alike to a network that has learned little.
    """
    before = read_near_duplicates(output)
    counts = {**before}
    for jobs in sorted(backbones, key=lambda jobs: -_step(jobs.setup.spec.name)):
        for job in () if jobs.setup.spec.is_floor else jobs.scores:
            task, name = job.task, jobs.setup.spec.name
            if task.entry.role == "instances" or not task.vector_sources:
                continue
            if not _is_later(name, counts.get(task.dataset)):
                continue
            data = task.data.images if isinstance(task.data, ProbedClasses) else task.data
            if isinstance(data, Data) and any(group for _, _, group, _ in data.described()):
                continue
            from layerboard.tasks.audit.near_duplicates import share_with_near_duplicate  # scipy's graphs

            with suppress(InputError, KeyError, OSError):  # of a pass that failed, which was said
                with report.bar(f"{name}  near-duplicates", 1, "datasets"):
                    layers = [*_layers(job)]
                    share = share_with_near_duplicate(layers)
                images = len(layers[0]) if layers else 0
                counts[task.dataset] = NearDuplicates(task.dataset, name, images, share)
    if counts != before:
        write_near_duplicates(counts, output)


def _step(name: str) -> float:
    """The step of a checkpoint; that of a backbone that is none comes after all."""
    step = Variant.of(name).checkpoint[1]
    return inf if step < 0 else step


def _is_later(name: str, counted: NearDuplicates | None) -> bool:
    """Whether a backbone is to count: nobody has, or an earlier checkpoint of the same training."""
    if counted is None:
        return True
    (series, _), (before, _) = (Variant.of(each).checkpoint for each in (name, counted.backbone))
    return series == before and _step(name) > _step(counted.backbone)


def _layers(job: ScoreJob) -> Iterator[Vectors]:
    """Vectors of some blocks, [images dim] each, of all images that could be read."""
    readers = readers_of(job).values()
    shown = np.concatenate([reader.shown for reader in readers])
    blocks = [layer for layer in job.setup.layers if layer.tap == "block" and layer.index > 0]
    poolings = next(iter(readers)).poolings()
    pooling = "mean" if "mean" in poolings else poolings[0]
    indices = np.unique(np.linspace(len(blocks) - 1, 0, LAYERS + 1).round().astype(int)[:LAYERS])
    for index in indices if blocks else ():
        vectors = np.concatenate([reader.read(blocks[index], pooling) for reader in readers])[shown]
        if np.isfinite(vectors).all():
            yield vectors
