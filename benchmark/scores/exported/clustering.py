"""Agreement of clusters with classes, for exported features or finished assignments."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmark.scores.exported.arrays import Array, as_features, as_labels, read_archive
from benchmark.scores.exported.report import Grid, Json, ScoreReport
from tasks.datasets.files import describe
from tasks.metrics.clustering import AGREEMENTS, kmeans_starts
from tasks.protocols import STANDARD
from tasks.registry import config_of
from zoo.errors import InputError

SEEDS = 2**32  # how many seeds the random generator of k-means has


def score_features(
    features: Path, k: int | None = None, seed: int | None = None, n_init: int | None = None
) -> ScoreReport:
    """Purity, NMI and ARI in percent of a k-means partition of features as they are; raises InputError.

    The archive has features [n dim] and labels [n], whole numbers or text. Clusters are as many as there are
    classes if k is None; the seed and how many runs there are, the best of which counts, are the protocol's.
    """
    arrays = read_archive(features, ("features", "labels"))
    values = as_features(arrays["features"], f"features of {features}")
    labels = as_labels(arrays["labels"], f"labels of {features}", len(values), text=True)
    wanted = len(np.unique(labels)) if k is None else k
    if not 1 <= wanted <= len(values):
        raise InputError(f"expected --k of 1 to {len(values):,}, the number of items, found {wanted}")
    rule = config_of(STANDARD, "cluster-image")
    seed, n_init = rule.seed if seed is None else seed, rule.n_init if n_init is None else n_init
    if not 0 <= seed < SEEDS:
        raise InputError(f"expected --seed of 0 to {SEEDS - 1:,}, found {describe(seed)}")
    clusters = kmeans_starts(values, wanted, seed=seed, n_init=n_init)[0]
    numbers = {"features": str(features), "k": wanted, "seed": seed, "n_init": n_init}
    return _report(labels, clusters, numbers)


def score_assignments(assignments: Path) -> ScoreReport:
    """Purity, NMI and ARI in percent of finished clusters; raises InputError.

    The archive has clusters [n] and labels [n], whole numbers or text.
    """
    arrays = read_archive(assignments, ("clusters", "labels"))
    labels = as_labels(arrays["labels"], f"labels of {assignments}", arrays["labels"].size, text=True)
    if not len(labels):
        raise InputError(f"expected at least one item in {assignments}, found none")
    clusters = as_labels(arrays["clusters"], f"clusters of {assignments}", len(labels), text=True)
    return _report(labels, clusters, {"assignments": str(assignments)})


def _report(labels: Array, clusters: Array, parameters: Mapping[str, Json]) -> ScoreReport:
    classes, groups = (
        np.unique(names, return_inverse=True)[1].astype(np.int64) for names in (labels, clusters)
    )
    scores = {name: 100.0 * measure(classes, groups) for name, measure in AGREEMENTS.items()}
    return ScoreReport(
        command="clustering",
        parameters=parameters,
        n=len(classes),
        unit="items",
        scores=scores,
        grid=Grid("items", tuple(scores), {f"{len(classes):,}": tuple(scores.values())}),
        details={"classes": int(classes.max()) + 1, "clusters": int(groups.max()) + 1},
    )
