"""Agreement of clusters with classes, for exported features or given assignments."""

from pathlib import Path

import numpy as np

from layerboard.benchmark.exported.arrays import Array, as_features, as_labels, read_archive
from layerboard.benchmark.exported.report import Grid, Json, ScoreReport, one_of
from layerboard.tasks.clustering.kmeans import kmeans_starts
from layerboard.tasks.datasets.files import describe
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.partitions import AGREEMENTS
from layerboard.zoo.errors import InputError

SEEDS = 2**32  # number of seeds of the random generator of k-means


def score_clustering(
    features: Path | None, assignments: Path | None, k: int | None, seed: int | None, n_init: int | None
) -> ScoreReport:
    """Purity, NMI and ARI in percent of a partition; raises InputError.

    The partition is that of k-means on an archive with features [n dim] and labels [n] (whole numbers or
    text), or a given one in an archive with clusters [n] and labels [n].
    """
    name, path = one_of(features=features, assignments=assignments)
    parameters: dict[str, Json] = {name: str(path)}
    if name == "features":
        arrays = read_archive(path, ("features", "labels"))
        values = as_features(arrays, "features", path)
        labels = as_labels(arrays, "labels", path, len(values), text=True)
        numbers = _numbers(labels, k, seed, n_init)
        parameters |= numbers
        clusters: Array = kmeans_starts(values, **numbers)[0]
    else:
        arrays = read_archive(path, ("clusters", "labels"))
        labels = as_labels(arrays, "labels", path, arrays["labels"].size, text=True)
        if not len(labels):
            raise InputError(f"expected at least one item in {path}, found none")
        clusters = as_labels(arrays, "clusters", path, len(labels), text=True)
    numbered = (np.unique(names, return_inverse=True)[1] for names in (labels, clusters))
    classes, groups = (numbers.astype(np.int64) for numbers in numbered)
    scores = {name: 100.0 * measure(classes, groups) for name, measure in AGREEMENTS.items()}
    return ScoreReport(
        parameters=parameters,
        n=len(classes),
        unit="items",
        scores=scores,
        grid=Grid("items", tuple(scores), {f"{len(classes):,}": tuple(scores.values())}),
        details={"classes": int(classes.max()) + 1, "clusters": int(groups.max()) + 1},
    )


def _numbers(labels: Array, k: int | None, seed: int | None, n_init: int | None) -> dict[str, int]:
    """Parameters of k-means; for None as many clusters as classes, and the protocol's seed and restarts."""
    k = len(np.unique(labels)) if k is None else k
    if not 1 <= k <= len(labels):
        raise InputError(f"expected --k of 1 to {len(labels):,}, the number of items, found {k}")
    rule = config_of(STANDARD, "cluster-image")
    seed, n_init = rule.seed if seed is None else seed, rule.n_init if n_init is None else n_init
    if not 0 <= seed < SEEDS:
        raise InputError(f"expected --seed of 0 to {SEEDS - 1:,}, found {describe(seed)}")
    return {"k": k, "seed": seed, "n_init": n_init}
