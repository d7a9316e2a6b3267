"""Revisited Oxford and Paris for exported features or similarities."""

from pathlib import Path
from typing import get_args

import numpy as np

from layerboard.benchmark.exported.arrays import Floats, as_feature_pair, as_floats, read_archive, read_array
from layerboard.benchmark.exported.report import Grid, ScoreReport, one_of
from layerboard.tasks.datasets.revisitop import read_ground_truth
from layerboard.tasks.retrieval.ranking import (
    CUTOFFS,
    Difficulty,
    cosine_similarities,
    mean_of_queries,
    rank,
    revisited,
)
from layerboard.zoo.errors import InputError

DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)
METRICS = ("mAP", *(f"mP@{k}" for k in CUTOFFS))


def score_retrieval(ground_truth: Path, features: Path | None, similarity: Path | None) -> ScoreReport:
    """mAP and mP@1, 5, 10 in percent of the ranking by cosine, or by given similarities; raises InputError.

    An archive of features has database [images dim] and queries [queries dim]; similarities are [database
    queries], larger for more similar. Both are in the order of the ground truth, the pickle of revisited
    Oxford or Paris.
    """
    name, path = one_of(features=features, similarity=similarity)
    if name == "features":
        names = "database", "queries"
        values: Floats = cosine_similarities(*as_feature_pair(read_archive(path, names), *names, path))
    else:
        values = as_floats(read_array(path), f"similarities {path}", "[database queries]")
        if (values == values.flat[0]).all():
            raise InputError(f"expected similarities that rank images in {path}, but they are all the same")
    return _report(values, ground_truth, name, path)


def _report(values: Floats, ground_truth: Path, kind: str, path: Path) -> ScoreReport:
    database, queries = read_ground_truth(ground_truth)
    if values.shape != (len(database), len(queries)):
        raise InputError(
            f"expected {len(database):,} database images and {len(queries):,} queries in {path} as in "
            f"{ground_truth}, found {values.shape[0]:,} and {values.shape[1]:,}; keep the order of "
            "imlist and qimlist"
        )
    ranks = rank(values)
    easy, hard, junk = ([query.relevance[level] for query in queries] for level in ("easy", "hard", "junk"))
    try:
        results = {level: revisited(ranks, easy, hard, junk, level) for level in DIFFICULTIES}
    except ValueError as error:
        raise InputError(f"expected a consistent ground truth in {ground_truth}, but {error}") from error
    counted: dict[str, int] = {level: int(np.isfinite(each["mAP"]).sum()) for level, each in results.items()}
    rows: dict[str, tuple[float | None, ...]] = {
        level: (*(_percent(mean_of_queries(values)) for values in each.values()), counted[level])
        for level, each in results.items()
    }
    reasons = (
        f"{len(queries) - count} of {len(queries)} queries have no {level} positive"
        for level, count in counted.items()
        if count < len(queries)
    )
    return ScoreReport(
        parameters={kind: str(path), "ground_truth": str(ground_truth)},
        n=len(queries),
        unit="queries",
        scores={
            f"{metric} {level}": row[i] for level, row in rows.items() for i, metric in enumerate(METRICS)
        },
        grid=Grid("difficulty", (*METRICS, "queries counted"), rows),
        details={
            "database_images": len(database),
            "queries": [query.name for query in queries],
            "queries_counted": counted,
            "AP": {level: [_percent(value) for value in result["mAP"]] for level, result in results.items()},
        },
        reason="; ".join(reasons),
    )


def _percent(fraction: float) -> float | None:
    """A score in percent; None if no query counts."""
    return None if np.isnan(fraction) else 100.0 * float(fraction)
