"""The layer of a backbone that serves a kind of search best, and how that is known."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from layerboard.benchmark.commands.recommend import RecommendRequest, recommended
from layerboard.leaderboards.published.literature import SOURCES, all_published
from layerboard.leaderboards.writers.build import tables_folder
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec

OF_IMAGES = ("instances", "retrieval", "knn")  # tasks like a search for whole images, the most like it first
OF_REGIONS = ("spair", "davis", "segment")
PACKAGED = "mini"  # suite whose results come with the package


class KnownLayer(NamedTuple):
    """A layer, its pooling, and why these."""

    layer: str  # number of a block
    pooling: str
    why: str

    @property
    def vectors(self) -> str:
        """Layer and pooling, as the audit names them."""
        return f"{self.layer} {self.pooling}"


def known_layer(spec: BackboneSpec, tasks: Sequence[str], output: Path) -> KnownLayer:
    """The recommended layer of a backbone for the first of some tasks of which it is known.

    It is that of a run in ``output``, else of the packaged results, else of the literature, else the last.
    """
    usual, name = spec.vectors or ("cls" if spec.has_cls else "mean"), spec.entry
    for known in chain(_of_run(name, tasks, output), _packaged(name, tasks), _published(name, tasks)):
        return known._replace(pooling=known.pooling or usual)
    named = " or ".join(tasks)
    why = f"its last, since no result of {named} is known of it; `layerboard run` finds a better one"
    return KnownLayer(str(spec.depth), usual, why)


def _of_run(name: str, tasks: Sequence[str], output: Path) -> Iterator[KnownLayer]:
    """What is recommended by the run of a folder, by task; nothing where it has no results."""
    for task in tasks:
        try:
            advice = recommended(RecommendRequest(task, backbones=name, output=output))
        except InputError:
            continue
        column, row = next(iter(advice.picks[0].rows.items()))
        if row["tap"] == "block":
            why = f"recommended for {column.heading} in {output}"
            yield KnownLayer(str(row["layer"]), _vectors(row["pooling"]), why)


def _packaged(name: str, tasks: Sequence[str]) -> Iterator[KnownLayer]:
    """The best layer by the packaged results, by task."""
    rows = pd.read_csv(tables_folder() / f"{PACKAGED}.csv", keep_default_na=False, low_memory=False)
    rows = rows[(rows["backbone"] == name) & (rows["tap"] == "block") & (rows["best"].map(str) == "True")]
    for task in tasks:
        for row in rows[rows["task"] == task].to_dict("records"):
            why = f"the best of {task} on {row['dataset']} in the packaged results of the suite {PACKAGED}"
            yield KnownLayer(str(row["layer"]), _vectors(row["pooling"]), why)


def _published(name: str, tasks: Sequence[str]) -> Iterator[KnownLayer]:
    """The best layer of the literature, by task: that of the highest score."""
    every = [row for row in all_published() if (row.backbone, row.tap, row.rule) == (name, "block", "best")]
    for task in tasks:
        rows = [row for row in every if row.task == task and row.layer is not None]
        for best in sorted(rows, key=lambda row: -row.value):
            source = SOURCES.get(best.source, best.source)
            why = f"the best of {task} on {best.dataset} in the literature ({source})"
            yield KnownLayer(str(best.layer), _vectors(best.pooling), why)


def _vectors(pooling: str) -> str:
    return pooling if pooling in ("cls", "mean", "patchwise") else ""
