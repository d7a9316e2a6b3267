"""Linear probes of exported features: of a few items a class in closed form, and trained on all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmark.scores.exported.labelled import Exported, read_labelled
from benchmark.scores.exported.report import Grid, Json, ScoreReport
from tasks.fewshot import metric_of, too_few
from tasks.metrics.arrays import Integers
from tasks.metrics.few_shot import FewShotRule, as_tensor, draw_shots, fit_few_shot
from tasks.metrics.softmax import SoftmaxRule, fit_softmax, held_out, standardised
from zoo.errors import InputError


def score_few_shot(features: Path, rule: FewShotRule) -> ScoreReport:
    """Top-1 in percent of closed-form probes, for every number of shots the mean of the draws.

    Args:
        features: Archive of train [n dim], train_labels [n], test [m dim] and test_labels [m]; labels are any
            whole numbers.
        rule: Shots, draws and penalties; shots beyond the items of the smallest train class have no score.

    Raises:
        InputError: Something about the file or the numbers is wrong.
    """
    given = read_labelled(features, constant=False)
    classes = _classes(given, features)
    labels, truth = _renumbered(given)
    fewest = int(np.bincount(labels).min())
    _check(rule.shots, fewest)
    test = as_tensor(given.test)
    scores: dict[str, float | None] = {metric_of(shots): None for shots in rule.shots}
    penalties: dict[str, Sequence[float]] = {}
    beyond = [shots for shots in rule.shots if shots > fewest]
    for shots in (one for one in rule.shots if one <= fewest):
        drawn = [given.train[draw_shots(labels, classes, shots, seed)] for seed in rule.seeds]
        fitted = [fit_few_shot(as_tensor(one), rule) for one in drawn]
        right = [one.correct(test, as_tensor(truth)).mean() for one in fitted]
        scores[metric_of(shots)] = 100.0 * float(np.mean(right))
        penalties[metric_of(shots)] = [one.penalty for one in fitted]
    parameters: dict[str, Json] = {
        "features": str(features),
        "shots": rule.shots,
        "seeds": rule.seeds,
        "penalty": "chosen on held-out shots" if rule.penalties else rule.penalty,
    }
    report = _report("fewshot", given, parameters, scores, {"penalties": penalties})
    return replace(report, reason=f"{too_few(beyond[0], fewest)}." if beyond else "")


def score_linear(features: Path, rule: SoftmaxRule) -> ScoreReport:
    """Top-1 in percent of a trained linear layer, of the features as they are and standardised.

    Args:
        features: As for `score_few_shot`.
        rule: The recipe.

    Raises:
        InputError: Something about the file or the numbers is wrong.
    """
    given = read_labelled(features, constant=False)
    classes = _classes(given, features)
    labels, truth = _renumbered(given)
    held = as_tensor(held_out(labels, classes, rule))
    train, test = as_tensor(given.train.astype(np.float32)), as_tensor(given.test.astype(np.float32))
    scores: dict[str, float | None] = {}
    rates: dict[str, float] = {}
    for metric, (shown, asked) in {"top1": (train, test), "top1-bn": standardised(train, test)}.items():
        probe = fit_softmax(shown, as_tensor(labels), held, classes, rule)
        scores[metric] = 100.0 * float(probe.correct(asked, as_tensor(truth)).mean())
        rates[metric] = probe.rate
    parameters: dict[str, Json] = {
        "features": str(features),
        "epochs": rule.epochs,
        "batch": rule.batch,
        "momentum": rule.momentum,
        "rates": rule.rates,
        "seed": rule.seed,
    }
    return _report("linear", given, parameters, scores, {"rates": rates})


def _classes(given: Exported, features: Path) -> int:
    """Number of classes of the train items; raises InputError for a single one."""
    classes = len(np.unique(given.labels))
    if classes < 2:
        raise InputError(f"expected train items of two classes or more in {features}, found {classes}")
    return classes


def _renumbered(given: Exported) -> tuple[Integers, Integers]:
    """Labels of the train items without gaps, and of the test items; -1 for classes without a train item."""
    known, labels = np.unique(given.labels, return_inverse=True)
    places = np.searchsorted(known, given.truth).clip(max=len(known) - 1)
    return labels.astype(np.int64), np.where(known[places] == given.truth, places, -1).astype(np.int64)


def _check(shots: Sequence[int], fewest: int) -> None:
    if min(shots) < 1 or min(shots) > fewest:
        raise InputError(
            f"expected --shots of 1 to {fewest:,}, the items of the smallest train class, found {min(shots)}"
        )
    if len(set(shots)) != len(shots):
        raise InputError(f"expected every --shots once, found {', '.join(map(str, shots))}")


def _report(
    command: str,
    given: Exported,
    parameters: Mapping[str, Json],
    scores: Mapping[str, float | None],
    details: Mapping[str, Json],
) -> ScoreReport:
    counts: dict[str, Json] = {
        "train_items": len(given.train),
        "classes": len(given.names),
        "dimensions": given.train.shape[1],
    }
    return ScoreReport(
        command=command,
        protocol="standard",
        parameters=parameters,
        n=len(given.test),
        unit="test items",
        scores=scores,
        grid=Grid("probe", ("top-1",), {metric: (value,) for metric, value in scores.items()}),
        details={**counts, **details},
        notes=given.strangers,
    )
