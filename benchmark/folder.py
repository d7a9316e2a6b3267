"""A folder of images as backbones see it: vectors of every layer from the cache, computed where missing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs.fingerprints import JobMaker
from layerboard.benchmark.jobs.job import Job, Setup
from layerboard.benchmark.jobs.passes import BackboneCache, run_job
from layerboard.benchmark.jobs.prepare import PlannedRun, identified, plan_of
from layerboard.benchmark.jobs.scores import readers_of
from layerboard.benchmark.passes.one_pass import PassResult
from layerboard.benchmark.passes.shards import Shards, VectorReader
from layerboard.benchmark.plan.plan import Pass
from layerboard.benchmark.vectors import vector_jobs
from layerboard.leaderboards.records.record import read_records
from layerboard.tasks.audit.audit import Photo
from layerboard.tasks.datasets.base import Data, Sample, images_of
from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.classes import Classification, Unlabelled
from layerboard.tasks.datasets.folder import NO_LABELS
from layerboard.tasks.datasets.instances import Instances
from layerboard.tasks.datasets.reading.archives import unpacked
from layerboard.tasks.datasets.reading.labels import AS_IT_IS, Labelling
from layerboard.tasks.datasets.reading.tree import read_tree
from layerboard.tasks.framework.base import Source
from layerboard.tasks.framework.identity import own_name
from layerboard.tasks.framework.sources import CHUNK, IMAGES, consecutive_groups
from layerboard.tasks.metrics.arrays import Mask
from layerboard.tasks.metrics.neighbours import Vectors
from layerboard.zoo.errors import InputError, UnreadableImageError, counted, some
from layerboard.zoo.spec import FLOORS, Layer

VIEW = IMAGES["standard"].view  # in which whole images are compared
# whose stored vectors are used, if it uses all images
TASK: Mapping[type[Data], str] = {Classification: "knn", Unlabelled: "cka", Instances: "instances"}


class OwnImages(NamedTuple):
    """All images of one folder, and what is known of them."""

    request: Request  # that plans a run on all of them
    data: Data  # all of them
    said: Data  # the images with labels, groups and splits, or `data`
    remarks: tuple[str, ...]  # what is left out
    unlabelled: str = ""  # why there are no labels, if the folder looks as if it had some


class Folder(NamedTuple):
    """The readable images of a folder, and their stored vectors."""

    name: str  # name in records
    samples: dict[str, Sample]  # by their names, in the order of the vectors
    said: Data  # what is known of them
    photos: list[Photo]
    setups: Mapping[str, Setup]  # by name of the backbone
    readers: Mapping[str, Sequence[VectorReader]]  # of the vectors of each backbone
    shown: Mask  # of all images: whether it could be read
    remarks: tuple[str, ...]

    def layers(self, backbone: str) -> Iterator[tuple[str, Vectors]]:
        """Each layer and pooling of a backbone by name, and its vectors, if all of these are finite."""
        for layer in self.setups[backbone].layers:
            for pooling in self.readers[backbone][0].poolings():
                with suppress(InputError):
                    yield f"{layer} {pooling}", self.vectors(backbone, layer, pooling)

    def vectors(self, backbone: str, layer: Layer, pooling: str) -> Vectors:
        """Vectors of the readable images, [images dim]; raises InputError if one is not finite."""
        readers = self.readers[backbone]
        vectors = np.concatenate([reader.read(layer, pooling) for reader in readers])[self.shown]
        if not np.isfinite(vectors).all():
            raise InputError(f"{backbone}: the vectors {pooling} of layer {layer} are not finite")
        return vectors


def own_images(request: Request) -> OwnImages:
    """All images below the one folder of a request, or of another source of images.

    Labels, groups and splits are known if the folder, or the tables of the request, say them. Where folders
    are no classes, or some images are in none, the images have none. Raises InputError.
    """
    if len(request.images) != 1:
        raise InputError(f"expected one folder of images, found {len(request.images)}")
    location = unpacked(request.images[0], request.cache)
    labelling, reason = Labelling.of(request), ""
    request = replace(request, images=(location,))
    try:
        said = read_own(location, labelling)
    except InputError as error:
        if labelling != AS_IT_IS or not Path(location).is_dir():
            raise
        said, reason = None, str(error).partition(";")[0]
    if not Path(location).is_dir():
        assert said is not None
        return OwnImages(request, said, said, said.coverage.notes)
    tree = read_tree(Path(location))
    remarks = [*tree.notes, *tree.remarks]
    if said is not None and (unknown := [note for note in said.coverage.notes if note not in tree.notes]):
        remarks.append(f"of what is known: {'; '.join(unknown)}")
    if said is not None and len({sample.key for sample in images_of(said)}) == len(tree.images):
        return OwnImages(request, said, said, tuple(remarks))
    every = replace(request, labels=NO_LABELS, groups=None, target=None)
    data = read_own(location, Labelling.of(every))
    return OwnImages(every, data, data if said is None else said, tuple(remarks), reason)


def read_vectors(images: OwnImages, report: Reporter) -> Folder:
    """The readable images of a folder, and vectors of the backbones that its request names.

    Every image is shown once; missing vectors are computed and stored in the cache, those of a run on the
    same images are used. Raises InputError if the request is wrong, or if no image can be read.
    """
    task = TASK.get(type(images.data))
    run = plan_of(replace(images.request, floor=False, tasks=(task,) if task else ()), report, writes=False)
    setups, failures = identified(run)
    if failures:
        raise InputError(str(failures[0]))
    every = {sample.key: sample for sample in images_of(images.data)}
    readers: dict[str, Sequence[VectorReader]] = {}
    sources: Sequence[Source] = ()
    for setup in setups:
        sources, readers[setup.spec.name] = _read(run, setup, images.data, report)
    samples = [sample for source in sources for sample in source.samples]
    shown = np.concatenate([reader.shown for reader in next(iter(readers.values()))])
    if not shown.any():
        raise UnreadableImageError(f"none of {counted(len(every), 'images')} could be read: {some(every)}")
    kept = {sample.key: sample for sample, there in zip(samples, shown, strict=True) if there}
    lost = [sample.key for sample, there in zip(samples, shown, strict=True) if not there]
    remarks = [left_out(lost)] if lost else []
    said = {file: Photo(file, *words) for file, *words in images.said.described()}
    photos = [said.get(key, Photo(key)) for key in kept]
    named = {setup.spec.name: setup for setup in setups}
    facts = kept, images.said, photos
    return Folder(own_name(images.data), *facts, named, readers, shown, (*images.remarks, *remarks))


def _read(
    run: PlannedRun, setup: Setup, data: Data, report: Reporter
) -> tuple[Sequence[Source], Sequence[VectorReader]]:
    """Show a backbone what it has not been shown; the sources of all images, and readers of their vectors."""
    tasks = [task for task in run.plan.tasks.every if task.vector_sources]
    images = [*images_of(data)]
    if tasks and sum(len(source.samples) for source in tasks[0].vector_sources) == len(images):
        jobs = vector_jobs(tasks[:1], setup)  # the vectors of a run on the same images
        _show(setup, jobs.passes, report)
        return tasks[0].vector_sources, [*readers_of(jobs.scores[0]).values()]
    groups = consecutive_groups(images, CHUNK)
    source, maker = Source(f"{own_name(data)}/folder", groups, VIEW, skip_unreadable=True), JobMaker(setup)
    _show(setup, [maker.pass_job(Pass(source, tuple(run.plan.tasks.every[:1]), ()))], report)
    return [source], [VectorReader(source, Shards(maker.stored(source).folder, source.shards))]


def _show(setup: Setup, passes: Iterable[Job], report: Reporter) -> None:
    """Run the missing passes of a backbone; raises InputError if one fails."""
    cache = BackboneCache(setup)
    passed = PassResult.joined(run_job(job, cache, report) for job in passes)
    if passed.failures:
        raise InputError(str(passed.failures[0]))


def sentences(remarks: Iterable[str]) -> list[str]:
    """Remarks on a folder, which are phrases, as sentences."""
    return [f"{remark[:1].upper()}{remark[1:]}." for remark in remarks]


def left_out(lost: Sequence[str]) -> str:
    """The names of images that could not be read, in a phrase."""
    return f"{counted(len(lost), 'images')} could not be read, and the others were compared: {some(lost)}"


def measured_backbones(output: Path, dataset: str) -> tuple[str, ...]:
    """Backbones with records of a dataset in a folder, without floors; none if there is no such folder."""
    folder = output / "records"
    records = read_records([folder]) if any(folder.rglob("*.parquet")) else pd.DataFrame()
    if len(records):
        records = records[(records["dataset"] == dataset) & ~records["family"].isin(FLOORS)]
    return () if records.empty else tuple(dict.fromkeys(records["backbone"]))
