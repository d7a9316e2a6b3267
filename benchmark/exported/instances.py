"""Instance retrieval for exported features."""

from pathlib import Path

import numpy as np

from layerboard.benchmark.exported.arrays import as_features, as_labels, read_archive
from layerboard.benchmark.exported.report import Grid, ScoreReport
from layerboard.tasks.datasets.instances import DISTRACTOR, ROLES
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.retrieval.instances import ALONE, pair_metrics, query_metrics, retrieve_things
from layerboard.zoo.errors import InputError, some


def score_instances(features: Path) -> ScoreReport:
    """Recall at k, mAP, R-precision and thresholds of pairs; raises InputError.

    An archive has features [n dim] and groups [n], whole numbers or text: the instance that each image shows.
    It may have roles [n]: query, database, distractor, or empty for an image that is both query and database,
    as all are without roles. It may have series [n]: images of the same series are not retrieved for each
    other; empty means no series.
    """
    arrays = read_archive(features, ("features", "groups"), optional=("roles", "series"))
    values = as_features(arrays, "features", features)
    arrays = dict.fromkeys(("roles", "series"), np.full(len(values), "")) | arrays
    groups, roles, series = (
        as_labels(arrays, name, features, len(values), text=True).astype(str)
        for name in ("groups", "roles", "series")
    )
    if unknown := sorted({*roles.tolist()} - {*ROLES, ""}):
        raise InputError(
            f"expected {', '.join(ROLES)} or nothing as roles of {features}, found {some(unknown)}"
        )
    things = np.where(roles == DISTRACTOR, "", groups)
    parts = np.where(roles == DISTRACTOR, "database", roles)
    _, retrieved = retrieve_things(values.astype(np.float32), things, parts, series)
    counted = int(np.isfinite(retrieved.wrong).sum())
    if not counted:
        raise InputError(f"expected a query with another image of its group in {features}: {ALONE}")
    config = config_of(STANDARD, "instances")
    scores = {name: float(np.nanmean(column)) for name, column in query_metrics(retrieved, config).items()}
    pairs, missing = pair_metrics(retrieved.pairs, config)
    scores |= pairs
    return ScoreReport(
        parameters={"features": str(features)},
        n=counted,
        unit="queries",
        scores={**scores, **dict.fromkeys(missing)},
        grid=Grid("metric", ("score",), {name: (value,) for name, value in scores.items()}),
        details={
            "images": len(values),
            "groups": len({*things.tolist()} - {""}),
            "pairs_of_one_group": len(retrieved.pairs.same),
            "pairs_of_different_groups": retrieved.pairs.different,
        },
        notes=("The cosines at a precision are cosines, from -1 to 1.",),
        reason="; ".join(dict.fromkeys(missing.values())),
    )
