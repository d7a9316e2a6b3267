"""A folder of images judged by the stored vectors of a run's backbones, and what is written of it."""

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.extraction.one_pass import PassResult
from layerboard.benchmark.jobs.job import Setup
from layerboard.benchmark.jobs.passes import BackboneCache, run_job
from layerboard.benchmark.jobs.prepare import identified, understand
from layerboard.benchmark.jobs.scores import readers_of
from layerboard.benchmark.request import Request
from layerboard.benchmark.vectors import vector_jobs
from layerboard.leaderboards.display import counted
from layerboard.leaderboards.pages.csv import csv_text
from layerboard.leaderboards.records.record import read_records
from layerboard.leaderboards.records.thumbnails import FOLDER, write_thumbnail
from layerboard.leaderboards.report.audit import KINDS, NOTE, PICTURED, TABLE
from layerboard.tasks.audit import DUPLICATE, LABEL, SERIES, Audit, Finding, Photo, audit, choose_space
from layerboard.tasks.blocks import Numbers
from layerboard.tasks.datasets.base import Data, Sample
from layerboard.tasks.identity import own_name
from layerboard.tasks.metrics.label_doubt import WRONG
from layerboard.tasks.metrics.near_duplicates import SMALL, difference_hashes
from layerboard.tasks.metrics.neighbours import Vectors
from layerboard.tasks.task import Task
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError, UnreadableImageError
from layerboard.zoo.spec import FLOORS

SPLIT = "audit-split.csv"  # in the output folder, beside `TABLE`


def audit_images(request: Request, data: Data, report: Reporter) -> pd.DataFrame:
    """Audit the folder of a request, by the backbones that it names or that a run in its output measured.

    ``data`` is what the folder was read as. Vectors come from the cache; what is not there is computed, and
    stays there. Writes `TABLE`, which it gives, `SPLIT` and small pictures into the output. Raises InputError
    where the request is wrong, no backbone is named or has records, or no task on it stores vectors.
    """
    name, said = own_name(data), {file: Photo(file, *words) for file, *words in data.described()}
    named = request.backbones or _measured(request.output, name)
    request = replace(request, backbones=named, floor=False)
    plan, suite, devices = understand(request, report)
    tasks = [task for task in plan.tasks.every if task.vector_sources]
    if not tasks:
        raise InputError(f"--features needs vectors of images, and no task on {name} stores any")
    setups, failures = identified(plan, request, suite, devices[0])
    if failures:
        raise InputError(str(failures[0]))
    sources = tasks[0].vector_sources
    samples = [sample for source in sources for sample in source.samples]
    greys = _greys(samples, name, report)
    stored = [_candidates(setup, tasks[0], report) for setup in setups]
    kept = np.array([grey is not None for grey in greys])
    photos = [
        said.get(sample.key, Photo(sample.key)) for sample, there in zip(samples, kept, strict=True) if there
    ]
    spaces = [
        choose_space(setup.spec.name, ((layer, vectors[kept]) for layer, vectors in candidates), photos)
        for setup, candidates in zip(setups, stored, strict=True)
    ]
    hashes = difference_hashes(np.stack([grey for grey in greys if grey is not None]))
    found = audit(photos, hashes, spaces)
    return _written(found, name, {sample.key: sample for sample in samples}, request.output)


def _measured(output: Path, dataset: str) -> tuple[str, ...]:
    """The backbones, no floors, of which a folder has records of a dataset; raises InputError for none."""
    folder = output / "records"
    records = read_records([folder]) if any(folder.rglob("*.parquet")) else pd.DataFrame()
    if len(records):
        records = records[(records["dataset"] == dataset) & ~records["family"].isin(FLOORS)]
    if records.empty:
        raise InputError(
            f"expected records of {dataset} in {output}, found none; `layerboard run` on the same images "
            "writes them, or name backbones by --backbones"
        )
    return tuple(dict.fromkeys(records["backbone"]))


