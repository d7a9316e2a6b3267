"""The layer of a backbone that serves a kind of search best, and how that is known."""

from collections.abc import Sequence
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


def known_layer(spec: BackboneSpec, tasks: Sequence[str], output: Path) -> KnownLayer:
    """The recommended layer of a backbone for the first of some tasks of which it is known.

    It is that of a run in ``output``, else of the packaged results, else of the literature, else the last.
    """
    usual = spec.vectors or ("cls" if spec.has_cls else "mean")
    for source in (_of_run, _packaged, _published):
        for task in tasks:
            if (known := source(spec.entry, task, output)) is not None:
                return known._replace(pooling=known.pooling or usual)
    named = " or ".join(tasks)
    why = f"its last, since no result of {named} is known of it; `layerboard run` finds a better one"
    return KnownLayer(str(spec.depth), usual, why)


def _of_run(name: str, task: str, output: Path) -> KnownLayer | None:
    try:
        advice = recommended(RecommendRequest(task, backbones=name, output=output))
    except InputError:
        return None
    ((column, row),) = list(advice.picks[0].rows.items())[:1]
    if row["tap"] != "block":
        return None
    return KnownLayer(
        str(row["layer"]), _vectors(row["pooling"]), f"recommended for {column.heading} in {output}"
    )


def _packaged(name: str, task: str, output: Path) -> KnownLayer | None:
    del output
    rows = pd.read_csv(tables_folder() / f"{PACKAGED}.csv", keep_default_na=False, low_memory=False)
    rows = rows[(rows["backbone"] == name) & (rows["task"] == task) & (rows["tap"] == "block")]
    rows = rows[rows["best"].map(str) == "True"]
    if rows.empty:
        return None
    row = rows.iloc[0]
    why = f"the best of {task} on {row['dataset']} in the packaged results of the suite {PACKAGED}"
    return KnownLayer(str(row["layer"]), _vectors(row["pooling"]), why)


def _published(name: str, task: str, output: Path) -> KnownLayer | None:
    del output
    rows = [row for row in all_published() if (row.backbone, row.task) == (name, task) and row.tap == "block"]
    if not (rows := [row for row in rows if row.layer is not None and row.rule == "best"]):
        return None
    best = max(rows, key=lambda row: row.value)
    why = f"the best of {task} on {best.dataset} in the literature ({SOURCES.get(best.source, best.source)})"
    return KnownLayer(str(best.layer), _vectors(best.pooling), why)


def _vectors(pooling: str) -> str:
    return pooling if pooling in ("cls", "mean", "patchwise") else ""
