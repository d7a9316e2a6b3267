"""Revisited Oxford and Paris: ``<folder>/gnd_<folder>.pkl`` and ``<folder>/jpg/<name>.jpg``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Count, Coverage, Data, DatasetEntry, FileSample
from layerboard.tasks.datasets.reading.files import file_paths, require_directory, require_inside
from layerboard.tasks.datasets.reading.safe_pickle import restricted_load
from layerboard.zoo.errors import InputError, shortened
from layerboard.zoo.view.geometry import Box

RELEVANCE = ("easy", "hard", "junk")  # the index lists of a query


@dataclass(frozen=True, slots=True)
class Retrieval(Data):
    """A revisited retrieval dataset."""

    name: str
    database: tuple[FileSample, ...]  # images that are ranked, in ground-truth order
    queries: tuple[FileSample, ...]
    # for each query, database indices of easy positives, hard positives and ignored images, int64
    easy: tuple[NDArray[np.int64], ...]
    hard: tuple[NDArray[np.int64], ...]
    junk: tuple[NDArray[np.int64], ...]
    coverage: Coverage
    firsts = ("queries", *RELEVANCE)  # the database is never cut, since it determines the ranking
    items = "queries"


@dataclass(frozen=True, slots=True)
class RevisitedEntry(DatasetEntry[Retrieval]):
    """A dataset in the layout of revisited Oxford and Paris, with official counts."""

    roles = ("retrieval",)

    name: str
    folder: str
    database: int
    queries: int

    @property
    def layout(self) -> str:
        return f"{self.folder}/gnd_{self.folder}.pkl and {self.folder}/jpg/*.jpg"

    def read(self, data: Path) -> Retrieval:
        """The existing images; missing ones are also removed from the index lists and from the queries."""
        root = self.root(data)
        path = root / f"gnd_{self.folder}.pkl"
        database, queries = read_ground_truth(path)
        require_directory(root / "jpg", f"the images of {self.name}")
        images = {path.stem: str(path) for path in file_paths(root / "jpg", ".jpg")}
        present = np.array([name in images for name in database], dtype=bool)
        asked = [query for query in queries if query.name in images]
        if not present.any() or not asked:
            raise InputError(
                f"expected the database and query images of the ground truth in {root / 'jpg'}, found "
                f"{present.sum():,} of {len(database):,} and {len(asked)} of {len(queries)}; "
                "unpack the images there, without folders"
            )
        rank = np.where(present, np.cumsum(present) - 1, -1)
        moved = ([rank[query.relevance[name]] for query in asked] for name in RELEVANCE)
        easy, hard, junk = (tuple(indices[indices >= 0] for indices in lists) for lists in moved)
        counts = (
            Count("database images", int(present.sum()), self.database),
            Count("queries", len(asked), self.queries),
        )
        ranked = (FileSample(name, images[name]) for name in database if name in images)
        asking = (FileSample(f"query/{query.name}", images[query.name], query.box) for query in asked)
        return Retrieval(self.name, tuple(ranked), tuple(asking), easy, hard, junk, Coverage(counts))


ROXFORD5K = RevisitedEntry("roxford5k", "roxford5k", database=4993, queries=70)
RPARIS6K = RevisitedEntry("rparis6k", "rparis6k", database=6322, queries=70)


class Query(NamedTuple):
    """A query of the ground truth: its image, its box, and the database indices of easy, hard and junk."""

    name: str
    box: Box
    relevance: Mapping[str, NDArray[np.int64]]


def read_ground_truth(path: Path) -> tuple[list[str], list[Query]]:
    """Database names and queries of a ground-truth pickle, checked; raises InputError."""
    content = restricted_load(path)
    if not isinstance(content, dict) or not {"imlist", "qimlist", "gnd"} <= set(content):
        raise InputError(
            f"expected a dictionary with imlist, qimlist and gnd in {path}, found another object"
        )
    database = _names(content["imlist"], "imlist", path)
    names = _names(content["qimlist"], "qimlist", path)
    truths = content["gnd"]
    if not isinstance(truths, Sequence) or len(truths) != len(names):
        raise InputError(f"expected one entry of gnd for each of the {len(names)} queries in {path}")
    queries = []
    for name, truth in zip(names, truths, strict=True):
        where = f"query {name} of {path}"
        if not isinstance(truth, dict) or not {"bbx", *RELEVANCE} <= set(truth):
            raise InputError(f"expected bbx, easy, hard and junk in {where}, found {shortened(truth)}")
        lists = {field: _indices(truth[field], len(database), f"{field} of {where}") for field in RELEVANCE}
        queries.append(Query(name, _box(truth["bbx"], where), lists))
    return database, queries


def _names(value: object, field: str, path: Path) -> list[str]:
    if not isinstance(value, Sequence) or not value or not all(isinstance(name, str) for name in value):
        raise InputError(f"expected a list of image names as {field} in {path}, found {shortened(value)}")
    if repeated := len(value) - len(set(value)):
        raise InputError(f"expected different image names as {field} in {path}, found {repeated} repeated")
    return [require_inside(name, f"{field} of {path}") for name in value]


def _box(value: object, where: str) -> Box:
    try:
        left, top, right, bottom = (float(number) for number in np.asarray(value).ravel())
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected four numbers as bbx (x1 y1 x2 y2) in {where}, found {shortened(value)}"
        ) from error
    if not (left < right and top < bottom):
        raise InputError(f"expected bbx (x1 y1 x2 y2) with x1 < x2 and y1 < y2 in {where}, found {value}")
    return left, top, right, bottom


def _indices(value: object, size: int, where: str) -> NDArray[np.int64]:
    try:
        indices = np.asarray(value).ravel()
    except ValueError as error:
        raise InputError(f"expected a list of indices as {where}, found {shortened(value)}") from error
    if not indices.size:
        return np.empty(0, np.int64)
    if not np.issubdtype(indices.dtype, np.integer):
        raise InputError(f"expected integer indices as {where}, found {shortened(value)}")
    outside = indices[(indices < 0) | (indices >= size)]
    if outside.size:
        raise InputError(f"expected indices below {size:,} (the database) as {where}, found {outside[0]}")
    return indices.astype(np.int64)
