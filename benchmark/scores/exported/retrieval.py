"""Revisited Oxford and Paris for exported features or similarities."""

from pathlib import Path

import numpy as np

from benchmark.scores.exported.arrays import Floats, as_features, as_floats, read_archive, read_array
from benchmark.scores.exported.report import Grid, ScoreReport
from tasks.datasets.revisitop import read_ground_truth
from tasks.metrics.ranking import CUTOFFS, Difficulty, cosine, rank, revisited
from zoo.errors import InputError

DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard")
METRICS = ("mAP", *(f"mP@{k}" for k in CUTOFFS))


def score_features(features: Path, ground_truth: Path) -> ScoreReport:
    """mAP and mP@1, 5, 10 in percent of the ranking by cosine; raises InputError.

    The archive has database [images dim] and queries [queries dim] in the order of the ground truth, the
    pickle of revisited Oxford or Paris.
    """
    arrays = read_archive(features, ("database", "queries"))
    database = as_features(arrays["database"], f"database of {features}")
    queries = as_features(arrays["queries"], f"queries of {features}", constant=False)
    if database.shape[1] != queries.shape[1]:
        raise InputError(
            f"expected database and queries of one width in {features}, found {database.shape[1]} and "
            f"{queries.shape[1]}"
        )
    return _report(cosine(database, queries), features, ground_truth, "features")


def score_similarity(similarity: Path, ground_truth: Path) -> ScoreReport:
    """mAP and mP@1, 5, 10 in percent of the ranking by given similarities; raises InputError.

    They are [database queries], larger for more similar, in the order of the ground truth.
    """
    values = as_floats(read_array(similarity), f"similarities {similarity}", "[database queries]")
    if (values == values.flat[0]).all():
        raise InputError(f"expected similarities that rank images in {similarity}, but they are all the same")
    return _report(values, similarity, ground_truth, "similarity")


def _report(similarity: Floats, path: Path, ground_truth: Path, kind: str) -> ScoreReport:
    database, queries = read_ground_truth(ground_truth)
    if similarity.shape != (len(database), len(queries)):
        raise InputError(
            f"expected {len(database):,} database images and {len(queries):,} queries in {path} as in "
            f"{ground_truth}, found {similarity.shape[0]:,} and {similarity.shape[1]:,}; keep the order of "
            "imlist and qimlist"
        )
    ranks = rank(similarity)
    easy, hard, junk = ([query.relevance[kind] for query in queries] for kind in ("easy", "hard", "junk"))
    try:
        results = {name: revisited(ranks, easy, hard, junk, name) for name in DIFFICULTIES}
    except ValueError as error:
        raise InputError(f"expected a consistent ground truth in {ground_truth}, but {error}") from error
    rows: dict[str, tuple[float | None, ...]] = {
        name: (_percent(each.mean_ap), *(_percent(each.mean_precision(k)) for k in CUTOFFS), each.counted)
        for name, each in results.items()
    }
    reasons = (
        f"{len(queries) - result.counted} of {len(queries)} queries have no {name} positive"
        for name, result in results.items()
        if result.counted < len(queries)
    )
    return ScoreReport(
        command="retrieval",
        parameters={kind: str(path), "ground_truth": str(ground_truth)},
        n=len(queries),
        unit="queries",
        scores={f"{metric} {name}": row[i] for name, row in rows.items() for i, metric in enumerate(METRICS)},
        grid=Grid("difficulty", (*METRICS, "queries counted"), rows),
        details={
            "database_images": len(database),
            "queries": [query.name for query in queries],
            "queries_counted": {name: result.counted for name, result in results.items()},
            "AP": {name: [_percent(value) for value in result.ap] for name, result in results.items()},
        },
        reason="; ".join(reasons),
    )


def _percent(fraction: float) -> float | None:
    """A score in percent; None where no query counts."""
    return None if np.isnan(fraction) else 100.0 * float(fraction)
