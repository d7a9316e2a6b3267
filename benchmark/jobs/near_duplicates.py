"""Near-duplicates among the user's own images, by stored vectors of one backbone: their count, and pairs."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from layerboard.benchmark.engines.progress import Reporter, Silent
from layerboard.benchmark.forms.campaign import RUN_FILE
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs.fingerprints import JobMaker
from layerboard.benchmark.jobs.job import BackboneJobs, ScoreJob
from layerboard.benchmark.jobs.prepare import PlannedRun, identified, plan_of
from layerboard.benchmark.jobs.scores import readers_of
from layerboard.benchmark.plan.plan import Plan
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.near_duplicates import (
    NearDuplicates,
    find_judge,
    read_near_duplicates,
    write_near_duplicates,
)
from layerboard.leaderboards.records.files import safe_name
from layerboard.tasks.datasets.base import Data
from layerboard.tasks.framework.sources import ProbedImages
from layerboard.tasks.framework.task import Task
from layerboard.tasks.metrics.near_duplicates import (
    NearDuplicatePairs,
    near_duplicate_pairs,
    share_with_near_duplicate,
)
from layerboard.tasks.metrics.neighbours import Vectors
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import entry_name

LAYERS = 4  # blocks whose vectors are compared, evenly spaced up to the last


def count_near_duplicates(
    backbones: Sequence[BackboneJobs], board: Board, output: Path, report: Reporter
) -> None:
    """Count those of each dataset without groups, by the vectors of its judge (`find_judge`), once.

    The table of the output folder loses a count by another backbone. Things that are shown by several images
    are no near-duplicates of each other: tasks on them are left out.
    """
    before = read_near_duplicates(output)
    counts, datasets = {**before}, dict.fromkeys(column.dataset for column in board.columns)
    for dataset in datasets:
        judge = find_judge(column for column in board.columns if column.dataset == dataset)
        if dataset in counts and counts[dataset].backbone == judge:
            continue
        counts.pop(dataset, None)
        jobs = [job for each in backbones if each.setup.spec.name == judge for job in each.scores]
        for job in (job for job in jobs if job.task.dataset == dataset and _is_counted(job.task)):
            with suppress(InputError, KeyError, OSError):  # of a pass that failed, which was said
                with report.bar(f"{judge}  near-duplicates", 1, "datasets"):
                    layers = [*_layers(job)]
                    share = share_with_near_duplicate(layers)
                images = len(layers[0]) if layers else 0
                counts[dataset] = NearDuplicates(dataset, judge, images, share)
                break
    if counts != before:
        write_near_duplicates(counts, output)


def request_of_run(output: Path, **options: object) -> Request:
    """The request of the last run into an output folder, with other options in place of some of its own.

    Raises InputError if there is none, or if the options contradict it.
    """
    request = Request.filled({"campaign": str(output / RUN_FILE), "output": output, **options})
    return replace(request, campaign=None, floor=False)


def pairs_of_run(
    request: Request, counts: Iterable[NearDuplicates], report: Reporter
) -> list[tuple[NearDuplicates, pd.DataFrame | None]]:
    """The counts of an output folder on the images of a request, each with the pairs behind it.

    There are none where the cache lacks the vectors, which are found by the options with which they were
    stored (`request_of_run`). A table has one row per pair: file, other, cosine (median of the layers), and
    the split and label of both; pairs across splits come first, then pairs of two labels. No image is shown
    to a backbone. Raises InputError if the request is wrong.
    """
    run = plan_of(request, Silent(), writes=False)
    datasets = {task.dataset for task in run.plan.tasks.every}
    return [(count, _pairs(run, count, report)) for count in counts if count.dataset in datasets]


def _pairs(run: PlannedRun, count: NearDuplicates, report: Reporter) -> pd.DataFrame | None:
    """The table of the pairs behind a count; None without its vectors."""
    for job in _jobs_of(run, count):
        with suppress(InputError, KeyError, OSError):  # of vectors that are not stored
            files, layers = _files(job), [*_layers(job)]
            if layers and len(layers[0]) == len(files) == count.images:
                with report.bar(f"{count.backbone}  near-duplicates", 1, "datasets"):
                    return _table(job.task, files, near_duplicate_pairs(layers))
    return None


def _jobs_of(run: PlannedRun, count: NearDuplicates) -> Iterator[ScoreJob]:
    """Jobs on the images of a count, with where the vectors of its backbone are stored, if any are."""
    if not (run.request.cache / "features" / safe_name(entry_name(count.backbone))).is_dir():
        return  # its weights, which identify vectors, may not be here either, and are not fetched
    specs = tuple(spec for spec in run.plan.backbones if spec.name == count.backbone)
    plan = Plan(replace(run.plan.recipe, backbones=specs), run.plan.tasks)
    setups, _ = identified(replace(run, plan=plan))
    for maker in map(JobMaker, setups):
        tasks = (task for task in plan.tasks.needing("passes") if task.dataset == count.dataset)
        yield from (maker.score_job(task) for task in tasks if _is_counted(task))


def _table(task: Task, files: Sequence[str], found: NearDuplicatePairs) -> pd.DataFrame:
    """The rows of `pairs_of_run`, from pairs of indices of the files."""
    known = {file: (split, label) for file, label, _, split in _described(task)}
    facts = [known.get(file, ("", "")) for file in files]
    rows = [
        (files[first], files[second], round(cosine, 4), *facts[first], *facts[second])
        for (first, second), cosine in zip(found.pairs.tolist(), found.cosine.tolist(), strict=True)
    ]
    columns = ["file", "other", "cosine", "split", "label", "other_split", "other_label"]
    frame = pd.DataFrame(rows, columns=columns)
    alike = [frame[side] == frame[f"other_{side}"] for side in ("split", "label")]
    order = np.lexsort([-frame["cosine"], *reversed(alike)])
    return frame.iloc[order].reset_index(drop=True)


def _is_counted(task: Task) -> bool:
    """Whether near-duplicates are counted among the images of a task: it has vectors, and they no groups."""
    if task.entry.role == "instances" or not task.vector_sources:
        return False
    return not any(group for _, _, group, _ in _described(task))


def _described(task: Task) -> Iterator[tuple[str, str, str, str]]:
    """Name, class, group and split of each image of a task's dataset (`Data.described`)."""
    data = task.data.images if isinstance(task.data, ProbedImages) else task.data
    yield from data.described() if isinstance(data, Data) else ()


def _files(job: ScoreJob) -> list[str]:
    """Names of all images that could be read, in the order of their vectors."""
    return [
        sample.key
        for source, reader in zip(job.task.vector_sources, readers_of(job).values(), strict=True)
        for sample, shown in zip(source.samples, reader.shown, strict=True)
        if shown
    ]


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
