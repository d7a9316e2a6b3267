"""Audit of a folder of images by the stored vectors of a run's backbones, and its files."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs.job import BackboneJobs
from layerboard.benchmark.jobs.passes import BackboneCache, run_job
from layerboard.benchmark.jobs.prepare import identified, plan_of
from layerboard.benchmark.jobs.scores import readers_of
from layerboard.benchmark.passes.one_pass import PassResult
from layerboard.benchmark.vectors import vector_jobs
from layerboard.leaderboards.blocks.csv import csv_text, sums_text
from layerboard.leaderboards.records.record import read_records
from layerboard.leaderboards.records.thumbnails import FOLDER, write_thumbnail
from layerboard.leaderboards.report.audit import COLUMNS, KINDS, NOTE, PICTURED, SUMS, TABLE
from layerboard.tasks.audit.audit import Audit, Photo, audit, choose_space
from layerboard.tasks.audit.finding import DUPLICATE, LABEL, SERIES
from layerboard.tasks.audit.label_doubt import WRONG
from layerboard.tasks.audit.near_duplicates import SMALL
from layerboard.tasks.datasets.base import Data, Sample
from layerboard.tasks.framework.identity import own_name
from layerboard.tasks.metrics.arrays import Mask
from layerboard.tasks.metrics.neighbours import Vectors
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError, UnreadableImageError, counted
from layerboard.zoo.spec import FLOORS

SPLIT = "audit-split.csv"  # file in the output folder, beside `TABLE`


class Folder(NamedTuple):
    """The readable images of a folder, as an audit sees them."""

    name: str  # name in records
    samples: dict[str, Sample]  # by their names, in the order of the vectors
    photos: list[Photo]
    grey: NDArray[np.uint8]  # thumbnails [images 8 9]
    # iterators over the layers of each backbone, which read one layer at a time
    layers: Mapping[str, Callable[[], Iterator[tuple[str, Vectors]]]]

    def audit(self, photos: Sequence[Photo]) -> Audit:
        """Run the audit with these photographs."""
        spaces = [choose_space(name, layers(), photos) for name, layers in self.layers.items()]
        return audit(photos, self.grey, spaces)


def audit_images(request: Request, data: Data, report: Reporter) -> pd.DataFrame:
    """Audit the folder of a request, read as ``data``; returns `TABLE`, with one row per finding.

    Writes the table, `SPLIT` and thumbnails to the output folder. Raises InputError as `read_vectors` does.
    """
    folder = read_vectors(request, data, report)
    with report.bar(f"{folder.name}  comparing {len(folder.photos):,} images", 1, "folders"):
        result = folder.audit(folder.photos)
    return _written(folder, result, request.output)


def read_vectors(request: Request, data: Data, report: Reporter) -> Folder:
    """The images of a request, and vectors of the backbones that it names or that its output folder records.

    Missing vectors are computed and stored in the cache. Raises InputError if the request is wrong, if no
    backbone is named or has records, or if no task on the images stores vectors.
    """
    name, said = own_name(data), {file: Photo(file, *words) for file, *words in data.described()}
    named = request.backbones or _measured(request.output, name)
    request = replace(request, backbones=named, floor=False)
    run = plan_of(request, report)
    tasks = [task for task in run.plan.tasks.every if task.vector_sources]
    if not tasks:
        raise InputError(f"--features needs vectors of images, and no task on {name} stores any")
    setups, failures = identified(run)
    if failures:
        raise InputError(str(failures[0]))
    jobs: dict[str, BackboneJobs] = {}
    for each in (vector_jobs(tasks[:1], setup) for setup in setups):
        cache = BackboneCache(each.setup)
        passed = PassResult.joined(run_job(job, cache, report) for job in each.passes)
        if passed.failures:
            raise InputError(str(passed.failures[0]))
        jobs[each.setup.spec.name] = each
    samples = [sample for source in tasks[0].vector_sources for sample in source.samples]
    greys = _greys(samples, name, report)
    shown = np.array([grey is not None for grey in greys])
    kept = {sample.key: sample for sample, there in zip(samples, shown, strict=True) if there}
    photos = [said.get(key, Photo(key)) for key in kept]
    grey = np.stack([grey for grey in greys if grey is not None])
    layers = {backbone: partial(_layers, its, shown) for backbone, its in jobs.items()}
    return Folder(name, kept, photos, grey, layers)


def _measured(output: Path, dataset: str) -> tuple[str, ...]:
    """Backbones with records of a dataset in a folder, without floors; raises InputError if there is none."""
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


def _layers(jobs: BackboneJobs, shown: Mask) -> Iterator[tuple[str, Vectors]]:
    """Vectors of each layer and pooling of a backbone, [shown dim] in the order of the sources."""
    readers = readers_of(jobs.scores[0]).values()
    for layer in jobs.setup.layers:
        for pooling in next(iter(readers)).poolings():
            vectors = np.concatenate([reader.read(layer, pooling) for reader in readers])[shown]
            if np.isfinite(vectors).all():
                yield f"{layer} {pooling}", vectors


def _greys(samples: Sequence[Sample], name: str, report: Reporter) -> list[NDArray[np.uint8] | None]:
    """Grey thumbnails [8 9]; None for unreadable images."""
    with (
        ThreadPool(os.cpu_count()) as pool,
        report.bar(f"{name}  reading", len(samples), "images") as advance,
    ):
        greys = []
        for grey in pool.imap(_grey, samples, chunksize=8):
            greys.append(grey)
            advance(1)
    return greys


def _grey(sample: Sample) -> NDArray[np.uint8] | None:
    try:
        image = sample.open().convert("L")
    except UnreadableImageError:
        return None
    return np.asarray(image.resize(SMALL, Image.Resampling.LANCZOS))


def _written(folder: Folder, found: Audit, output: Path) -> pd.DataFrame:
    """Write the table, the split and the thumbnails of an audit."""
    rows: list[dict[str, object]] = [{"finding": NOTE, "note": note} for note in _notes(found)]
    for kind in KINDS:
        for rank, finding in enumerate(found.of_kind(kind)):
            files = (finding.file, finding.other) if rank < PICTURED else ()
            pictures = [write_thumbnail(folder.samples[file].open(), output / FOLDER) for file in files]
            rows.append(finding._asdict() | dict(zip(("picture", "other_picture"), pictures, strict=False)))
    frame = pd.DataFrame(rows, columns=COLUMNS, dtype=object).assign(dataset=folder.name)
    content = csv_text(frame)
    write_whole(output / TABLE, content)
    write_whole(output / SUMS, sums_text({TABLE: content}))
    first = np.unique(found.clusters, return_index=True)[1][found.clusters]
    alone = np.bincount(found.clusters)[found.clusters] == 1
    split = [
        (photo.file, photo.label, photo.group or ("" if alone[row] else found.photos[first[row]].file), part)
        for row, (photo, part) in enumerate(zip(found.photos, found.split, strict=True))
    ]
    table = pd.DataFrame(split, columns=["file", "label", "group", "split"], dtype=object)
    write_whole(output / SPLIT, csv_text(table))
    return frame


def _notes(found: Audit) -> Iterator[str]:
    """The findings in sentences."""
    duplicates, labels, series = (found.of_kind(kind) for kind in (DUPLICATE, LABEL, SERIES))
    accuracies = [f"{space.name} ({space.accuracy:.0f} %)" for space in found.spaces if space.accuracy >= 0]
    how = f"{', '.join(accuracies) or ', '.join(space.name for space in found.spaces)}"
    which = "at its layer of the best leave-one-out k-NN" if accuracies else "at its last layer"
    yield f"{counted(len(found.photos), 'images')}, by each backbone {which}: {how}."
    across = sum("," in finding.split for finding in duplicates)
    where = f", {across} of them across splits" if across else ""
    yield f"Duplicates: {counted(len(duplicates), 'images')} like another one{where}."
    if np.isnan(found.planted):
        yield "Labels: none could be judged; that needs two classes of at least four images."
    else:
        yield (
            f"Labels: {len(labels)} contradicted by neighbours. If {100 * WRONG:.0f} % of all labels were "
            f"made wrong on purpose, {100 * found.planted:.0f} % of these would be listed."
        )
    if any(photo.group for photo in found.photos):
        yield "Series: not looked for, since images have groups."
    elif series:
        count = sum(int(finding.score) for finding in series)
        yield (
            f"Series: {count:,} images are in {len(series)} runs of similar files with consecutive names, "
            f"the longest from {series[0].file} to {series[0].other}. Images of one series are not "
            f"independent: --groups {SPLIT} keeps each series together."
        )
    else:
        yield "Series: none; files with consecutive names are no more alike than by chance."
    yield (
        f"{SPLIT}, in the output folder, suggests groups (--groups) and a split (--labels) that keep "
        "related images together."
    )
