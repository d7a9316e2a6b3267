"""Archives of arrays as the data of a role: what a task is given in a run, and the features of its images."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerboard.benchmark.exported.arrays import Array, Arrays, Floats, as_floats, read_archive
from layerboard.tasks.datasets.base import Count, Coverage, FileSample
from layerboard.tasks.datasets.classes import Classification, ClassImages
from layerboard.tasks.datasets.instances import ROLES, Instance, Instances
from layerboard.tasks.datasets.integrity import require, require_no
from layerboard.tasks.datasets.revisitop import RELEVANCE, Retrieval, read_ground_truth
from layerboard.tasks.datasets.targets import ImageLabels, ImageNumbers, Targets
from layerboard.tasks.framework.sources import IMAGES, ProbedClasses, probed_classes
from layerboard.tasks.framework.task import VectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.tasks.metrics.arrays import Mask
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING, group_numbers, stratified_folds
from layerboard.zoo.errors import InputError, some

EVERY = "there are no test items: every train item is tested once, by others that are not of its group"

Samples = tuple[FileSample, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Archive:
    """The contents of an archive, for a task on vectors: items stand for the images of a run."""

    path: Path
    data: Any  # of the role of the task; no image is ever opened
    features: Mapping[str, Floats]  # [dim] of each item, by the key of its sample

    def vectors(self, task: VectorTask) -> Vectors:
        """The features of each source of a task, as a run stores them: [items dim] float32."""
        return {
            source.name: np.stack([self.features[sample.key] for sample in source.samples]).astype(np.float32)
            for source in task.vector_sources
        }


def _items(part: str, features: Floats) -> dict[str, Floats]:
    """Features by key; keys are sorted as the rows are, as those of the images of a dataset."""
    return {f"{part} {row:08d}": vector for row, vector in enumerate(features)}


def _samples(features: Mapping[str, Floats]) -> Samples:
    return tuple(FileSample(key, "") for key in features)


def read_archive_classes(path: Path) -> Archive:
    """Items with classes: train, train_labels, test and test_labels, or every item tested by the others.

    Without test items, an archive may have groups, whose items do not test each other. Labels are any whole
    numbers. Raises InputError.
    """
    tested, wanted = ("test", "test_labels"), ("train", "train_labels")
    arrays = read_archive(path, wanted, (*tested, "groups"))
    if {*tested} & {*arrays}:
        if "groups" in arrays:
            raise InputError(
                f"expected no groups in {path}, since it has test items: groups say which of the train items "
                "are not tested by each other if no others are; leave out groups, or test and test_labels"
            )
        return _classified(read_archive(path, (*wanted, *tested)), *wanted)
    return _classified(arrays, *wanted, remarks=(EVERY,))


def read_clustered(path: Path) -> Archive:
    """Items of an archive with features and labels, whole numbers or text; raises InputError."""
    return _classified(read_archive(path, ("features", "labels")), "features", "labels", text=True)


def _classified(
    arrays: Arrays, items: str, labels: str, *, text: bool = False, remarks: tuple[str, ...] = ()
) -> Archive:
    """Items with classes, which are numbered in the order of their labels."""
    test, path = "test" if "test" in arrays else items, arrays.path
    train, asking = arrays.feature_pair(items, test)
    known, there = arrays.classes(labels, len(train), text=text, beside="test_labels")
    notes = missing_note("items" if test == items else "train items", there)
    groups = _numbered(arrays.texts("groups", len(train))[there]) if "groups" in arrays else ()
    known, features = known[there], dict(compress(_items("train", train).items(), there))
    names, val = np.unique(known), None
    classes = tuple(map(str, names.tolist()))
    bank = ClassImages(_samples(features), np.searchsorted(names, known), classes, groups)
    if test == "test":
        asked, there = arrays.classes("test_labels", len(asking), beside=labels)
        notes += missing_note("test items", there)
        asked, tested = asked[there], dict(compress(_items("test", asking).items(), there))
        strange = ~np.isin(asked, names)
        # no prediction is beyond the classes
        truth = np.where(strange, len(names), np.searchsorted(names, asked))
        val, features = ClassImages(_samples(tested), truth, classes), features | tested
        note = f"{strange.sum():,} of {len(asked):,} test items have a class that no train item has"
        notes += (note,) if strange.any() else ()
    counts = Coverage((Count("train items", len(known)), Count("classes", len(classes))))
    images = Classification(path.stem, bank, val, replace(counts, notes=notes, remarks=remarks))
    data: ProbedClasses = probed_classes(images, np.arange(len(known)), counts, IMAGES["standard"])
    return Archive(path, data, features)


def missing_note(what: str, there: Mask) -> tuple[str, ...]:
    """A note on the items (``what``) that have no class."""
    left_out = f"{(~there).sum():,} of {len(there):,} {what} have no class and are left out"
    return () if there.all() else (left_out,)


def _numbered(groups: Array) -> tuple[str, ...]:
    """Names of groups that sort as the groups do, whole numbers or text; "" for none."""
    numbers = np.unique(groups, return_inverse=True)[1].tolist()
    return tuple(
        "" if group == "" else f"{number:08d}" for number, group in zip(numbers, groups.tolist(), strict=True)
    )


def read_instances(path: Path) -> Archive:
    """Items that each show a thing, from an archive with features [n dim] and groups [n]; raises InputError.

    Groups, whole numbers or text, are the things. It may have roles [n]: query, database, distractor, or
    empty for an item that is both query and database, as all are without roles. It may have series [n]: items
    of the same series are not retrieved for each other; empty means no series.
    """
    arrays = read_archive(path, ("features", "groups"), optional=("roles", "series"))
    values = arrays.features("features")
    for name in ("roles", "series"):
        arrays.setdefault(name, np.full(len(values), ""))
    columns = [arrays.texts(name, len(values)).astype(str).tolist() for name in ("groups", "roles", "series")]
    require_no(sorted({*columns[1]} - {*ROLES, ""}), f"{', '.join(ROLES)} or nothing as roles of {path}")
    features = _items("item", values)
    images = tuple(map(Instance.of_role, _samples(features), *columns))
    counts = Count("items", len(images)), Count("groups", len({image.thing for image in images} - {""}))
    return Archive(path, Instances(path.stem, images, Coverage(counts)), features)


def read_retrieval(path: Path, ground_truth: Path) -> Archive:
    """Database and queries of an archive, in the order of the ground truth; raises InputError."""
    names = "database", "queries"
    parts = dict(zip(names, read_archive(path, names).feature_pair(*names), strict=True))
    data = read_truth(ground_truth, path, len(parts["database"]), len(parts["queries"]))
    return Archive(path, data, {key: row for name in names for key, row in _items(name, parts[name]).items()})


def read_truth(ground_truth: Path, path: Path, images: int, queries: int) -> Retrieval:
    """What a pickle of revisited Oxford or Paris says about the images of a file; raises InputError."""
    stated = read_ground_truth(ground_truth)
    names, asked = stated.imlist, stated.gnd
    require(
        (images, queries) == (len(names), len(asked)),
        f"{len(names):,} database images and {len(asked):,} queries in {path} as in {ground_truth}",
        f"{images:,} and {queries:,}",
        "keep the order of imlist and qimlist",
    )
    database, asking = (
        tuple(FileSample(f"{part} {row:08d}", "") for row in range(count))
        for part, count in (("database", images), ("queries", queries))
    )
    easy, hard, junk = (tuple(query.indices(kind) for query in asked) for kind in RELEVANCE)
    counts = Count("database images", images), Count("queries", queries)
    return Retrieval(ground_truth.stem, database, asking, easy, hard, junk, Coverage(counts))


def read_targets(kind: type[Targets], path: Path) -> Archive:
    """Items with several values each: an archive with features [n dim] and targets [n] or [n targets].

    It may have names [targets]; folds [n], whole numbers from 0, or -1 for items that are never tested; and
    groups [n], text or whole numbers, which stay within a fold. Without folds, there are five, drawn as in a
    run. Labels (`ImageLabels`) are 1 for those that an item has, else 0. Raises InputError.
    """
    arrays = read_archive(path, ("features", "targets"), optional=("names", "folds", "groups"))
    features = _items("item", arrays.features("features"))
    values = _values(kind, arrays["targets"], len(features), path)
    names = tuple(f"target {number}" for number in range(1, values.shape[1] + 1))
    if "names" in arrays:
        names = tuple(arrays.texts("names", len(names)).astype(str).tolist())
    groups = tuple(features)
    if "groups" in arrays:
        texts = arrays.texts("groups", len(features)).astype(str).tolist()
        groups = tuple(text or key for text, key in zip(texts, features, strict=True))
    fold = stratified_folds(np.zeros(len(features), np.int64), group_numbers(groups))
    if "folds" in arrays:
        fold = arrays.labels("folds", len(features)).astype(np.int64)
        parts = Counter(group for group, _ in {*zip(groups, fold.tolist(), strict=True)})
        divided = sorted(group for group, number in parts.items() if number > 1)
        wanted = f"the items of every group of {path} in one of its folds"
        remedy = "correct the folds, or leave them out to have them drawn"
        require(not divided, wanted, f"{some(divided)} in several", remedy)
    folds = Count("folds", len({*fold.tolist()} - {ALWAYS_TRAINING}))
    coverage = Coverage((Count("items", len(features)), folds))
    return Archive(path, kind(path.stem, _samples(features), values, names, fold, groups, coverage), features)


def _values(kind: type[Targets], targets: Array, count: int, path: Path) -> NDArray[np.float64]:
    """Finite targets, [items targets] float64; raises InputError."""
    targets = targets.astype(np.int64) if targets.dtype == np.bool_ else targets
    targets = targets[:, None] if targets.ndim == 1 else targets
    values = as_floats(targets, f"targets of {path}", "[n targets]", wide=True).astype(np.float64)
    rows = f"a row of targets for each of {count:,} items of {path}"
    require(len(values) == count, rows, f"{len(values):,}")
    largest = np.abs(values).max(axis=0)
    tiny = (largest > 0) & (largest < np.finfo(np.float32).tiny)
    require(not tiny.any(), f"targets within float32 in {path}", "smaller ones", "multiply them")
    if kind is ImageLabels:
        others = values[~np.isin(values, (0, 1))]
        require_no([f"{each:g}" for each in others[:1]], f"targets of 0 and 1 in {path}")
    return values


READERS: Mapping[str, Callable[[Path], Archive]] = {  # by role, without the one that needs a ground truth
    "classification": read_archive_classes,
    "instances": read_instances,
    "numbers": partial(read_targets, ImageNumbers),
    "labels": partial(read_targets, ImageLabels),
}
