"""Revisited Oxford and Paris for exported features or similarities."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.scores.exported.arrays import Floats, as_features, as_floats, read_archive, read_array
from benchmark.scores.exported.report import Grid, Json, ScoreReport
from tasks.datasets.revisitop import Query, read_ground_truth
from tasks.metrics.ranking import CUTOFFS, Difficulty, RetrievalScores, cosine, rank, revisited
from zoo.errors import InputError

DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard")
METRICS = ("mAP", *(f"mP@{k}" for k in CUTOFFS))


def score_features(features: Path, ground_truth: Path) -> ScoreReport:
    """mAP and mP@1, 5, 10 in percent of the ranking by cosine.

    Args:
        features: Archive of database [images dim] and queries [queries dim], ordered as the ground truth.
        ground_truth: Pickle of revisited Oxford or Paris.

    Raises:
        InputError: Something about the files is wrong.
    """
    arrays = read_archive(features, ("database", "queries"))
    database = as_features(arrays["database"], f"database of {features}")
    queries = as_features(arrays["queries"], f"queries of {features}", constant=False)
    if database.shape[1] != queries.shape[1]:
        raise InputError(
            f"expected database and queries of one width in {features}, found {database.shape[1]} and "
            f"{queries.shape[1]}"
        )
    similarity = cosine(database, queries)
    return _report(similarity, features, ground_truth, {"features": str(features)})


def score_similarity(similarity: Path, ground_truth: Path) -> ScoreReport:
    """mAP and mP@1, 5, 10 in percent of the ranking by given similarities.

    Args:
        similarity: Array [database queries], larger for more similar, in the order of the ground truth.
        ground_truth: Pickle of revisited Oxford or Paris.

    Raises:
        InputError: Something about the files is wrong.
    """
    values = as_floats(read_array(similarity), f"similarities {similarity}", "[database queries]")
    if (values == values.flat[0]).all():
        raise InputError(f"expected similarities that rank images in {similarity}, but they are all the same")
    return _report(values, similarity, ground_truth, {"similarity": str(similarity)})


def _report(similarity: Floats, path: Path, ground_truth: Path, parameters: dict[str, Json]) -> ScoreReport:
    database, queries = read_ground_truth(ground_truth)
    if similarity.shape != (len(database), len(queries)):
        raise InputError(
            f"expected {len(database):,} database images and {len(queries):,} queries in {path} as in "
            f"{ground_truth}, found {similarity.shape[0]:,} and {similarity.shape[1]:,}; keep the order of "
            "imlist and qimlist"
        )
    results = _score(rank(similarity), queries, ground_truth)
    scores = {
        f"{metric} {name}": value for name, row in results.items() for metric, value in _means(row).items()
    }
    return ScoreReport(
        command="retrieval",
        protocol="standard",
        parameters={**parameters, "ground_truth": str(ground_truth)},
        n=len(queries),
        unit="queries",
        scores=scores,
        grid=Grid(
            "difficulty",
            (*METRICS, "queries counted"),
            {name: (*_means(result).values(), result.counted) for name, result in results.items()},
        ),
        details={
            "database_images": len(database),
            "queries": [query.name for query in queries],
            "queries_counted": {name: result.counted for name, result in results.items()},
            "AP": {name: [_percent(value) for value in result.ap] for name, result in results.items()},
        },
        reason=_reason(results, len(queries)),
    )


def _score(
    ranks: NDArray[np.int64], queries: list[Query], ground_truth: Path
) -> Mapping[Difficulty, RetrievalScores]:
    easy, hard, junk = ([query.relevance[kind] for query in queries] for kind in ("easy", "hard", "junk"))
    try:
        return {name: revisited(ranks, easy, hard, junk, name) for name in DIFFICULTIES}
    except ValueError as error:
        raise InputError(f"expected a consistent ground truth in {ground_truth}, but {error}") from error


def _reason(results: Mapping[Difficulty, RetrievalScores], queries: int) -> str:
    """Why some queries have no AP, or a difficulty no mean."""
    missing = {name: queries - result.counted for name, result in results.items()}
    return "; ".join(
        f"{number} of {queries} queries have no {name} positive" for name, number in missing.items() if number
    )


def _means(result: RetrievalScores) -> dict[str, float | None]:
    """mAP and mP@k in percent; None where no query counts."""
    values = (result.mean_ap, *(result.mean_precision(k) for k in CUTOFFS))
    return {metric: _percent(value) for metric, value in zip(METRICS, values, strict=True)}


def _percent(fraction: float) -> float | None:
    return None if np.isnan(fraction) else 100.0 * float(fraction)
