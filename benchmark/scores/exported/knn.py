"""k-NN classification of exported features."""

from pathlib import Path

import numpy as np

from benchmark.scores.exported.labelled import read_labelled
from benchmark.scores.exported.report import Grid, Json, ScoreReport
from tasks.metrics.neighbours import nearest, top_k_correct, vote
from zoo.errors import InputError

TOPS = (1, 5)


def score_knn(features: Path, ks: tuple[int, ...], temperature: float) -> ScoreReport:
    """Top-1 and top-5 in percent for every k, from one search.

    Args:
        features: Archive of train [n dim], train_labels [n], test [m dim] and test_labels [m]; labels are any
            whole numbers.
        ks: Neighbours that vote, each 1 to n.
        temperature: Divisor of the cosine in the vote exp(cos / temperature).

    Raises:
        InputError: Something about the file or the numbers is wrong.
    """
    given = read_labelled(features)
    _check(ks, temperature, len(given.train))
    train, test = given.train.astype(np.float32), given.test.astype(np.float32)
    found = nearest(train, test, max(ks))
    rows: dict[str, tuple[float, ...]] = {}
    for k in ks:
        ranked = vote(found, given.labels, k, len(given.names), temperature)
        rows[f"k={k}"] = tuple(100.0 * float(top_k_correct(ranked, given.truth, top).mean()) for top in TOPS)
    parameters: dict[str, Json] = {"features": str(features), "k": ks, "temperature": temperature}
    return ScoreReport(
        command="knn",
        protocol="standard",
        parameters=parameters,
        n=len(test),
        unit="test items",
        scores={f"top-{top} {k}": row[i] for k, row in rows.items() for i, top in enumerate(TOPS)},
        grid=Grid("neighbours", tuple(f"top-{top}" for top in TOPS), rows),
        details={"train_items": len(train), "classes": len(given.names), "dimensions": train.shape[1]},
        notes=given.strangers,
    )


def _check(ks: tuple[int, ...], temperature: float, items: int) -> None:
    wrong = [k for k in ks if not 1 <= k <= items]
    if wrong:
        raise InputError(f"expected --k of 1 to {items:,}, the number of train items, found {wrong[0]}")
    if len(set(ks)) != len(ks):
        raise InputError(f"expected every --k once, found {', '.join(map(str, ks))}")
    if not 0 < temperature < float("inf"):
        raise InputError(f"expected a positive --temperature, found {temperature}")
