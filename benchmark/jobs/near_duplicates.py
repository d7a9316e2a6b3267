"""Near-duplicates among the user's own images, by stored vectors of one backbone: their count, and pairs."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.jobs.job import BackboneJobs, ScoreJob
from layerboard.benchmark.jobs.scores import readers_of
from layerboard.leaderboards.blocks.csv import csv_text, read_csv_table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.near_duplicates import (
    NearDuplicates,
    find_judge,
    read_near_duplicates,
    write_near_duplicates,
)
from layerboard.leaderboards.records.files import NEAR_DUPLICATE_PAIRS
from layerboard.tasks.datasets.base import Data
from layerboard.tasks.framework.sources import ProbedImages
from layerboard.tasks.framework.task import Task
from layerboard.tasks.metrics import near_duplicates
from layerboard.tasks.metrics.neighbours import Vectors
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError

LAYERS = 4  # blocks whose vectors are compared, evenly spaced up to the last


def count_near_duplicates(
    backbones: Sequence[BackboneJobs], board: Board, output: Path, report: Reporter
) -> None:
    """Count those of each dataset without groups, by the vectors of its judge (`find_judge`), once.

    Their pairs are written beside the counts. The tables of the output folder lose what another backbone has
    counted. Things that are shown by several images are no near-duplicates of each other: tasks on them are
    left out.
    """
    before = read_near_duplicates(output)
    counts, pairs = {**before}, dict[str, pd.DataFrame]()
    with suppress(OSError, ValueError, KeyError):  # there are none, or another file is in their place
        every = read_csv_table(output / NEAR_DUPLICATE_PAIRS).groupby("dataset", sort=False)
        pairs = {str(dataset): rows.drop(columns="dataset") for dataset, rows in every}
    for dataset in dict.fromkeys(column.dataset for column in board.columns):
        judge = find_judge(column for column in board.columns if column.dataset == dataset)
        if dataset in counts and counts[dataset].backbone == judge:
            continue
        counts.pop(dataset, None)
        pairs.pop(dataset, None)
        jobs = [job for each in backbones if each.setup.spec.name == judge for job in each.scores]
        for job in (job for job in jobs if job.task.dataset == dataset and _is_counted(job.task)):
            with suppress(InputError, KeyError, OSError):  # of a pass that failed, which was said
                with report.bar(f"{judge}  near-duplicates", 1, "datasets"):
                    layers = [*_layers(job)]
                    if share := near_duplicates.share_with_near_duplicate(layers):
                        alike = near_duplicates.near_duplicate_pairs(layers)
                        pairs[dataset] = _table(job.task, _files(job), alike)
                images = len(layers[0]) if layers else 0
                counts[dataset] = NearDuplicates(dataset, judge, images, share)
                break
    if counts != before:
        write_near_duplicates(counts, output)
        (output / NEAR_DUPLICATE_PAIRS).unlink(missing_ok=True)
        if pairs:
            frame = pd.concat(pairs, names=["dataset"]).reset_index(0)
            write_whole(output / NEAR_DUPLICATE_PAIRS, csv_text(frame))


def _table(task: Task, files: Sequence[str], found: near_duplicates.NearDuplicatePairs) -> pd.DataFrame:
    """Pairs of indices of files as a table, one row per pair: those across splits first, then of two labels.

    Its columns are file, other, cosine (median of the layers), and the split and label of both.
    """
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
