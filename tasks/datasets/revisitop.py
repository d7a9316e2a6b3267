"""Revisited Oxford and Paris: ``<folder>/gnd_<folder>.pkl`` and ``<folder>/jpg/<name>.jpg``."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Count, Coverage, Data, DatasetEntry, FileSample, Needed
from layerboard.tasks.datasets.integrity import require, require_distinct, require_no
from layerboard.tasks.datasets.reading.files import file_paths, require_inside
from layerboard.tasks.datasets.reading.safe_pickle import restricted_load
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
    form = "{0.folder}/gnd_{0.folder}.pkl and {0.folder}/jpg/*.jpg"
    needed = (Needed("jpg/", "the images"),)

    name: str
    folder: str
    database: int
    queries: int

    def read(self, data: Path) -> Retrieval:
        """The existing images; missing ones are also removed from the index lists and from the queries."""
        root = self.root(data)
        path = root / f"gnd_{self.folder}.pkl"
        stated = read_ground_truth(path)
        database, queries = stated.imlist, [*zip(stated.qimlist, stated.gnd, strict=True)]
        images = {path.stem: str(path) for path in file_paths(root / "jpg", ".jpg")}
        present = np.array([name in images for name in database], dtype=bool)
        asked = [(name, truth) for name, truth in queries if name in images]
        listed = f"the database and query images of the ground truth in {root / 'jpg'}"
        numbers = f"{present.sum():,} of {len(database):,} and {len(asked)} of {len(queries)}"
        require(present.any() and asked, listed, numbers, "unpack the images there, without folders")
        rank = np.where(present, np.cumsum(present) - 1, -1)
        moved = ([rank[truth.indices(name)] for _, truth in asked] for name in RELEVANCE)
        easy, hard, junk = (tuple(indices[indices >= 0] for indices in lists) for lists in moved)
        counts = (
            Count("database images", int(present.sum()), self.database),
            Count("queries", len(asked), self.queries),
        )
        ranked = (FileSample(name, images[name]) for name in database if name in images)
        asking = (FileSample(f"query/{name}", images[name], truth.bbx) for name, truth in asked)
        return Retrieval(self.name, tuple(ranked), tuple(asking), easy, hard, junk, Coverage(counts))


ROXFORD5K = RevisitedEntry("roxford5k", "roxford5k", database=4993, queries=70)
RPARIS6K = RevisitedEntry("rparis6k", "rparis6k", database=6322, queries=70)


@dataclass(frozen=True, slots=True)
class _Truth:
    """What the file says of a query: its box, and the database indices of easy, hard and junk."""

    bbx: Box
    easy: list[int]
    hard: list[int]
    junk: list[int]

    def __post_init__(self) -> None:
        left, top, right, bottom = self.bbx
        require(left < right and top < bottom, "bbx (x1 y1 x2 y2) with x1 < x2 and y1 < y2", self.bbx)

    def indices(self, relevance: str) -> NDArray[np.int64]:
        """The database indices of one of `RELEVANCE`."""
        return np.array(getattr(self, relevance), np.int64)


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """The file: names of the database and of the queries, and the truth of each query."""

    imlist: list[str]
    qimlist: list[str]
    gnd: list[_Truth]

    def __post_init__(self) -> None:
        for field, names in (("imlist", self.imlist), ("qimlist", self.qimlist)):
            require(names, f"image names as {field}")
            require_distinct(names, f"different image names as {field}")
            for name in names:
                require_inside(name, field)
        one_each = f"one entry of gnd for each of the {len(self.qimlist)} queries"
        require(len(self.gnd) == len(self.qimlist), one_each, len(self.gnd))
        size = len(self.imlist)
        for query, truth in zip(self.qimlist, self.gnd, strict=True):
            for field in RELEVANCE:
                known = f"indices below {size:,} (the database) as {field} of query {query}"
                require_no([index for index in getattr(truth, field) if not 0 <= index < size], known)
            every = [index for field in RELEVANCE for index in {*getattr(truth, field)}]
            require_distinct(every, f"each image in one of {', '.join(RELEVANCE)} of query {query}")


def read_ground_truth(path: Path) -> GroundTruth:
    """The content of a ground-truth pickle, checked; raises InputError."""
    stated: GroundTruth = restricted_load(path, GroundTruth)
    return stated
