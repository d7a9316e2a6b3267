"""Instance retrieval on revisited Oxford and Paris.

Source: Radenović et al., CVPR 2018 (splits, junk, trapezoid AP).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.datasets.revisitop import Retrieval
from layerboard.tasks.framework.base import Device, Items, Outcome, Score, Source, Statistic, digest
from layerboard.tasks.framework.checks import unusable
from layerboard.tasks.framework.examples import Predicted, by_key, drawn_indices
from layerboard.tasks.framework.sets import members_of
from layerboard.tasks.framework.sources import consecutive_groups
from layerboard.tasks.framework.task import JointVectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.retrieval.ranking import Difficulty, cosine_similarities, rank, revisited
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import FitLongSide, Letterbox, ThumbnailCrop, View

QUERIES = 12  # number of queries in the examples
RANKED = 4  # first images kept of each ranking, without the ignored ones
CHUNK_OF_PHOTOS = 256  # images whose vectors are stored together

DIFFICULTIES: tuple[Difficulty, ...] = ("medium", "easy", "hard")


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """Settings of instance retrieval."""

    view: View  # view of database and queries
    crop_queries: bool  # whether queries are cropped to their box first, as in the official protocol


@dataclass(frozen=True, eq=False)
class RetrievalTask(JointVectorTask):
    """Retrieval of the database images that show the landmark of a query."""

    data: Retrieval
    config: RetrievalConfig
    configs: ClassVar = {
        "standard": RetrievalConfig(view=FitLongSide(long=224), crop_queries=True),
        "paper": RetrievalConfig(view=ThumbnailCrop(long=224, crop=224), crop_queries=False),
        "dinov3": RetrievalConfig(view=Letterbox(side=224), crop_queries=False),
    }
    keeps_examples = True
    scorer = "retrieval"
    split = "database, queries"

    @cached_property
    def vector_sources(self) -> tuple[Source, ...]:
        queries = self.data.queries
        if not self.config.crop_queries:
            queries = tuple(replace(query, box=None) for query in queries)
        return tuple(
            Source(f"{self.data.name}/{name}", consecutive_groups(part, CHUNK_OF_PHOTOS), self.config.view)
            for name, part in (("database", self.data.database), ("queries", queries))
        )

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """Sources that a transform is fitted on: the database, which is known before any query."""
        return self.vector_sources[:1]

    @cached_property
    def fingerprint(self) -> str:
        data = self.data
        return digest("retrieval", self.config, *data.easy, "hard", *data.hard, "junk", *data.junk)

    @property
    def products(self) -> int:
        return len(self.data.database) * len(self.data.queries)

    def score_together(
        self, vectors: Mapping[Layer, Vectors], layers: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """mAP and mP@1, 5, 10 for the three difficulties, in percent, by the mean of the members' cosines."""
        both = {member: self._both(each) for member, each in vectors.items()}
        reasons = {
            member: unusable(database) or unusable(queries, constant=False)
            for member, (database, queries) in both.items()
        }
        outcomes = {each: Outcome((), empty=reasons[each.members[0]]) for each in layers}
        usable = [each for each in layers if not all(reasons[member] for member in each.members)]
        # there are few images: all cosines of all members are in memory
        cosines = {member: cosine_similarities(*both[member]) for member in members_of(usable)}
        for each in usable:
            outcomes[each] = self.ranked(np.mean([cosines[member] for member in each.members], axis=0))
        return [outcomes[each] for each in layers]

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """Vectors of all database images and queries, in the order of the ground truth."""
        return dict(zip(("database", "queries"), self._both(vectors), strict=True))

    def _both(self, vectors: Vectors) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Vectors of the database and of the queries."""
        database, queries = (vectors[source.name] for source in self.vector_sources)
        return database, queries

    def ranked(self, similarity: Floats) -> Outcome:
        """Scores from similarities [database queries]."""
        ranks = rank(similarity)
        scores: list[Score] = []
        values: dict[str, Floats] = {}
        for difficulty in DIFFICULTIES:
            measured = revisited(ranks, self.data.easy, self.data.hard, self.data.junk, difficulty)
            for name, per_query in measured.items():
                metric = f"{name} {difficulty}"
                values[metric] = 100.0 * per_query
                counted = per_query[~np.isnan(per_query)]
                if len(counted):
                    scores.append(Score(metric, 100.0 * float(counted.mean()), len(counted), "queries"))
        if not scores:
            return Outcome((), empty="no query has a positive image")
        keys = tuple(sample.key for sample in self.data.queries)
        statistics = {metric: Statistic(metric) for metric in values}
        items = Items("queries", keys, self._landmarks, ("",) * len(keys), values, statistics)
        return Outcome(tuple(scores), items, predicted=self._predicted(ranks, values["mAP medium"]))

    @cached_property
    def _landmarks(self) -> tuple[str, ...]:
        """Landmark of each query: the name of the first query with the same positives.

        Queries of one landmark share its easy and hard images, so they are sampled together.
        """
        first: dict[frozenset[int], str] = {}
        names = []
        for query, easy, hard in zip(self.data.queries, self.data.easy, self.data.hard, strict=True):
            positives = frozenset([*map(int, easy), *map(int, hard)])
            names.append(first.setdefault(positives, query.key) if positives else query.key)
        return tuple(names)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Indices of the examples among the queries with a positive image."""
        data = self.data
        sought = [row for row in range(len(data.queries)) if len(data.easy[row]) or len(data.hard[row])]
        keys = [data.queries[row].key for row in sought]
        return tuple(sought[number] for number in drawn_indices(keys, QUERIES))

    def _predicted(self, ranks: Integers, precision: Floats) -> Predicted:
        """The first images of the examples' rankings, from ranks [database queries], best first.

        ``precision`` is the average precision (Medium) of each query in percent, [queries].
        """
        shape = (len(self.places), RANKED)
        keys, kinds = np.full(shape, "", object), np.full(shape, "", "<U5")
        for number, row in enumerate(self.places):
            ranked = ranks[~np.isin(ranks[:, row], self.data.junk[row]), row][:RANKED]
            keys[number, : len(ranked)] = [self.data.database[image].key for image in ranked]
            hard, easy = (np.isin(ranked, images[row]) for images in (self.data.hard, self.data.easy))
            kinds[number, : len(ranked)] = np.where(easy, "easy", np.where(hard, "hard", "wrong"))
        chosen = precision[list(self.places)].astype(np.float32)
        return {"neighbour": keys.astype(str), "kind": kinds, "average_precision": chosen}

    def facts(self) -> Predicted:
        data = self.data
        positives = [len({*data.easy[row], *data.hard[row]}) for row in self.places]
        return {
            "query": np.asarray([data.queries[row].key for row in self.places], str),
            "positives": np.asarray(positives, np.int64),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        queries = self.vector_sources[1].samples
        ranks = [layer["neighbour"][:, rank] for rank in range(RANKED) for layer in predicted]
        near = [str(key) for names in ranks for key in names]
        return by_key(queries, [queries[row].key for row in self.places]) | by_key(self.data.database, near)