def _candidates(setup: Setup, task: Task, report: Reporter) -> Iterator[tuple[str, Vectors]]:
    """The stored vectors of each layer and pooling of a backbone, [images dim] in the order of the sources.

    Passes that are not there are made. Raises InputError where they fail.
    """
    jobs = vector_jobs([task], setup)
    cache = BackboneCache(jobs.setup)
    passed = PassResult.joined(run_job(job, cache, report) for job in jobs.passes)
    if passed.failures:
        raise InputError(str(passed.failures[0]))
    readers = readers_of(jobs.scores[0]).values()
    shown = np.concatenate([reader.shown for reader in readers])
    for layer in jobs.setup.layers:
        for pooling in next(iter(readers)).poolings():
            vectors = np.concatenate([reader.read(layer, pooling) for reader in readers])
            if np.isfinite(vectors[shown]).all():
                yield f"{layer} {pooling}", vectors


def _greys(samples: Sequence[Sample], name: str, report: Reporter) -> list[NDArray[np.uint8] | None]:
    """Small grey pictures [8 9] of which hashes are made; None of images that cannot be read."""
    with (
        ThreadPool(os.cpu_count()) as pool,
        report.bar(f"{name}  hashing", len(samples), "images") as advance,
    ):
        greys = []
        for grey in pool.imap(_grey, samples, chunksize=8):
            greys.append(grey)
            advance(1)
    return greys


def _grey(sample: Sample) -> NDArray[np.uint8] | None:
    try:
        return np.asarray(sample.open().convert("L").resize(SMALL, Image.Resampling.LANCZOS))
    except UnreadableImageError:
        return None


def _written(found: Audit, name: str, samples: Mapping[str, Sample], output: Path) -> pd.DataFrame:
    """Write the table, the split and the pictures of an audit."""
    rows: list[dict[str, object]] = [{"finding": NOTE, "note": note} for note in _notes(found, output)]
    for kind in KINDS:
        for rank, finding in enumerate(found.of_kind(kind)):
            files = (finding.file, finding.other) if rank < PICTURED else ()
            pictures = [write_thumbnail(samples[file].open(), output / FOLDER) for file in files]
            rows.append(finding._asdict() | dict(zip(("picture", "other_picture"), pictures, strict=False)))
    columns = ["dataset", *Finding._fields, "picture", "other_picture", "note"]
    frame = pd.DataFrame(rows, columns=columns, dtype=object).assign(dataset=name)
    write_whole(output / TABLE, csv_text(Numbers(frame, TABLE)))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["file", "label", "group", "split"])
    first = np.unique(found.clusters, return_index=True)[1][found.clusters]
    alone = np.bincount(found.clusters)[found.clusters] == 1
    for row, photo in enumerate(found.photos):
        group = photo.group or ("" if alone[row] else found.photos[first[row]].file)
        table.writerow([photo.file, photo.label, group, found.split[row]])
    write_whole(output / SPLIT, text.getvalue())
    return frame


def _notes(found: Audit, output: Path) -> Iterator[str]:
    """What was found, a sentence each."""
    duplicates, labels, series = (found.of_kind(kind) for kind in (DUPLICATE, LABEL, SERIES))
    accuracies = [f"{space.name} ({space.accuracy:.0f} %)" for space in found.spaces if space.accuracy >= 0]
    how = f"{', '.join(accuracies) or ', '.join(space.name for space in found.spaces)}"
    which = "at its layer of the best leave-one-out k-NN" if accuracies else "at its last layer"
    yield f"{counted(len(found.photos), 'images')}, by each backbone {which}: {how}."
    across = sum("," in finding.split for finding in duplicates)
    where = f", {across} of them across splits" if across else ""
    yield f"Duplicates: {counted(len(duplicates), 'images')} like another one{where}."
    if np.isnan(found.planted):
        yield "Labels: none could be judged; it takes two classes, of four images or more."
    else:
        yield (
            f"Labels: {len(labels)} that neighbours contradict. Of labels made wrong on purpose, "
            f"{100 * WRONG:.0f} % of all, {100 * found.planted:.0f} % would be listed."
        )
    if any(photo.group for photo in found.photos):
        yield "Series: not looked for, since images have groups."
    elif series:
        count = sum(int(finding.score) for finding in series)
        yield (
            f"Series: {count:,} images stand in {len(series)} runs of files that are alike in the order of "
            f"their names, the longest from {series[0].file} to {series[0].other}. Images of one series are "
            f"not independent: --groups {output / SPLIT} keeps each together."
        )
    else:
        yield "Series: none; files are not more alike in the order of their names than by chance."
    yield f"{output / SPLIT} suggests a split and groups that keep together what belongs together."
