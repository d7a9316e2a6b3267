"""k-NN classification of exported features."""

from pathlib import Path

import numpy as np

from benchmark.scores.exported.arrays import as_features, as_labels, read_archive
from benchmark.scores.exported.report import Grid, Json, ScoreReport
from tasks.metrics.neighbours import nearest, top_k_correct, vote
from zoo.errors import InputError

ARRAYS = ("train", "train_labels", "test", "test_labels")
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
    arrays = read_archive(features, ARRAYS)
    train = as_features(arrays["train"], f"train of {features}")
    test = as_features(arrays["test"], f"test of {features}", constant=False)
    if train.shape[1] != test.shape[1]:
        raise InputError(
            f"expected train and test of one width in {features}, found {train.shape[1]} and {test.shape[1]}"
        )
    _check(ks, temperature, len(train))
    known = as_labels(arrays["train_labels"], f"train_labels of {features}", len(train)).astype(np.int64)
    asked = as_labels(arrays["test_labels"], f"test_labels of {features}", len(test)).astype(np.int64)
    names = np.union1d(known, asked)
    labels, truth = (np.searchsorted(names, values).astype(np.int64) for values in (known, asked))
    found = nearest(train.astype(np.float32), test.astype(np.float32), max(ks))
    rows: dict[str, tuple[float, ...]] = {}
    for k in ks:
        ranked = vote(found, labels, k, len(names), temperature)
        rows[f"k={k}"] = tuple(100.0 * float(top_k_correct(ranked, truth, top).mean()) for top in TOPS)
    strangers = int((~np.isin(truth, labels)).sum())
    parameters: dict[str, Json] = {"features": str(features), "k": ks, "temperature": temperature}
    return ScoreReport(
        command="knn",
        protocol="standard",
        parameters=parameters,
        n=len(test),
        unit="test items",
        scores={f"top-{top} {k}": row[i] for k, row in rows.items() for i, top in enumerate(TOPS)},
        grid=Grid("neighbours", tuple(f"top-{top}" for top in TOPS), rows),
        details={"train_items": len(train), "classes": len(names), "dimensions": train.shape[1]},
        notes=_strangers(strangers, len(test)),
    )


def _strangers(number: int, items: int) -> tuple[str, ...]:
    """A sentence where test items cannot be right."""
    return (f"{number:,} of {items:,} test items have a class that no train item has",) if number else ()


def _check(ks: tuple[int, ...], temperature: float, items: int) -> None:
    wrong = [k for k in ks if not 1 <= k <= items]
    if wrong:
        raise InputError(f"expected --k of 1 to {items:,}, the number of train items, found {wrong[0]}")
    if len(set(ks)) != len(ks):
        raise InputError(f"expected every --k once, found {', '.join(map(str, ks))}")
    if not 0 < temperature < float("inf"):
        raise InputError(f"expected a positive --temperature, found {temperature}")
